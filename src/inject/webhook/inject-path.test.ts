import assert from "node:assert/strict";
import { test } from "node:test";
import { variablesOfPath } from "./inject-path.ts";

test("variablesOfPath() reads names and values by turns", () => {
  assert.deepEqual(variablesOfPath("/inject"), {});
  assert.deepEqual(variablesOfPath("/inject/"), {});
  assert.deepEqual(variablesOfPath("/inject/cluster/c1/net/n--slash--1/"), {
    ISTIO_META_CLUSTER_ID: "c1",
    ISTIO_META_NETWORK: "n/1",
  });
  assert.deepEqual(variablesOfPath("/inject/custom/x/alone"), { CUSTOM: "x" });
});

test("variablesOfPath() reads the older form", () => {
  assert.deepEqual(variablesOfPath("/inject/:ENV:cluster=c1:ENV:a=b=c:ENV:=x:ENV:empty="), {
    ISTIO_META_CLUSTER_ID: "c1",
    A: "b=c",
    EMPTY: "",
  });
});
