import assert from "node:assert/strict";
import { test } from "node:test";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { byAliases, parseAliases, withAliases } from "./cluster-aliases.ts";

const { aliases } = parseAliases(["old=new,east=west"]);

test("parseAliases() reads pairs, and tells what is none and which cluster has two", () => {
  assert.deepEqual(
    [...aliases],
    [
      ["old", "new"],
      ["east", "west"],
    ],
  );
  assert.deepEqual(parseAliases(["x", "a=c", "b=c"]).problems, [
    '--clusterAliases: "x" is not ALIAS=CLUSTER',
    '--clusterAliases: cluster "c" has more than one alias',
  ]);
});

test("withAliases() gives a proxy what the cluster of the right name gets", () => {
  const seen: unknown[] = [];
  const partsOf = withAliases((_, { metadata }) => {
    seen.push(metadata.CLUSTER_ID);
    return { types: new Map(), asked: new Map(), omittedListeners: new Set() };
  }, aliases);
  const proxy = proxyOf();
  for (const CLUSTER_ID of ["old", "new", "other"]) {
    partsOf(meshOf(""), { ...proxy, metadata: { ...proxy.metadata, CLUSTER_ID } });
  }
  assert.deepEqual(seen, ["new", "new", "other"]);
});

test("byAliases() finds the API server that knows a token by either name of its cluster", () => {
  const servers = new Map([["new", "of new"]]);
  const apiOf = byAliases((clusterId) => servers.get(clusterId), aliases);
  assert.deepEqual(["new", "old", "east", "other"].map(apiOf), ["of new", "of new", undefined, undefined]);
});
