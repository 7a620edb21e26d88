import assert from "node:assert/strict";
import { test } from "node:test";
import { completeGateway, MESH_GATEWAY } from "#config/kinds/virtual-service/gateway-name.ts";
import { meshOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { finderOf, sourceConditionId, sourceConditions, virtualServicesOf } from "./virtual-services.ts";

const http = [{ route: [{ destination: { host: "web" } }] }];
const virtualService = (where: string, spec: object = {}, createdAt = "2024-01-01T00:00:00Z") =>
  object("VirtualService", where, { hosts: ["web"], http, ...spec }, { creationTimestamp: createdAt });
const names = (yaml: string, gateway = MESH_GATEWAY, namespace = "default") =>
  virtualServicesOf(meshOf(yaml), gateway, namespace).map(({ object: { metadata } }) => metadata.name);

test("a gateway can be named in many ways", () => {
  assert.equal(completeGateway("mesh", "here"), "mesh");
  assert.equal(completeGateway("gate", "here"), "here/gate");
  assert.equal(completeGateway("./gate", "here"), "here/gate");
  assert.equal(completeGateway("there/gate", "here"), "there/gate");
  assert.equal(completeGateway("gate.there.svc.cluster.local", "here"), "there/gate");
});

test("without gateways the mesh is meant", () => {
  const yaml = virtualService("plain") + virtualService("bound", { gateways: ["gate", "other/gate"] });
  assert.deepEqual(names(yaml), ["plain"]);
  assert.deepEqual(names(yaml, "default/gate"), ["bound"]);
  assert.deepEqual(names(yaml, "other/gate"), ["bound"]);
});

test("a gateway that is named twice binds once", () => {
  assert.deepEqual(names(virtualService("twice", { gateways: ["gate", "default/gate"] }), "default/gate"), ["twice"]);
});

test("what is exported to few comes first, then the oldest", () => {
  const yaml =
    virtualService("young") +
    virtualService("old", {}, "2020-01-01T00:00:00Z") +
    virtualService("private", { exportTo: ["."] });
  assert.deepEqual(names(yaml), ["private", "old", "young"]);
  assert.deepEqual(names(yaml, MESH_GATEWAY, "other"), ["old", "young"]);
});

test("the finder takes the exact name, else the longest wildcard, else nothing", () => {
  const yaml =
    virtualService("wide", { hosts: ["*.example.com"] }) +
    virtualService("longer", { hosts: ["*.a.example.com"] }) +
    virtualService("exact", { hosts: ["x.a.example.com"] }) +
    virtualService("late", { hosts: ["x.a.example.com"] }, "2025-01-01T00:00:00Z");
  const finder = finderOf(virtualServicesOf(meshOf(yaml), MESH_GATEWAY, "default"));
  const find = (host: string) => finder.find(host)?.object.metadata.name;
  assert.equal(find("x.a.example.com"), "exact");
  assert.equal(find("y.a.example.com"), "longer");
  assert.equal(find("y.example.com"), "wide");
  assert.equal(find("example.org"), undefined);
});

test("conditions on callers are known once, in whatever order their labels are written", () => {
  assert.equal(sourceConditionId({ a: "1", b: "2" }), sourceConditionId({ b: "2", a: "1" }));
  const matching = (sourceLabels: object) => ({ http: [{ ...http[0], match: [{ sourceLabels }] }] });
  const yaml = virtualService("a", matching({ x: "1", y: "2" })) + virtualService("b", matching({ y: "2", x: "1" }));
  assert.equal(sourceConditions(meshOf(yaml)).length, 1);
});

test("what a namespace keeps to itself comes before what others show it, and that before what everybody sees", () => {
  const at = (where: string, year: number, exportTo?: readonly string[]) =>
    object(
      "VirtualService",
      where,
      { hosts: ["a.com"], http: [{ redirect: { uri: "/x" } }], exportTo },
      { creationTimestamp: `${year}-01-01T00:00:00Z` },
    );
  const yaml = at("a/public", 2020) + at("a/shown", 2021, ["b"]) + at("b/own", 2022, [".", "c"]);
  const names = virtualServicesOf(meshOf(yaml), "mesh", "b").map(({ object: { metadata } }) => metadata.name);
  assert.deepEqual(names, ["own", "shown", "public"]);
});
