import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { createLogger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import {
  DOCKER_MANIFEST,
  EMPTY_MODULE,
  type Handle,
  image,
  type Layer,
  sha256,
  startRegistry,
  startServer,
  tar,
  tarGzip,
} from "../../../test/support/fake-registry.ts";
import { agentMetrics } from "../metrics.ts";
import type { RemoteModule } from "./extension.ts";
import { ModuleCache, type ModuleCacheOptions } from "./module-cache.ts";

type Context = { after(fn: () => void): void };

const OTHER_MODULE = Buffer.concat([EMPTY_MODULE, Buffer.from([0, 1, 0])]);
const OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";
const DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip";
const WASM_LAYER = "application/vnd.module.wasm.content.layer.v1+wasm";
const compat = (module: Buffer): Layer => ({ mediaType: OCI_LAYER, content: tarGzip({ "./plugin.wasm": module }) });

function setUp(t: Context, options: Partial<ModuleCacheOptions> = {}) {
  const folder = temporaryFolder(t);
  const metrics = agentMetrics();
  const lines: string[] = [];
  const cache = new ModuleCache({
    folder,
    expiryMs: 1_000,
    purgeEveryMs: 1_000,
    insecureHosts: ["*"],
    allowLocal: true,
    allowedRanges: [],
    clusterDomain: "cluster.local",
    httpTimeoutMs: 2_000,
    httpAttempts: 2,
    dockerConfigFolder: folder,
    proxies: {},
    log: createLogger({ write: (line) => lines.push(line) }),
    metrics: metrics.wasm,
    ...options,
  });
  const get = (url: string, more: Partial<RemoteModule> = {}) =>
    cache.get({
      url,
      checksum: "",
      timeoutMs: 5_000,
      pullSecret: undefined,
      pullPolicy: "UNSPECIFIED_POLICY",
      resourceName: "default.plugin",
      resourceVersion: "1",
      ...more,
    });
  return { folder, cache, get, metrics, lines };
}

async function serve(t: Context, handle: Handle | Buffer) {
  const server = await startServer(
    Buffer.isBuffer(handle) ? (_, response) => void response.end(handle) : (...call) => handle(...call),
  );
  t.after(() => server.close());
  return server;
}

test("ModuleCache fetches a module over HTTP once and keeps it by its digest", async (t) => {
  const server = await serve(t, EMPTY_MODULE);
  const { folder, get, metrics } = setUp(t);
  const url = `http://${server.host}/filter.wasm`;
  const path = await get(url);
  assert.equal(path, join(folder, sha256(url), `${sha256(EMPTY_MODULE)}.wasm`));
  assert.deepEqual(readFileSync(path), EMPTY_MODULE);
  assert.equal(statSync(path).mode & 0o777, 0o644);
  assert.equal(await get(url, { resourceVersion: "2" }), path);
  assert.equal(server.requests.length, 1);
  assert.match(metrics.text(), /wasm_cache_entries 1\n/);
  assert.match(metrics.text(), /wasm_remote_fetch_count{result="success"} 1\n/);
});

test("ModuleCache serves all who ask at the same time by one fetch", async (t) => {
  const server = await serve(t, EMPTY_MODULE);
  const { get } = setUp(t);
  const paths = await Promise.all(Array.from({ length: 5 }, () => get(`http://${server.host}/m`)));
  assert.equal(new Set(paths).size, 1);
  assert.equal(server.requests.length, 1);
});

test("ModuleCache finds the module in gzip, in tar, and in both", async (t) => {
  for (const packed of [gzipSync(EMPTY_MODULE), tar({ "a.wasm": EMPTY_MODULE }), tarGzip({ "a.wasm": EMPTY_MODULE })]) {
    const server = await serve(t, packed);
    const { get } = setUp(t);
    assert.deepEqual(readFileSync(await get(`http://${server.host}/`)), EMPTY_MODULE);
  }
});

test("ModuleCache asks again with policy Always only when the object changed", async (t) => {
  const server = await serve(t, EMPTY_MODULE);
  const { get } = setUp(t);
  const url = `http://${server.host}/m`;
  await get(url, { pullPolicy: "Always" });
  await get(url, { pullPolicy: "Always" });
  assert.equal(server.requests.length, 1);
  await get(url, { pullPolicy: "Always", resourceVersion: "2" });
  assert.equal(server.requests.length, 2);
  await get(url, { pullPolicy: "IfNotPresent", resourceVersion: "3" });
  assert.equal(server.requests.length, 2);
});

test("ModuleCache refuses a module of another checksum, and takes one of the right checksum", async (t) => {
  const server = await serve(t, EMPTY_MODULE);
  const { get, metrics } = setUp(t);
  const url = `http://${server.host}/m`;
  await assert.rejects(get(url, { checksum: sha256(OTHER_MODULE) }), {
    code: "WASM_CHECKSUM_MISMATCH",
    message: `module downloaded from ${url} has checksum ${sha256(EMPTY_MODULE)}, which does not match: ${sha256(OTHER_MODULE)}`,
  });
  assert.match(metrics.text(), /result="checksum_mismatched"} 1\n/);
  await get(url, { checksum: sha256(EMPTY_MODULE) });
});

test("ModuleCache tries again after 5xx and gives up on 4xx, on what is no module and on what is too slow", async (t) => {
  let calls = 0;
  const flaky = await serve(t, (_, response) => {
    response.writeHead(calls++ === 0 ? 503 : 200).end(EMPTY_MODULE);
  });
  const { get } = setUp(t);
  await get(`http://${flaky.host}/`);
  assert.equal(calls, 2);
  const missing = await serve(t, (_, response) => void response.writeHead(404).end());
  await assert.rejects(get(`http://${missing.host}/`), (error: Error) => /status code 404/.test(String(error.cause)));
  assert.equal(missing.requests.length, 1);
  const page = await serve(t, Buffer.from("<html>"));
  await assert.rejects(get(`http://${page.host}/`), { code: "WASM_IMAGE_INVALID" });
  const silent = await serve(t, () => undefined);
  await assert.rejects(get(`http://${silent.host}/`, { timeoutMs: 100 }), (error: Error) =>
    /no answer in time/.test(String(error.cause)),
  );
  for (const url of ["ftp://x/y", "no url", "oci://UPPER/case", "http://"]) await assert.rejects(get(url));
});

test("ModuleCache refuses servers on this machine and its link, by address, name, redirect and realm", async (t) => {
  const target = await serve(t, EMPTY_MODULE);
  const { get } = setUp(t, { allowLocal: false });
  const port = target.host.split(":")[1];
  for (const host of [
    target.host,
    `localhost:${port}`,
    `[::1]:${port}`,
    "169.254.169.254",
    "metadata.google.internal",
    `[::ffff:127.0.0.1]:${port}`,
    `0.0.0.0:${port}`,
    `2130706433:${port}`,
  ])
    await assert.rejects(get(`http://${host}/m`), (error: Error & { cause?: { code: string } }) => {
      assert.equal(error.cause?.code, "WASM_SERVER_REFUSED", host);
      return true;
    });
  await assert.rejects(get(`oci://${target.host}/x/y:v1`));
  assert.equal(target.requests.length, 0);
  const redirecting = await serve(t, (_, response) => {
    response.writeHead(302, { location: "http://169.254.169.254/latest/meta-data" }).end();
  });
  // The host is listed, so it may be local itself; where it leads to may not.
  const listed = setUp(t, { allowLocal: false, insecureHosts: [redirecting.host] });
  await assert.rejects(listed.get(`http://${redirecting.host}/m`), (error: Error & { cause?: { code: string } }) => {
    assert.equal(error.cause?.code, "WASM_SERVER_REFUSED");
    return true;
  });
});

test("ModuleCache drops credentials when a registry redirects to another host", async (t) => {
  const blobs = await serve(t, compat(EMPTY_MODULE).content);
  const one = image([compat(EMPTY_MODULE)]);
  const registry = await serve(t, (request, response) => {
    if (request.url?.includes("/blobs/")) response.writeHead(307, { location: `http://${blobs.host}/blob` }).end();
    else if (request.headers.authorization === undefined)
      response.writeHead(401, { "www-authenticate": 'Basic realm="x"' }).end();
    else response.writeHead(200, { "content-type": one.contentType }).end(request.url === "/v2/" ? "" : one.manifest);
  });
  const pullSecret = JSON.stringify({ auths: { [registry.host]: { username: "u", password: "p" } } });
  const { get } = setUp(t);
  await get(`oci://${registry.host}/a/b:v1`, { pullSecret });
  assert.deepEqual(
    blobs.requests.map(({ authorization }) => authorization),
    [undefined],
  );
});

test("ModuleCache fetches images as Docker, compatible and artifact images", async (t) => {
  const images = {
    "a/docker:v1": image(
      [{ mediaType: DOCKER_LAYER, content: tarGzip({ "app/plugin.wasm": EMPTY_MODULE }) }],
      DOCKER_MANIFEST,
    ),
    "a/compat:v1": image([
      { mediaType: OCI_LAYER, content: tarGzip({ "x.txt": Buffer.from("x") }) },
      compat(EMPTY_MODULE),
    ]),
    "a/artifact:v1": image([
      { mediaType: "application/vnd.module.wasm.config.v1+json", content: Buffer.from("{}") },
      { mediaType: WASM_LAYER, content: EMPTY_MODULE },
    ]),
  };
  const registry = await startRegistry({ images });
  t.after(() => registry.close());
  const { get, folder } = setUp(t);
  for (const [name, { digest }] of Object.entries(images)) {
    const path = await get(`oci://${registry.host}/${name}`);
    assert.deepEqual(readFileSync(path), EMPTY_MODULE, name);
    assert.equal(path, join(folder, sha256(`oci://${registry.host}/${name.split(":")[0]}`), `${digest}.wasm`));
    assert.equal(await get(`oci://${registry.host}/${name.split(":")[0]}@sha256:${digest}`), path);
  }
  const asked = registry.requests.filter(({ url }) => url.includes("manifests")).length;
  assert.equal(asked, 3, "an image that is kept is not asked for by its digest");
});

test("ModuleCache follows an index to the image for linux/amd64", async (t) => {
  const one = image([compat(EMPTY_MODULE)]);
  const index = Buffer.from(
    JSON.stringify({
      mediaType: "application/vnd.oci.image.index.v1+json",
      manifests: [
        {
          mediaType: one.contentType,
          digest: `sha256:${"0".repeat(64)}`,
          platform: { os: "linux", architecture: "arm64" },
        },
        {
          mediaType: one.contentType,
          digest: `sha256:${one.digest}`,
          platform: { os: "linux", architecture: "amd64" },
        },
      ],
    }),
  );
  const list = {
    ...one,
    manifest: index,
    digest: sha256(index),
    contentType: "application/vnd.oci.image.index.v1+json",
  };
  const registry = await startRegistry({ images: { "a/b:v1": list, "a/b:amd64": one } });
  t.after(() => registry.close());
  assert.match(await setUp(t).get(`oci://${registry.host}/a/b:v1`), new RegExp(`${one.digest}.wasm$`));
});

test("ModuleCache shows registries the credentials of the pull secret, or of the machine", async (t) => {
  const images = { "a/b:v1": image([compat(EMPTY_MODULE)]) };
  for (const kind of ["basic", "basic for images", "bearer"] as const) {
    const registry = await startRegistry({ images, auth: { kind, user: "me", password: "pass:word" } });
    t.after(() => registry.close());
    const url = `oci://${registry.host}/a/b:v1`;
    const auth = Buffer.from("me:pass:word").toString("base64");
    await setUp(t).get(url, { pullSecret: JSON.stringify({ auths: { [`http://${registry.host}/v1/`]: { auth } } }) });
    const machine = setUp(t);
    writeFileSync(join(machine.folder, "config.json"), JSON.stringify({ auths: { [registry.host]: { auth } } }));
    await machine.get(url);
    for (const pullSecret of ['{"auths":{}}', "null", "not json", '{"auths":{"other":{"auth":"eDp5"}}}'])
      await assert.rejects(setUp(t).get(url, { pullSecret }), pullSecret);
  }
  const registry = await startRegistry({ images, auth: { kind: "bearer", user: "me", password: "x" } });
  t.after(() => registry.close());
  const pullSecret = JSON.stringify({ auths: { [registry.host]: { identitytoken: "identity" } } });
  await setUp(t).get(`oci://${registry.host}/a/b:v1`, { pullSecret });
  const token = JSON.stringify({ auths: { [registry.host]: { registrytoken: "registry-token" } } });
  await setUp(t).get(`oci://${registry.host}/a/b:v1`, { pullSecret: token });
});

test("ModuleCache pulls the tag latest again when the object changed, and notices that it moved", async (t) => {
  const images: Record<string, ReturnType<typeof image>> = { "a/b:latest": image([compat(EMPTY_MODULE)]) };
  const registry = await startRegistry({ images });
  t.after(() => registry.close());
  const { get } = setUp(t);
  const url = `oci://${registry.host}/a/b:latest`;
  const first = await get(url);
  images["a/b:latest"] = image([compat(OTHER_MODULE)]);
  assert.equal(await get(url), first);
  const second = await get(url, { resourceVersion: "2" });
  assert.notEqual(second, first);
  assert.deepEqual(readFileSync(second), OTHER_MODULE);
});

test("ModuleCache refuses images that are broken", async (t) => {
  const lying = {
    ...image([compat(EMPTY_MODULE)]),
    blobs: new Map([[`sha256:${sha256(compat(EMPTY_MODULE).content)}`, Buffer.from("other")]]),
  };
  const registry = await startRegistry({
    images: {
      "a/lying:v1": lying,
      "a/empty:v1": image([]),
      "a/strange:v1": image([{ mediaType: "text/plain", content: EMPTY_MODULE }]),
      "a/noplugin:v1": image([{ mediaType: OCI_LAYER, content: tarGzip({ "other.wasm": EMPTY_MODULE }) }]),
      "a/nogzip:v1": image([{ mediaType: OCI_LAYER, content: EMPTY_MODULE }]),
      "a/nojson:v1": { ...image([]), manifest: Buffer.from("<html>") },
    },
  });
  t.after(() => registry.close());
  const { get, metrics } = setUp(t);
  for (const name of ["lying", "empty", "strange", "noplugin", "nogzip", "nojson", "absent"])
    await assert.rejects(get(`oci://${registry.host}/a/${name}:v1`), name);
  assert.match(metrics.text(), /result="manifest_failure"} 2\n/);
  await assert.rejects(get(`oci://${registry.host}/a/empty@sha256:${"0".repeat(64)}`));
});

test("ModuleCache removes modules that nobody asked for, also those of earlier runs", async (t) => {
  const server = await serve(t, EMPTY_MODULE);
  let now = Date.now();
  const { folder, cache, get } = setUp(t, { now: () => now });
  const path = await get(`http://${server.host}/m`);
  const forgotten = join(path, "..", `${"a".repeat(64)}.wasm`);
  const foreign = join(folder, "core.dump");
  for (const file of [forgotten, foreign]) {
    writeFileSync(file, "");
    utimesSync(file, 1, 1);
  }
  await cache.purge();
  assert.deepEqual(
    [path, forgotten, foreign].map((file) => existsSync(file)),
    [true, false, true],
  );
  now += 2_000;
  await cache.purge();
  assert.equal(existsSync(path), false);
  assert.equal(await get(`http://${server.host}/m`), path);
  assert.equal(server.requests.length, 2);
});

test("ModuleCache says that it cannot write, and works when it can", async (t) => {
  const server = await serve(t, EMPTY_MODULE);
  const file = join(temporaryFolder(t), "file");
  writeFileSync(file, "");
  await assert.rejects(
    setUp(t, { folder: join(file, "below") }).get(`http://${server.host}/m`),
    /file already exists, mkdir .*file/,
  );
});

test("modules come through the proxies of the environment, unless those leave their servers out", async (t) => {
  const proxy = await startServer((_, response) => response.end(EMPTY_MODULE));
  t.after(() => proxy.close());
  const direct = await startServer((_, response) => response.end(OTHER_MODULE));
  t.after(() => direct.close());
  const proxies = { HTTP_PROXY: proxy.host };
  const { get } = setUp(t, { proxies, allowLocal: false, insecureHosts: [direct.host] });
  assert.deepEqual(readFileSync(await get("http://modules.example/a.wasm?x=1")), EMPTY_MODULE);
  assert.deepEqual(
    proxy.requests.map(({ url }) => url),
    ["http://modules.example/a.wasm?x=1"],
  );
  assert.deepEqual(readFileSync(await get(`http://${direct.host}/b.wasm`)), OTHER_MODULE);
  const refused = await get("http://169.254.169.254/a.wasm").catch(errorText);
  assert.match(String(refused), /169\.254\.169\.254 is a local address/);
});
