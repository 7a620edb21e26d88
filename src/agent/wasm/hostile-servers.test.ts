/** Servers and registries that want our credentials, send us elsewhere or send too much. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { SILENT } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { selfSigned } from "../../../test/support/certificates.ts";
import { EMPTY_MODULE, image, startRegistry, startServer, tar } from "../../../test/support/fake-registry.ts";
import { type FetchOptions, offerOf } from "./fetch-module.ts";
import { pluginOf, unboxed } from "./unpack.ts";

const { certificate, key } = selfSigned("registry.example");
const SECRET = { username: "user", password: "password" };

interface Asked {
  readonly url: string;
  readonly authorization: string | undefined;
}

/** A server with TLS, and a certificate that nobody trusts. */
async function startTls(t: TestContext, answer: RequestListener) {
  const requests: Asked[] = [];
  const server = createServer({ cert: certificate, key }, (request, response) => {
    requests.push({ url: request.url ?? "", authorization: request.headers.authorization });
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return { host: `127.0.0.1:${typeof address === "object" ? address?.port : 0}`, requests };
}

async function startPlain(t: TestContext, answer: RequestListener) {
  const server = await startServer(answer);
  t.after(() => server.close());
  return server;
}

/** The module of a URL, or why there is none. */
async function fetchModule(
  url: string,
  { auths = {}, ...more }: Partial<FetchOptions> & { auths?: Readonly<Record<string, object>> } = {},
): Promise<string> {
  const module = {
    url,
    checksum: "",
    timeoutMs: 5_000,
    pullSecret: JSON.stringify({ auths }),
    pullPolicy: "Always" as const,
    resourceName: "x",
    resourceVersion: "1",
  };
  const options: FetchOptions = {
    insecureHosts: [],
    allowLocal: true,
    allowedRanges: [],
    clusterDomain: "cluster.local",
    proxies: {},
    httpTimeoutMs: 5_000,
    httpAttempts: 1,
    dockerConfigFolder: "/nowhere",
    log: SILENT,
    ...more,
  };
  try {
    const offer = await offerOf(module, options, AbortSignal.timeout(10_000));
    return (await offer.read()).toString("hex");
  } catch (thrown) {
    return errorText(thrown);
  }
}

/** A registry with one image, `a/b:v1`, that hands out its blob as `blob` says. */
function registryOf(blob: RequestListener, challenge = 'Basic realm="x"'): RequestListener {
  const one = image([{ mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", content: layerOf(EMPTY_MODULE) }]);
  return (request, response) => {
    if (request.headers.authorization === undefined) response.writeHead(401, { "www-authenticate": challenge }).end();
    else if (request.url === "/v2/") response.end("{}");
    else if (request.url?.includes("/blobs/")) blob(request, response);
    else response.writeHead(200, { "content-type": one.contentType }).end(one.manifest);
  };
}

function layerOf(plugin: Buffer): Buffer {
  return gzipSync(tar({ "plugin.wasm": plugin }));
}

test("a registry that answers TLS in plain text gets no request, unless it is configured as insecure", async (t) => {
  const images = {
    "a/b:v1": image([{ mediaType: "application/vnd.oci.image.layer.v1.tar+gzip", content: layerOf(EMPTY_MODULE) }]),
  };
  const registry = await startRegistry({
    images,
    auth: { kind: "basic", user: SECRET.username, password: SECRET.password },
  });
  t.after(() => registry.close());
  const url = `oci://${registry.host}/a/b:v1`;
  const auths = { [registry.host]: SECRET };
  assert.match(
    await fetchModule(url, { auths }),
    /plain text, which is allowed only if WASM_INSECURE_REGISTRIES lists it/,
  );
  assert.match(await fetchModule(url, { auths, insecureHosts: ["other.example"] }), /plain text/);
  assert.deepEqual(registry.requests, []);
  assert.equal(await fetchModule(url, { auths, insecureHosts: [registry.host] }), EMPTY_MODULE.toString("hex"));
  assert.equal(await fetchModule(url, { auths, insecureHosts: ["*"] }), EMPTY_MODULE.toString("hex"));
});

test("a reference to an image whose registry is no host is refused", async () => {
  for (const url of ["oci://a.example:80#.b.example/c/d", "oci://a.example?x:1/c/d"])
    assert.match(await fetchModule(url), /is no host/, url);
});

test("credentials do not follow from a registry with TLS to plain text on the same host, nor to another host", async (t) => {
  const other = await startTls(t, (_, response) => response.end(layerOf(EMPTY_MODULE)));
  const plain = await startPlain(t, (_, response) => response.end(layerOf(EMPTY_MODULE)));
  let location = `http://${plain.host}/blob`;
  const registry = await startTls(
    t,
    registryOf((_, response) => response.writeHead(307, { location }).end()),
  );
  const url = `oci://${registry.host}/a/b:v1`;
  const auths = { [registry.host]: SECRET };
  assert.match(await fetchModule(url, { auths, insecureHosts: [registry.host] }), /redirects to plain http/);
  assert.deepEqual(plain.requests, []);
  location = `https://${other.host}/blob`;
  assert.match(await fetchModule(url, { auths, insecureHosts: [registry.host] }), /self-signed certificate/);
  assert.equal(
    await fetchModule(url, { auths, insecureHosts: [registry.host, other.host] }),
    EMPTY_MODULE.toString("hex"),
  );
  assert.deepEqual(
    other.requests.map(({ authorization }) => authorization),
    [undefined],
  );
});

test("a token realm gets credentials over TLS only, and none of a private or local address (wasm-ssrf-bearer-realm)", async (t) => {
  const realm = await startPlain(t, (_, response) => response.end('{"token": "t"}'));
  const refused: readonly (readonly [string, RegExp])[] = [
    [`http://${realm.host}/token`, /tokens of 127.* plain http/],
    ["http://auth.example/token", /tokens of auth\.example come over plain http/],
    ["file:///etc/passwd", /unsafe bearer realm: its scheme is file:/],
    ["https://10.0.0.1/token", /10\.0\.0\.1 is a private address/],
    ["https://[64:ff9b::a9fe:a9fe]/token", /is a local address/],
    ["https://metadata.google.internal/token", /is a local address/],
  ];
  for (const [url, reason] of refused) {
    const registry = await startTls(
      t,
      registryOf(() => undefined, `Bearer realm="${url}",service="x"`),
    );
    // The registry itself may be local, since it is listed; what it names may not, unless everything may.
    const allowLocal = url.startsWith("http:");
    const options = { auths: { [registry.host]: SECRET }, insecureHosts: [registry.host], allowLocal };
    assert.match(await fetchModule(`oci://${registry.host}/a/b:v1`, options), reason, url);
  }
  assert.deepEqual(realm.requests, []);
});

test("an identity token is not sent on to the server that a token server redirects to", async (t) => {
  const thief = await startTls(t, (_, response) => response.end('{"token": "t"}'));
  const realm = await startTls(t, (_, response) =>
    response.writeHead(307, { location: `https://${thief.host}/token` }).end(),
  );
  const registry = await startTls(
    t,
    registryOf(() => undefined, `Bearer realm="https://${realm.host}/token"`),
  );
  const auths = { [registry.host]: { identitytoken: "identity" } };
  assert.match(await fetchModule(`oci://${registry.host}/a/b:v1`, { auths, insecureHosts: ["*"] }), /credentials/);
  assert.deepEqual(thief.requests, []);
});

test("a redirect to a private or local address is refused (wasm-ssrf-redirect-dial-context)", async (t) => {
  for (const target of ["http://10.0.0.1/m", "http://[2002:7f00:1::]/m", "http://169.254.169.254/", "http://[::1]/"]) {
    const server = await startPlain(t, (_, response) => response.writeHead(302, { location: target }).end());
    const options = { allowLocal: false, insecureHosts: [server.host] };
    assert.match(await fetchModule(`http://${server.host}/m`, options), /is a (private|local) address/, target);
  }
});

test("a module that says it is too long is not read", async (t) => {
  const server = await startPlain(t, (_, response) => {
    response.writeHead(200, { "content-length": String(2 ** 40) }).write("x");
  });
  assert.match(await fetchModule(`http://${server.host}/m`), /more than 268435456 bytes/);
});

test("archives that unpack to too much, hold too many files or long headers cost little", async () => {
  const zeros = gzipSync(Buffer.alloc(300 * 1024 * 1024));
  assert.equal(await unboxed(zeros), zeros);
  await assert.rejects(pluginOf(zeros), /unpacks to too much/);
  const entry = tar({ x: Buffer.alloc(0) }).subarray(0, 512);
  await assert.rejects(pluginOf(gzipSync(Buffer.concat(Array(20_000).fill(entry)))), /more than 10000 files/);
  const header = tar({ x: Buffer.from("1".repeat(4_000_000)) });
  header.write("x", 156);
  await assert.rejects(pluginOf(gzipSync(header)), /plugin\.wasm is not in the archive/);
});

test("the long name of a file in an archive counts", async () => {
  const name = `${"d/".repeat(200)}plugin.wasm`;
  const record = (length: number) => `${length} path=${name}\n`;
  const header = tar({ x: Buffer.from(`11 mtime=1\n${record(record(100).length)}`) }).subarray(0, -1024);
  header.write("x", 156);
  const archive = Buffer.concat([header, tar({ short: EMPTY_MODULE })]);
  assert.deepEqual(await pluginOf(gzipSync(archive)), EMPTY_MODULE);
});
