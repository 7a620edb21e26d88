/** That the addons point at what there is: ports, services, metrics. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readObjects } from "#install/chart.ts";
import { at, installed } from "#install/fixture.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { readDocument } from "#lib/yaml/read.ts";

const ROOT = join(import.meta.dirname, "../..");
const objectsOf = (name: string) => {
  const file = join(import.meta.dirname, `${name}.yaml`);
  return readObjects(readFileSync(file, "utf8"), file);
};
const NAMES = ["prometheus", "grafana", "jaeger", "kiali"];
const objects = NAMES.flatMap(objectsOf);
const mapOf = (name: string) =>
  objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === name)?.data;
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** `service.istio-system:port` of all addons. */
const services = new Set(
  objects
    .filter(({ kind }) => kind === "Service")
    .flatMap(({ metadata, spec }) =>
      list(at(spec, "ports")).map((port) => `${metadata.name}.${metadata.namespace}:${at(port, "port")}`),
    ),
);

test("every address in a setting is a service and a port of an addon", () => {
  const texts = objects.flatMap(({ data }) => (isRecord(data) ? Object.values(data).map(String) : []));
  const addresses = texts.flatMap((text) =>
    [...text.matchAll(/http:\/\/([\w-]+\.istio-system:\d+)/g)].map(([, it = ""]) => it),
  );
  assert.ok(addresses.length >= 4);
  for (const address of addresses) assert.ok(services.has(address), address);
});

test("every service selects the pods of an addon", () => {
  const apps = objects
    .filter(({ kind }) => kind === "Deployment")
    .map(({ spec }) => at(spec, "template", "metadata", "labels", "app"));
  for (const { kind, metadata, spec } of objects) {
    if (kind === "Service") assert.ok(apps.includes(at(spec, "selector", "app")), metadata.name);
  }
});

test("Prometheus reads pods by annotations, with expressions that take the mesh's own", async () => {
  const config = readDocument(String(at(mapOf("prometheus"), "prometheus.yml"))).value;
  const pods = list(at(config, "scrape_configs")).find((one) => at(one, "job_name") === "kubernetes-pods");
  const rules = list(at(pods, "relabel_configs"));
  for (const rule of rules) assert.doesNotThrow(() => new RegExp(String(at(rule, "regex") ?? ".*")));
  const addressOf = (port: string, ip: string) =>
    rules
      .filter((rule) => at(rule, "target_label") === "__address__")
      .flatMap((rule) => {
        const match = new RegExp(`^(?:${at(rule, "regex")})$`).exec(`${port};${ip}`);
        return match === null
          ? []
          : [String(at(rule, "replacement")).replace(/\$(\d)/g, (_, n) => match[Number(n)] ?? "")];
      });
  const mesh = await installed("profile=demo");
  const ports = [...mesh.values()]
    .filter(({ kind }) => kind === "Deployment")
    .map(({ spec }) => String(at(spec, "template", "metadata", "annotations", "prometheus.io/port")));
  assert.deepEqual([...new Set(ports)].sort(), ["15014", "15020"]);
  for (const port of ports) {
    assert.deepEqual(addressOf(port, "10.1.2.3"), [`10.1.2.3:${port}`]);
    assert.deepEqual(addressOf(port, "fd00::1"), [`[fd00::1]:${port}`]);
  }
  const alerts = readDocument(String(at(mapOf("prometheus"), "rules.yml"))).value;
  assert.equal(list(at(alerts, "groups", 0, "rules")).length, 3);
});

test("dashboards ask for metrics that the control plane gives", () => {
  const source = globSync("src/{bin,xds,webhooks,ca}/**/*.ts", { cwd: ROOT }).filter(
    (file) => !file.endsWith(".test.ts"),
  );
  const given = new Set(
    source.flatMap(
      (file) => readFileSync(join(ROOT, file), "utf8").match(/\b(?:pilot|citadel|galley|sidecar)_\w+/g) ?? [],
    ),
  );
  const boards = mapOf("grafana-dashboards");
  assert.ok(isRecord(boards));
  for (const text of [...Object.values(boards), at(mapOf("prometheus"), "rules.yml")].map(String)) {
    for (const [name] of text.matchAll(/\b(?:pilot|citadel|galley|sidecar)_\w+/g)) {
      assert.ok(given.has(name.replace(/_bucket$/, "")), name);
    }
  }
  for (const text of Object.values(boards)) assert.ok(list(at(JSON.parse(String(text)), "panels")).length > 4);
});
