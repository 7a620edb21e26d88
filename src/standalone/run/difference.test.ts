import assert from "node:assert/strict";
import test from "node:test";
import { readMesh } from "../mesh/read-mesh.ts";
import { NOBODY } from "../plan/enter.ts";
import { type MeshPlan, planMesh } from "../plan/plan.ts";
import { difference } from "./difference.ts";

function plan(spec: string): MeshPlan {
  const text = `apiVersion: mizzen.dev/v1alpha1\nkind: Mesh\nmetadata: {name: shop}\nspec:\n${spec}`;
  const { mesh, problems } = readMesh({ text, file: "/srv/shop/mesh.yaml" });
  assert.ok(mesh, JSON.stringify(problems));
  const programs = { nodeFolder: "/node", envoy: "/envoy", agent: ["/agent"], discovery: ["/discovery"] };
  return planMesh({
    ...{
      mesh,
      programs,
      id: "abc123",
      stateFolder: "/state",
      users: { first: 2_000_000_000, count: 99 },
      accounts: { nobody: NOBODY },
      workingCopies: {},
    },
    ...{ privateConfig: false, groups: undefined, jwtRule: "{}", addresses: new Map() },
  });
}

const WEB = "  - {name: web, labels: {app: web}, command: [node, web.ts], ports: [80]}\n";
const DB = "  - {name: db, command: [db]}\n";
const BASE = `  workloads:\n${WEB}${DB}`;

/** What differs from the base, by the names of members. */
function summary(spec: string): object {
  const { removed, added, replaced, appChanged, controlPlane, config } = difference(plan(BASE), plan(spec));
  const names = (plans: readonly { readonly key: string }[]) => plans.map(({ key }) => key.split(".")[0]).join(" ");
  return {
    ...(removed.length > 0 ? { removed: names(removed) } : {}),
    ...(added.length > 0 ? { added: names(added) } : {}),
    ...(replaced.length > 0 ? { replaced: names(replaced) } : {}),
    ...(appChanged.length > 0 ? { appChanged: names(appChanged) } : {}),
    ...(controlPlane.files ? { meshConfig: true } : {}),
    ...(controlPlane.process ? { istiod: true } : {}),
    ...(config ? { config: true } : {}),
  };
}

const CASES: readonly (readonly [string, string, object])[] = [
  ["nothing", BASE, {}],
  ["comments and lines", `# a comment\n\n${BASE}`, {}],
  ["a command", BASE.replace("web.ts", "web2.ts"), { appChanged: "web" }],
  ["a user", BASE.replace("ports:", "user: nobody, ports:"), { appChanged: "web" }],
  ["a variable", BASE.replace("ports:", "env: {A: b}, ports:"), { appChanged: "web" }],
  ["a probe", BASE.replace("ports:", "readiness: {tcpSocket: {port: 80}}, ports:"), { appChanged: "web" }],
  ["what it waits for", BASE.replace("ports:", "after: [db], ports:"), { appChanged: "web" }],
  ["a published port", BASE.replace("ports:", 'publish: ["0:80"], ports:'), {}],
  ["a label", BASE.replace("app: web", "app: shop"), { replaced: "web" }],
  ["a port", BASE.replace("[80]", "[81]"), { replaced: "web" }],
  ["the sidecar", BASE.replace("ports:", "inject: false, ports:"), { replaced: "web" }],
  ["a member less", `  workloads:\n${WEB}`, { removed: "db" }],
  ["more replicas", BASE.replace("name: db", "name: db, replicas: 2"), { removed: "db", added: "db-1 db-2" }],
  ["the access log", `  meshConfig: {accessLogFile: /dev/stdout}\n${BASE}`, { meshConfig: true }],
  [
    "the defaults of proxies",
    `  meshConfig: {defaultConfig: {concurrency: 2}}\n${BASE}`,
    { meshConfig: true, replaced: "web db" },
  ],
  [
    "the trust domain",
    `  meshConfig: {trustDomain: shop.example}\n${BASE}`,
    { meshConfig: true, istiod: true, replaced: "web db" },
  ],
  ["where objects are", `  config: [objects]\n${BASE}`, { istiod: true, config: true }],
];

for (const [what, spec, expected] of CASES) {
  test(`difference() of ${what}`, () => assert.deepEqual(summary(spec), expected));
}
