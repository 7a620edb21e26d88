import assert from "node:assert/strict";
import { test } from "node:test";
import type { Proxy as MeshProxy } from "#model/proxy.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { parseAliases, withAliases } from "./cluster-aliases.ts";

test("parseAliases() reads pairs, and tells what is none", () => {
  const { aliases, problems } = parseAliases(["a=c1,b=c2", "", "c=c3"]);
  assert.deepEqual(
    [...aliases],
    [
      ["a", "c1"],
      ["b", "c2"],
      ["c", "c3"],
    ],
  );
  assert.deepEqual(problems, []);
  const wrong = parseAliases(["a", "=c1", "b=", "a=c=d", "x=c1", "y=c1"]).problems;
  assert.deepEqual(
    wrong.map((problem) => /is not ALIAS=CLUSTER|more than one alias/.exec(problem)?.[0]),
    [...Array.from({ length: 4 }, () => "is not ALIAS=CLUSTER"), "more than one alias"],
  );
});

test("withAliases() shows a proxy as one of the cluster that its alias stands for, the same one each time", () => {
  const seen: MeshProxy[] = [];
  const none = { types: new Map(), asked: new Map(), omittedListeners: new Set<string>() };
  const parts = withAliases(
    (_, proxy) => {
      seen.push(proxy);
      return none;
    },
    parseAliases(["old=new"]).aliases,
  );
  const [of, other] = ["old", "else"].map((clusterId) => proxyOf({ metadata: { CLUSTER_ID: clusterId } }));
  assert.ok(of && other);
  const mesh = meshOf("");
  for (const proxy of [of, of, other]) parts(mesh, proxy);
  assert.deepEqual(
    seen.map(({ metadata }) => metadata.CLUSTER_ID),
    ["new", "new", "else"],
  );
  assert.equal(seen[0], seen[1]);
  assert.equal(seen[2], other);
});
