import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { at, MANIFESTS } from "./fixture.ts";
import { profileNames, resolveSettings } from "./settings.ts";

const folder = mkdtempSync(join(tmpdir(), "mizzen-settings-"));
after(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

const resolve = (set: readonly string[], files: readonly string[] = []) =>
  resolveSettings({ manifests: MANIFESTS, revision: "", files, set });

test("what is said later counts more: chart, profile, files in their order, --set", async () => {
  const one = file("one.yaml", "pilot: {replicaCount: 2, autoscaleMax: 7}\nglobal: {hub: one, tag: one}\n");
  const two = file(
    "two.yaml",
    "kind: IstioOperator\nspec: {profile: demo, tag: two, values: {global: {network: n}}}\n",
  );
  const { values, profile } = await resolve(["values.global.network=m"], [one, two]);
  assert.equal(profile, "demo");
  assert.equal(at(values, "pilot", "replicaCount"), 2);
  assert.equal(at(values, "pilot", "autoscaleEnabled"), false);
  assert.deepEqual([at(values, "global", "hub"), at(values, "global", "tag")], ["one", "two"]);
  assert.equal(at(values, "global", "network"), "m");
});

test("what is taken away stays away, though a file before said something else", async () => {
  const one = file("resources.yaml", "pilot: {resources: {requests: {cpu: 1}}}\n");
  const { values } = await resolve(["pilot.resources=null"], [one]);
  assert.equal(at(values, "pilot", "resources"), undefined);
});

test("revision and namespace may be said as values", async () => {
  const { revision, namespace, values } = await resolve(["revision=canary", "values.global.istioNamespace=mesh"]);
  assert.deepEqual([revision, namespace], ["canary", "mesh"]);
  const set = ["components.pilot.namespace=n"];
  const other = await resolveSettings({ manifests: MANIFESTS, revision: "r", namespace: "n", files: [], set });
  assert.deepEqual([other.revision, other.namespace], ["r", "n"]);
  assert.equal(at(other.values, "global", "istioNamespace"), "n");
  assert.equal(at(values, "revision"), "canary");
});

test("a setting that there is not is told, and does no harm", async () => {
  const { warnings } = await resolve(["pilot.sampling=1"]);
  assert.deepEqual(warnings, ["pilot.sampling: is no setting of this chart: it has no effect"]);
});

test("settings that injection alone reads are known", async () => {
  const { warnings } = await resolve([
    "global.proxy.holdApplicationUntilProxyStarts=true",
    "global.proxy.lifecycle.preStop.exec.command={sleep,5}",
    "sidecarInjectorWebhook.defaultTemplates={sidecar,mine}",
    "sidecarInjectorWebhook.aliases.all={sidecar,mine}",
  ]);
  assert.deepEqual(warnings, []);
});

test("the profiles are those of the folder", async () => {
  assert.deepEqual(await profileNames(MANIFESTS), ["default", "demo", "empty", "minimal"]);
});

for (const [set, message] of [
  ["profile=huge", 'there is no profile "huge": there are default, demo, empty, minimal'],
  ["pilot.enabled=maybe", 'pilot.enabled: a boolean is wanted, this is "maybe"'],
  ["meshConfig.outboundTrafficPolicy.mode=SOMETIMES", /^meshConfig\.outboundTrafficPolicy\.mode: /],
  ["revision=Not_A_Name", /^revision "Not_A_Name" is no name of Kubernetes/],
  ["values.global.istioNamespace=a/b", /^namespace "a\/b" is no name/],
  [
    "components.pilot.namespace=other",
    /^components.pilot.namespace: "other", but .* into "istio-system"; .*--namespace other/,
  ],
  ["gateways.a/b.enabled=true", /^gateway "a\/b" is no name/],
] as const) {
  test(`a wrong setting is refused: ${set}`, () =>
    assert.rejects(resolve([set]), { code: "INSTALL_INVALID", message }));
}

test("a file that cannot be read is told with its line", async () => {
  const broken = file("broken.yaml", "pilot:\n  env: {a\n");
  await assert.rejects(resolve([], [broken]), { message: /broken\.yaml:\d: / });
  await assert.rejects(resolve([], [join(folder, "none.yaml")]), { message: /none\.yaml cannot be read/ });
  await assert.rejects(resolve([], [file("list.yaml", "- a\n")]), { message: /list\.yaml holds no settings/ });
});
