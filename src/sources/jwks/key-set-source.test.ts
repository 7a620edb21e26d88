import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import type { KeySetAddress } from "#model/key-set.ts";
import { wantedKeySets } from "#translate/policies/request-authentications.ts";
import { object } from "../../../test/support/objects.ts";
import { type MemorySource, memorySource } from "../memory.ts";
import { keySetSource } from "./key-set-source.ts";

const A = "https://a.example/keys";
const B = "https://b.example/keys";
const wants = (...uris: readonly string[]) =>
  object("RequestAuthentication", "tokens", { jwtRules: uris.map((jwksUri) => ({ issuer: "me", jwksUri })) });

describe("keySetSource()", () => {
  let source: MemorySource;
  let answers: Map<string, () => Promise<string>>;
  let asked: string[];
  let lines: string[];
  let stop: AbortController;
  let running: Promise<void>;

  beforeEach(() => {
    source = memorySource();
    answers = new Map();
    asked = [];
    lines = [];
    stop = new AbortController();
    running = Promise.resolve();
  });
  afterEach(async () => {
    stop.abort();
    await running;
  });

  function run(refreshMs: number): void {
    const fetch = async ({ id }: KeySetAddress) => {
      asked.push(id);
      const answer = answers.get(id);
      if (answer === undefined) throw new Error("no answer");
      return answer();
    };
    const log = createLogger({ write: (line) => lines.push(line) });
    running = keySetSource({ taker: source, wanted: wantedKeySets, fetch, refreshMs, log }).run(stop.signal);
  }

  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  const got = () => Object.fromEntries(source.current().keySets);

  test("puts what the mesh wants into its snapshot, each set once", async () => {
    answers.set(A, async () => "keys of a");
    source.write({ "a.yaml": wants(A, A) });
    run(60_000);
    await until(() => source.current().keySets.size === 1);
    assert.deepEqual(got(), { [A]: "keys of a" });
    assert.deepEqual(asked, [A]);
  });

  test("follows the wishes of the mesh, and forgets what it no longer wants", async () => {
    answers.set(A, async () => "keys of a").set(B, async () => "keys of b");
    source.write({ "a.yaml": wants(A) });
    run(60_000);
    await until(() => source.current().keySets.has(A));
    source.write({ "a.yaml": wants(B) });
    await until(() => source.current().keySets.has(B));
    assert.deepEqual(got(), { [B]: "keys of b" });
    source.write({ "a.yaml": undefined });
    await until(() => source.current().keySets.size === 0);
  });

  test("gets rotated keys, and keeps the last good ones while the server is away", async () => {
    let keys = "old";
    answers.set(A, async () => keys);
    source.write({ "a.yaml": wants(A) });
    run(1);
    await until(() => got()[A] === "old");
    keys = "new";
    await until(() => got()[A] === "new");
    answers.delete(A);
    await until(() => lines.some((line) => line.includes("those of before stay")));
    assert.deepEqual(got(), { [A]: "new" });
  });

  test("keys that never came are none, and that is said", async () => {
    source.write({ "a.yaml": wants(A) });
    run(1);
    await until(() => lines.some((line) => line.includes("all its tokens are refused")));
    assert.deepEqual(got(), {});
    answers.set(A, async () => "late");
    await until(() => got()[A] === "late");
  });

  test("an unchanged answer is no new snapshot", async () => {
    answers.set(A, async () => "keys of a");
    source.write({ "a.yaml": wants(A) });
    run(1);
    await until(() => asked.length > 1);
    const snapshot = source.current();
    await until(() => asked.length > 5);
    assert.equal(source.current(), snapshot);
  });

  test("stops while it waits for an answer", async () => {
    answers.set(A, () => new Promise(() => undefined));
    source.write({ "a.yaml": wants(A) });
    running = keySetSource({
      taker: source,
      wanted: wantedKeySets,
      fetch: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        }),
      refreshMs: 1,
      log: createLogger({ write: (line) => lines.push(line) }),
    }).run(stop.signal);
    stop.abort();
    await running;
    assert.deepEqual(lines, []);
  });
});
