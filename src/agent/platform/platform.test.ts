import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { SILENT } from "#lib/log/log.ts";
import { parseAgentConfig } from "../agent-config.ts";
import { azureFacts } from "./azure.ts";
import { type DiscoverInput, discoverPlatform } from "./discover.ts";
import { regionOfZone, zoneOfResolvConf } from "./gcp.ts";
import { NO_PLATFORM } from "./platform.ts";

type Answer = string | undefined | { readonly body: string; readonly headers: Record<string, string> };

/** A metadata server; `undefined` is 404. */
async function metadataServer(t: TestContext, answer: (path: string, request: IncomingMessage) => Answer) {
  const server = createServer((request, response) => {
    const found = answer(request.url ?? "", request);
    if (found === undefined) response.writeHead(404).end("no");
    else if (typeof found === "string") response.end(found);
    else response.writeHead(200, found.headers).end(found.body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return `127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

function folder(t: TestContext, files: Readonly<Record<string, string>> = {}): string {
  const root = mkdtempSync(join(tmpdir(), "platform-"));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(root, path, ".."), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

function inputOf(env: Readonly<Record<string, string>>, root: string): DiscoverInput {
  return { config: parseAgentConfig(env).config.platform, ipv6: false, log: SILENT, root };
}

const IN_GCP: Readonly<Record<string, string>> = {
  "project/project-id": "proj",
  "project/numeric-project-id": "123",
  "instance/zone": "projects/123/zones/us-central1-f",
  "instance/name": "vm-1",
  "instance/id": "42",
};

test("discoverPlatform() asks Google's metadata server, and its Compute API for the labels of a machine", async (t) => {
  const seen: string[] = [];
  const host = await metadataServer(t, (path, { headers }) => {
    if (path.startsWith("/compute/v1/")) {
      seen.push(`${path} ${headers.authorization}`);
      return '{"labels":{"app":"db","n":1}}';
    }
    assert.equal(headers["metadata-flavor"], "Google");
    const wanted = path.replace("/computeMetadata/v1/", "");
    return wanted.startsWith("instance/service-accounts/default/token") ? '{"access_token":"t"}' : IN_GCP[wanted];
  });
  const env = { GCE_METADATA_HOST: host, GCP_COMPUTE_URL: `http://${host}` };
  assert.deepEqual(await discoverPlatform(inputOf(env, folder(t))), {
    metadata: {
      gcp_project: "proj",
      gcp_project_number: "123",
      gcp_location: "us-central1-f",
      gcp_gce_instance: "vm-1",
      gcp_gce_instance_id: "42",
    },
    locality: { region: "us-central1", zone: "us-central1-f" },
    labels: { app: "db" },
  });
  assert.deepEqual(seen, ["/compute/v1/projects/proj/zones/us-central1-f/instances/vm-1 Bearer t"]);
});

test("discoverPlatform() asks nobody about what GCP_METADATA says; the zone of a pod is in resolv.conf", async (t) => {
  const root = folder(t, { "etc/resolv.conf": "search a.svc us-east1-b.c.p.internal google.internal\n" });
  const fixed = { GCP_METADATA: "p|1|c|us-east1", GCP_QUOTA_PROJECT: "q", KUBERNETES_SERVICE_HOST: "10.0.0.1" };
  const { metadata, locality, labels } = await discoverPlatform(inputOf(fixed, root));
  assert.deepEqual(metadata, {
    gcp_project: "p",
    gcp_project_number: "1",
    gcp_gke_cluster_name: "c",
    gcp_location: "us-east1",
    gcp_gke_cluster_url: "https://container.googleapis.com/v1/projects/p/locations/us-east1/clusters/c",
    gcp_quota_project: "q",
  });
  assert.deepEqual([locality, labels], [{ region: "us-east1", zone: "us-east1-b" }, {}]);
  const zoned = await discoverPlatform(inputOf({ ...fixed, GCP_ZONE: "asia-south1-a" }, root));
  assert.deepEqual(zoned.locality, { region: "asia-south1", zone: "asia-south1-a" });
});

const IN_AWS: Readonly<Record<string, string>> = {
  "placement/region": "eu-west-1",
  "placement/availability-zone": "eu-west-1b",
  "instance-id": "i-1",
  "iam/info": '{"InstanceProfileArn":"arn:aws:iam::1:instance-profile/x"}',
};
const AWS_FACTS = {
  metadata: { aws_availability_zone: "eu-west-1b", aws_region: "eu-west-1", aws_instance_id: "i-1" },
  locality: { region: "eu-west-1", zone: "eu-west-1b" },
  labels: {},
};

for (const [version, token] of [
  ["IMDSv2", "secret"],
  ["IMDSv1", undefined],
] as const) {
  test(`discoverPlatform() asks AWS by ${version}`, async (t) => {
    const host = await metadataServer(t, (path, { method, headers }) => {
      if (path === "/latest/api/token") return method === "PUT" ? token : undefined;
      const allowed = headers["x-aws-ec2-metadata-token"] === token;
      return allowed ? IN_AWS[path.replace("/latest/meta-data/", "")] : undefined;
    });
    const env = { CLOUD_PLATFORM: "aws", AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://${host}/` };
    assert.deepEqual(await discoverPlatform(inputOf(env, folder(t))), AWS_FACTS);
  });
}

test("discoverPlatform() asks Azure by the newest version that it has", async (t) => {
  const host = await metadataServer(t, (path, { headers }) => {
    assert.equal(headers.metadata, "True");
    if (!path.includes("api-version")) return '{"newest-versions":["2021-02-01","2020-09-01"]}';
    if (path !== "/metadata/instance?api-version=2021-02-01") return undefined;
    return '{"compute":{"location":"centralus","zone":"1","name":"n","vmId":"v","tags":"A:b;C"}}';
  });
  const root = folder(t, { "sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n" });
  assert.deepEqual(await discoverPlatform(inputOf({ AZURE_METADATA_HOST: `http://${host}` }, root)), {
    metadata: { azure_name: "n", azure_location: "centralus", azure_vmId: "v", azure_A: "b", azure_C: "" },
    locality: { region: "centralus", zone: "1" },
    labels: {},
  });
});

test("discoverPlatform() soon gives up a server that is silent, refuses, or talks nonsense", async (t) => {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const address = silent.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const at = (url: string) => inputOf({ CLOUD_PLATFORM: "aws", AWS_EC2_METADATA_SERVICE_ENDPOINT: url }, folder(t));
  const start = performance.now();
  assert.deepEqual(await discoverPlatform(at(`http://127.0.0.1:${port}`)), NO_PLATFORM);
  assert.ok(performance.now() - start < 10_000);
  assert.deepEqual(await discoverPlatform(at("http://127.0.0.1:1")), NO_PLATFORM);
  const endless = await metadataServer(t, () => "x".repeat(2 * 1024 * 1024));
  assert.deepEqual(await discoverPlatform(at(`http://${endless}`)), NO_PLATFORM);
});

test("discoverPlatform() asks nobody where the platform is none", async (t) => {
  const env = { CLOUD_PLATFORM: "none", GCP_METADATA: "p|1|c|l" };
  assert.deepEqual(await discoverPlatform(inputOf(env, folder(t))), NO_PLATFORM);
});

for (const response of ["", "[]", "{", '{"compute":3}', '{"compute":{"name":3,"tagsList":"x"}}']) {
  test(`azureFacts() reads nothing from ${response || "an empty answer"}`, () => {
    assert.deepEqual(azureFacts(response), NO_PLATFORM);
  });
}

test("regionOfZone() and zoneOfResolvConf() know what is no zone", () => {
  assert.equal(regionOfZone("us-central1"), undefined);
  assert.equal(regionOfZone("a-b-c-d"), undefined);
  assert.equal(zoneOfResolvConf("nameserver 10.0.0.1\nsearch a.svc cluster.local"), undefined);
});
