/**
 * Processes of a mesh are killed at random moments: while it starts, while it works, while it is changed and while it is
 * taken down. Whatever happens, the next `up` gives a mesh that works, and the next `down` leaves nothing.
 *
 * A few rounds are played by default; CHAOS_ROUNDS and CHAOS_SEED play others.
 */
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import test from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import {
  Begun,
  type MeshFolder,
  machineState,
  meshFolder,
  processesAbout,
  tracesOf,
  WEB_SPEC,
} from "../../../test/support/mesh-folder.ts";
import { meshUnavailable } from "../../../test/support/mesh-run.ts";
import { signalProcess } from "../host/processes.ts";
import { meshId } from "../plan/names.ts";

const skip = meshUnavailable();
const ROUNDS = Number(process.env.CHAOS_ROUNDS ?? 3);
const SEED = Number(process.env.CHAOS_SEED ?? 20_240_229);
const SPEC = `${WEB_SPEC.replace("ports: [80]", "ports: [80]\n    limits: {pids: 60}")}
  - {name: task, command: [sh, -c, "sleep 0.5"], restart: onFailure, after: [web]}
`;

/** Numbers in [0, 1), the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

class Chaos {
  readonly #folder: MeshFolder;
  readonly #random: () => number;
  /** What was done, for the message of a failed round. */
  readonly story: string[] = [];

  constructor(folder: MeshFolder, random: () => number) {
    this.#folder = folder;
    this.#random = random;
  }

  chance(): number {
    return this.#random();
  }

  /** A command during which things are killed at a random moment. */
  async disturb(command: string, withinMs: number): Promise<void> {
    const { path, state } = this.#folder;
    const folder = command === "up" ? [path, "--detach"] : [];
    const begun = new Begun([command, ...folder, "--state", state]);
    await Promise.race([delay(this.chance() * withinMs), begun.ended]);
    await this.kill(`during ${command}`, begun.child.pid);
    const ended = await Promise.race([begun.ended, delay(150_000).then(() => "hangs")]);
    this.story.push(`${command} ended with ${ended}`);
    if (ended === "hangs") begun.child.kill("SIGKILL");
    assert.notEqual(ended, "hangs", begun.said);
  }

  /** Kills one to three processes of the mesh, or whoever works on it. */
  async kill(when: string, command?: number): Promise<void> {
    const lines = await processesAbout(this.#folder.state);
    const victims = lines.map((line) => ({ pid: Number.parseInt(line, 10), line }));
    if (command !== undefined) victims.push({ pid: command, line: `${command} the command itself` });
    for (let left = 1 + Math.floor(this.chance() * 3); left > 0 && victims.length > 0; left--) {
      const [victim] = victims.splice(Math.floor(this.chance() * victims.length), 1);
      if (victim === undefined) continue;
      this.story.push(`${when}: killed ${victim.line.slice(0, 120)}`);
      signalProcess(victim.pid, "SIGKILL");
    }
  }
}

async function playRound(folder: MeshFolder, chaos: Chaos): Promise<void> {
  if (chaos.chance() < 0.7) await chaos.disturb("up", 5000);
  else assert.equal((await folder.up()).code, 0);
  for (let kills = Math.floor(chaos.chance() * 3); kills > 0; kills--) {
    await chaos.kill("at work");
    await delay(chaos.chance() * 500);
  }
  if (chaos.chance() < 0.3) await chaos.disturb("up", 2000);
  if (chaos.chance() < 0.6) {
    const { code, stderr } = await folder.up();
    chaos.story.push(`up: ${code}`);
    assert.equal(code, 0, stderr);
    await untilAnswered(folder);
  }
  if (chaos.chance() < 0.7) await chaos.disturb("down", 1500);
  const { code, stderr } = await folder.running.down();
  assert.equal(code, 0, stderr);
}

async function untilAnswered({ running }: MeshFolder): Promise<void> {
  await running.until(({ members }) => members.every(({ ready, state }) => ready || state === "done"));
  assert.equal((await running.curl("plain", "http://web:8000/")).body, "web web");
}

test(`${ROUNDS} rounds of kills at random moments leave nothing behind`, {
  skip,
  timeout: 120_000 + ROUNDS * 600_000,
}, async (t) => {
  const random = randomOf(SEED);
  await using folder = await meshFolder(SPEC);
  const before = await machineState();
  for (let round = 1; round <= ROUNDS; round++) {
    const chaos = new Chaos(folder, random);
    try {
      await playRound(folder, chaos);
      assert.deepEqual(await tracesOf(meshId(folder.state), folder.state), []);
      assert.deepEqual(await machineState(), before);
      const left = (await readdir(folder.state).catch(() => [])).filter((name) => !KEPT.includes(name));
      assert.deepEqual(left, []);
    } catch (error) {
      t.diagnostic(`round ${round} of seed ${SEED}:\n${chaos.story.join("\n")}`);
      throw error;
    }
  }
});

/** Identity and logs stay after `down`. */
const KEPT = [".mizzen", "ca", "issuer", "logs"];
