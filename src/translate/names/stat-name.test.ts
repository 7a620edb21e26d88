import assert from "node:assert/strict";
import { test } from "node:test";
import { statName } from "./stat-name.ts";

const service = {
  hostname: "web.prod.svc.cluster.local",
  name: "web",
  namespace: "prod",
  registry: "Kubernetes",
} as const;
const input = { service, port: { port: 80, name: "http" }, subset: "v1", targetPort: 8080, fallback: "usual" };

test("without a pattern the usual name is kept", () => {
  assert.equal(statName(undefined, input), "usual");
  assert.equal(statName("", input), "usual");
});

test("every word of a pattern is filled in, wherever it is", () => {
  const pattern =
    "%SERVICE%|%SERVICE_NAME%|%SERVICE_FQDN%|%SUBSET_NAME%|%TARGET_PORT%|%SERVICE_PORT%|%SERVICE_PORT_NAME%";
  assert.equal(statName(pattern, input), "web.prod|web|web.prod.svc.cluster.local|v1|8080|80|http");
  assert.equal(statName("%SUBSET_NAME%-%SUBSET_NAME%", input), "v1-v1");
});

test("a host outside Kubernetes has no short name", () => {
  const external = { ...service, registry: "External" as const };
  assert.equal(
    statName("%SERVICE%/%SERVICE_NAME%", { ...input, service: external }),
    `${service.hostname}/${service.hostname}`,
  );
});

test("where the application's port is not known its place stays", () => {
  const { targetPort: _, ...ofListener } = input;
  assert.equal(statName("%TARGET_PORT%", ofListener), "%TARGET_PORT%");
});
