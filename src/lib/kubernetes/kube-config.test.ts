import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inClusterAccess } from "./cluster-access.ts";
import { readKubeConfig, untrustedKubeConfig } from "./kube-config.ts";

/** A folder with files, for one test. */
function folderWith(files: Readonly<Record<string, string>>): Disposable & { readonly path: (name: string) => string } {
  const folder = mkdtempSync(join(tmpdir(), "kube-config-"));
  const path = (name: string) => join(folder, name);
  for (const [name, text] of Object.entries(files)) writeFileSync(path(name), text);
  return { path, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

function config(user: string, cluster = "server: https://10.0.0.1:6443"): string {
  return `apiVersion: v1
kind: Config
current-context: here
contexts:
- name: here
  context: {cluster: c, user: u, namespace: shop}
clusters:
- name: c
  cluster: {${cluster}}
users:
- name: u
  user: {${user}}
`;
}

test("readKubeConfig() reads server, root, namespace and a token", async () => {
  const ca = Buffer.from("ROOT").toString("base64");
  const cluster = `server: "https://a:1/base", certificate-authority-data: ${ca}, tls-server-name: api`;
  using folder = folderWith({ config: config("token: secret", cluster) });
  const access = await readKubeConfig({ files: [folder.path("config")] });
  const { server, namespace, serverName, insecure } = access;
  assert.deepEqual(
    [server, access.ca, namespace, serverName, insecure],
    ["https://a:1/base", "ROOT", "shop", "api", false],
  );
  assert.equal((await access.credentials()).authorization, "Bearer secret");
});

test("readKubeConfig() reads certificates from files beside it, and a token file anew each time", async () => {
  using folder = folderWith({
    config: config("client-certificate: c.pem, client-key: k.pem, tokenFile: token"),
    "c.pem": "CERT",
    "k.pem": "KEY",
    token: "one\n",
  });
  const { credentials } = await readKubeConfig({ files: [folder.path("config")] });
  assert.deepEqual(await credentials(), { certificate: "CERT", key: "KEY", authorization: "Bearer one" });
  writeFileSync(folder.path("token"), "two");
  assert.equal((await credentials()).authorization, "Bearer two");
});

test("a proxy of the environment counts where the kubeconfig has none, and in pods", async () => {
  const environment = { HTTPS_PROXY: "http://around:1", NO_PROXY: "b" };
  const proxyFor = async (cluster: string) => {
    using folder = folderWith({ config: config("", cluster) });
    return (await readKubeConfig({ files: [folder.path("config")], environment })).proxy;
  };
  assert.equal(await proxyFor('server: "https://a:1"'), "http://around:1");
  assert.equal(await proxyFor('server: "https://b:1"'), undefined);
  assert.equal(await proxyFor('server: "https://a:1", proxy-url: "http://own:2"'), "http://own:2");
  assert.equal(untrustedKubeConfig(config("", "server: https://a"), "s", { environment }).proxy, "http://around:1");
  const pod = { host: "10.96.0.1", port: "443", folder: "/f", readText: async () => "text" };
  assert.equal((await inClusterAccess({ ...pod, environment })).proxy, "http://around:1");
  assert.equal((await inClusterAccess(pod)).proxy, undefined);
});

test("readKubeConfig() reads a proxy, and in whose name to ask", async () => {
  const user = "token: t, as: anna, as-uid: '7', as-groups: [a, b], as-user-extra: {example.com/scope: [p, q]}";
  using folder = folderWith({ config: config(user, 'server: "https://a:1", proxy-url: "http://proxy:3128"') });
  const { proxy, impersonation } = await readKubeConfig({ files: [folder.path("config")] });
  assert.equal(proxy, "http://proxy:3128");
  assert.deepEqual(impersonation, {
    "Impersonate-User": "anna",
    "Impersonate-Uid": "7",
    "Impersonate-Group": ["a", "b"],
    "Impersonate-Extra-example.com%2Fscope": ["p", "q"],
  });
});

test("readKubeConfig() joins files, of which the first mention counts, and takes another context", async () => {
  using folder = folderWith({
    a: "contexts: [{name: other, context: {cluster: c}}]\n",
    b: config("username: me, password: pw"),
  });
  const files = [folder.path("a"), folder.path("b")];
  const { credentials } = await readKubeConfig({ files });
  assert.equal((await credentials()).authorization, `Basic ${Buffer.from("me:pw").toString("base64")}`);
  const other = await readKubeConfig({ files, context: "other" });
  assert.deepEqual(await other.credentials(), {});
});

test("readKubeConfig() asks a program for credentials, and again when they have ended", async () => {
  const program = `#!/bin/sh
echo x >>"$COUNT"
printf '{"status": {"token": "%s", "expirationTimestamp": "%s"}}' "$(wc -l <"$COUNT")$NAME" "$1"
`;
  using folder = folderWith({ program });
  chmodSync(folder.path("program"), 0o755);
  const user = (until: string) => `exec: {command: ./program, args: ["${until}"], env: [{name: NAME, value: x}]}`;
  const ask = async (until: string) => {
    writeFileSync(folder.path("config"), config(user(until)));
    writeFileSync(folder.path("count"), "");
    const environment = { COUNT: folder.path("count"), PATH: "/usr/bin:/bin" };
    const { credentials } = await readKubeConfig({ files: [folder.path("config")], environment });
    return [(await credentials()).authorization, (await credentials()).authorization];
  };
  assert.deepEqual(await ask("2999-01-01T00:00:00Z"), ["Bearer 1x", "Bearer 1x"]);
  assert.deepEqual(await ask("2001-01-01T00:00:00Z"), ["Bearer 1x", "Bearer 2x"]);
});

for (const [name, text, message] of [
  ["no YAML", "a: [", /config:1: is not YAML/],
  ["no object", "- a", /holds no kubeconfig/],
  ["no current context", "contexts: []", /has no current-context/],
  ["an unknown context", "current-context: x", /has no context "x"/],
  ["a proxy of another kind", config("", "server: https://a, proxy-url: socks5://p"), /proxy-url "socks5:\/\/p" is no/],
  ["groups of nobody", config("as-groups: [a]"), /need a user: as/],
  ["a server that is no URL", config("", "server: nowhere"), /server of cluster "c" is no URL/],
  [
    "a missing root",
    config("", "server: https://a, certificate-authority: gone.pem"),
    /certificate-authority \S+gone.pem cannot/,
  ],
] as const) {
  test(`readKubeConfig() refuses ${name}`, async () => {
    using folder = folderWith({ config: text });
    await assert.rejects(readKubeConfig({ files: [folder.path("config")] }), { code: "KUBE_CONFIG_INVALID", message });
  });
}

test("readKubeConfig() says which program gave no credentials", async () => {
  using folder = folderWith({ config: config("exec: {command: ./none}") });
  const { credentials } = await readKubeConfig({ files: [folder.path("config")] });
  await assert.rejects(credentials(), { code: "KUBE_CREDENTIALS_FAILED", message: /"\.\/none"/ });
});

test("inClusterAccess() reads what is mounted in the pod, the token anew each time", async () => {
  const files: Record<string, string> = { "/sa/ca.crt": "ROOT", "/sa/namespace": "shop", "/sa/token": "one\n" };
  const readText = async (file: string) => {
    const text = files[file];
    if (text === undefined) throw new Error("no such file");
    return text;
  };
  const access = await inClusterAccess({ host: "fd00::1", port: "443", folder: "/sa", readText });
  assert.deepEqual([access.server, access.ca, access.namespace], ["https://[fd00::1]:443", "ROOT", "shop"]);
  files["/sa/token"] = "two";
  assert.deepEqual(await access.credentials(), { authorization: "Bearer two" });
  delete files["/sa/token"];
  await assert.rejects(access.credentials(), { code: "KUBE_CONFIG_INVALID", message: /\/sa\/token/ });
});

test("untrustedKubeConfig() takes what holds everything itself", async () => {
  const ca = Buffer.from("ROOT").toString("base64");
  const [certificate, key] = ["CERT", "KEY"].map((text) => Buffer.from(text).toString("base64"));
  const user = `token: secret, client-certificate-data: ${certificate}, client-key-data: ${key}`;
  const access = untrustedKubeConfig(config(user, `server: https://a:1, certificate-authority-data: ${ca}`), "x");
  assert.deepEqual([access.server, access.ca], ["https://a:1", "ROOT"]);
  assert.deepEqual(await access.credentials(), { certificate: "CERT", key: "KEY", authorization: "Bearer secret" });
});

test("untrustedKubeConfig() refuses programs and files, and says which", () => {
  for (const [user, wrong] of [
    ["exec: {command: sh}", "exec"],
    ["auth-provider: {name: gcp}", "auth-provider gcp"],
    ["tokenFile: /etc/passwd", "tokenFile"],
    ["client-key: /k", "client-key"],
    ["client-certificate: /c", "client-certificate"],
  ] as const) {
    assert.throws(() => untrustedKubeConfig(config(user), "of Secret s"), new RegExp(`of Secret s: ${wrong} is not`));
  }
  const known = { allowed: new Set(["gcp"]) };
  assert.throws(
    () => untrustedKubeConfig(config("auth-provider: {name: gcp}"), "x", known),
    /gcp is not known any more/,
  );
  const root = config("token: t", "server: https://a:1, certificate-authority: /etc/passwd");
  assert.throws(() => untrustedKubeConfig(root, "x"), /certificate-authority is not allowed/);
  assert.throws(() => untrustedKubeConfig("garbage", "x"), /holds no kubeconfig/);
});

test("untrustedKubeConfig() does what is allowed, and needs nothing for OpenID Connect", async () => {
  const program = `exec: {apiVersion: v1, command: echo, args: ['{"status": {"token": "given"}}']}`;
  const rules = { allowed: new Set(["exec"]), environment: { PATH: process.env.PATH } };
  const access = untrustedKubeConfig(config(program), "x", rules);
  assert.equal((await access.credentials()).authorization, "Bearer given");
  assert.throws(() => untrustedKubeConfig(config("tokenFile: /t"), "x", rules), /tokenFile is not allowed/);
  const oidc = untrustedKubeConfig(config("auth-provider: {name: oidc, config: {id-token: mine}}"), "x");
  assert.equal((await oidc.credentials()).authorization, "Bearer mine");
});
