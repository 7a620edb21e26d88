/** What the programs listen on is what the list of entry points says, no more and no less. */
import assert from "node:assert/strict";
import { basename } from "node:path";
import { after, before, describe, test } from "node:test";
import { eventually } from "../support/fake-control-plane.ts";
import { ENTRY_POINTS, type EntryPoint } from "./entry-points.ts";
import { type MeasuredAgent, startAgent } from "./growth/agent-fixture.ts";
import { listeningSockets } from "./listening-sockets.ts";

const skip = process.getuid?.() !== 0 && "needs root";

describe("entry points", { skip, timeout: 300_000 }, () => {
  let agent: MeasuredAgent;
  before(async () => {
    agent = await startAgent();
  });
  after(() => agent?.[Symbol.asyncDispose]());

  for (const program of ["control plane", "agent"] as const) {
    test(`the ${program} listens on what the list names, and on nothing else`, async () => {
      const { pid } = program === "agent" ? agent.program : agent.plane.program;
      const places: Readonly<Record<string, number | string>> =
        program === "agent" ? { ...agent.ports, xds: agent.xds, sds: agent.sds } : { ...agent.plane.ports };
      const expected = ENTRY_POINTS.filter((one) => one.program === program).map((one) => addressOf(one, places));
      const actual = () => new Set(listeningSockets(pid).map(({ kind, at }) => `${kind} ${shortened(at)}`));
      // DNS over TCP is opened some time after the start.
      await eventually(
        () => `listening on ${expected.join(", ")}: it listens on ${[...actual()].join(", ")}`,
        () => actual().isSupersetOf(new Set(expected)),
      );
      assert.deepEqual([...actual()].sort(), [...new Set(expected)].sort());
    });
  }
});

function addressOf({ name, kind, key = "" }: EntryPoint, places: Readonly<Record<string, number | string>>): string {
  const place = places[key];
  assert.ok(place !== undefined, `the fixture has no "${key}", where "${name}" listens`);
  return `${kind} ${shortened(String(place))}`;
}

/** Sockets are bound by other paths to the same file, because long ones do not fit. */
function shortened(at: string): string {
  return at.includes("/") ? basename(at) : at;
}
