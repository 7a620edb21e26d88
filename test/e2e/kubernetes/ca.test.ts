/** The key that replicas share by a Secret, on a real API server. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { caCopyOf, caCopyOfFiles } from "#ca/authority/ca-secret.ts";
import { openSharedAuthority, type SharedAuthority, type SharedCaConfig } from "#ca/authority/shared-authority.ts";
import { selfSignedCa } from "#ca/keys/self-signed.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { createLogger, SILENT } from "#lib/log/log.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";

const DAY = 86_400_000;
const PATH = "/api/v1/namespaces/istio-system/secrets";

describe("the key of the mesh in a Secret", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  const parent = mkdtempSync(join(tmpdir(), "mizzen-shared-ca-"));
  let server: ApiServer;
  let now = Date.now();
  before(async () => {
    server = await startApiServer();
    await server.kubectl(["create", "namespace", "istio-system"]);
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    rmSync(parent, { recursive: true });
  });
  afterEach(() => server.kubectl(["-n", "istio-system", "delete", "secrets", "--all"]));

  const config = async (name: string, more: Partial<SharedCaConfig> = {}): Promise<SharedCaConfig> => ({
    api: await server.api(),
    namespace: "istio-system",
    folder: join(mkdtempSync(join(parent, "replica-")), name),
    trustDomain: "cluster.local",
    rootLifetimeMs: 100 * DAY,
    rootKey: "P-256",
    defaultTtlMs: DAY,
    maxTtlMs: 5 * DAY,
    gracePercent: 20,
    checkIntervalMs: 20,
    now: () => now,
    log: SILENT,
    ...more,
  });
  const open = async (name: string, signal: AbortSignal, more: Partial<SharedCaConfig> = {}) => {
    const shared = await openSharedAuthority(await config(name, more), signal);
    assert.ok(shared);
    void shared.follow(signal);
    return shared;
  };
  const serial = ({ authority }: SharedAuthority) => authority.bundle.issuer.certificate.serialNumber;
  const secret = async (): Promise<RawObject> => (await server.api()).call({ path: `${PATH}/istio-ca-secret` });

  test("of replicas that start together one makes the root, and all sign with it", async ({ signal }) => {
    const replicas = await Promise.all(["a", "b", "c"].map((name) => open(name, signal)));
    assert.equal(new Set(replicas.map(serial)).size, 1);
    const { type, data } = await secret();
    assert.equal(type, "istio.io/ca-root");
    assert.deepEqual(Object.keys(data as object).sort(), [
      "ca-cert.pem",
      "ca-key.pem",
      "cert-chain.pem",
      "root-cert.pem",
    ]);
  });

  test("the leader rotates the root in two steps, and the others follow at once", async ({ signal }) => {
    now = Date.now();
    const [leader, other] = [await open("a", signal), await open("b", signal)];
    const first = serial(leader);
    const leading = new AbortController();
    const rotating = leader.rotate(leading.signal);
    now += 81 * DAY;
    await eventually("a new root is trusted", () => other.authority.bundle.roots.length === 2);
    assert.equal(serial(other), first);
    now += 6 * DAY;
    await eventually("the new root signs", () => serial(other) !== first);
    assert.equal(serial(other), serial(leader));
    assert.equal(other.authority.trustBundle(), leader.authority.trustBundle());
    leading.abort();
    await rotating;
    // A replica that comes later has the same.
    assert.equal(serial(await open("c", signal)), serial(leader));
    now = Date.now();
  });

  test("a Secret that goes, breaks or has another root changes nothing", async ({ signal }) => {
    const lines: string[] = [];
    const replica = await open("a", signal, { log: createLogger({ write: (line) => lines.push(line) }) });
    const { bundle } = replica.authority;
    const told = (what: string) => eventually(what, () => lines.some((line) => line.includes(what)));
    const patch = (data: object) =>
      server.kubectl(
        ["-n", "istio-system", "patch", "secret", "istio-ca-secret", "--type=merge", "-p"].concat(
          JSON.stringify({ data }),
        ),
      );
    await patch({ "ca-key.pem": Buffer.from("garbage").toString("base64") });
    await told("is not used, the former one stays");
    const foreign = caCopyOfFiles(
      await selfSignedCa({ trustDomain: "x", lifetimeMs: DAY, keyKind: "P-256", now: Date.now() }),
    );
    await patch(
      Object.fromEntries(Object.entries(foreign).map(([name, text]) => [name, Buffer.from(text).toString("base64")])),
    );
    await told("nothing in common with the old one");
    await server.kubectl(["-n", "istio-system", "delete", "secret", "istio-ca-secret"]);
    await told("is gone: its key is used on");
    assert.equal(replica.authority.bundle, bundle);
  });

  test("what Istio wrote is used; a Secret without a key is told", async ({ signal }) => {
    const files = await selfSignedCa({ trustDomain: "x", lifetimeMs: DAY, keyKind: { rsaBits: 2048 }, now });
    const args = ["-n", "istio-system", "create", "secret", "generic", "istio-ca-secret", "--type=istio.io/ca-root"];
    await server.kubectl([
      ...args,
      `--from-literal=ca-cert.pem=${files.certificatePem}`,
      `--from-literal=ca-key.pem=${files.keyPem}`,
      "--from-literal=root-cert.pem=",
    ]);
    const replica = await open("a", signal);
    assert.equal(replica.authority.trustBundle().trim(), files.certificatePem.trim());
    assert.throws(() => caCopyOf({ metadata: { name: "x" }, data: { "ca-cert.pem": "AA==" } }), /ca-key.pem missing/);
  });

  test("rights that are missing are told with the rule, until they are there", async ({ signal }) => {
    const lines: string[] = [];
    await server.apply("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: poor, namespace: istio-system}\n");
    const token = (await server.kubectl(["-n", "istio-system", "create", "token", "poor"])).trim();
    const api = await server.api(token);
    const opening = openSharedAuthority(
      await config("a", { api, log: createLogger({ write: (line) => lines.push(line) }) }),
      signal,
    );
    await eventually("the rule", () =>
      lines.some((line) => /resources: \["secrets"\], verbs: \[.*"create"/.test(line)),
    );
    await server.kubectl([
      ...["create", "clusterrolebinding", "rich", "--clusterrole=cluster-admin"],
      "--serviceaccount=istio-system:poor",
    ]);
    assert.ok(await opening);
  });
});
