import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { culprits } from "./culprits.ts";

const named = (message: string, ...names: string[]) =>
  culprits(
    message,
    names.map((name) => ({ name, version: "1" })),
  ).map(({ name }) => name);

test("culprits() finds the listeners and clusters that Envoy lists", () => {
  const text = "Error adding/updating cluster(s) outbound|80||a.b.svc: no such lb, outbound|81|v1|a.b.svc: bad";
  const names = ["outbound|80||a.b.svc", "outbound|80||b.svc", "outbound|81|v1|a.b.svc", "outbound|81||a.b.svc"];
  assert.deepEqual(named(text, ...names), ["outbound|80||a.b.svc", "outbound|81|v1|a.b.svc"]);
});

test("culprits() does not take a name inside a longer one for itself", () => {
  assert.deepEqual(
    named("Error adding/updating listener(s) 10.0.0.1_8080: x", "10.0.0.1_80", "0.0.0.1_8080", "8080"),
    [],
  );
  assert.deepEqual(named("error in outbound|8000||a: x", "8000", "outbound|8000||a"), ["outbound|8000||a"]);
  assert.deepEqual(named("host a.b.svc:80 is odd", "a.b.svc", "a.b.svc:80"), ["a.b.svc:80"]);
});

test("culprits() finds a name in quotes, before a full stop and at the end", () => {
  assert.deepEqual(named("route '8000' is bad", "8000"), ["8000"]);
  assert.deepEqual(named("duplicate domain in route 8000. Fix it", "8000"), ["8000"]);
  assert.deepEqual(named("duplicate domain in route 8000", "8000"), ["8000"]);
});

test("culprits() is empty when the text names nobody", () => {
  assert.deepEqual(named("malformed IP address: foo", "outbound|80||a", ""), []);
});

test("culprits() finds every name that Envoy lists, and no other", () => {
  // No word of the text, and none inside another: each begins with a length of its own.
  const ending = fc.stringMatching(/^[a-z0-9|_-]{0,6}(\.[a-z0-9]{1,4}){0,2}(:[0-9]{1,4})?$/);
  fc.assert(
    fc.property(fc.array(ending, { minLength: 2, maxLength: 20 }), (endings) => {
      const all = endings.map((text, i) => `${i}x${text}`);
      const listed = all.filter((_, i) => i % 2 === 0);
      const text = `Error adding/updating listener(s) ${listed.map((name) => `${name}: no such thing`).join("\n")}`;
      assert.deepEqual(named(text, ...all), listed);
    }),
  );
});

test("culprits() takes time in proportion to the text, whatever it repeats", () => {
  const names = Array.from({ length: 2_000 }, (_, i) => `outbound|80||svc-${i}.default.svc.cluster.local`);
  const repeated = ["a ", "outbound|80||svc-1.default.svc.cluster.local ", "outbound|80||", "a.", ": "];
  for (const part of repeated) {
    const cost = (length: number) => {
      const text = part.repeat(length / part.length);
      const before = process.cpuUsage();
      named(text, "a", ...names);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    cost(50_000);
    const [once, fourTimes] = [cost(100_000), cost(400_000)];
    // Quadratic would be 16 times as much: of the first version 400,000 characters took half a minute.
    assert.ok(fourTimes < 8 * once + 100, `"${part}": ${once} ms, then ${fourTimes} ms`);
    assert.ok(fourTimes < 2_000, `"${part}": ${fourTimes} ms`);
  }
});
