import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { DEFAULT_PROXY_CONFIG, type ProxyConfig } from "#config/proxy-config/proxy-config.ts";
import { SILENT } from "#lib/log/log.ts";
import { selfSigned } from "../../test/support/certificates.ts";
import { temporaryFolder } from "../../test/support/fake-control-plane.ts";
import { parseAgentConfig } from "./agent-config.ts";
import { HERE } from "./place.ts";
import { caServer, controlPlaneServer } from "./trust.ts";

type Context = { after(fn: () => void): void };

interface Given {
  readonly env?: Record<string, string>;
  readonly files?: readonly string[];
  /** Of all files. */
  readonly content?: string;
  readonly proxyConfig?: Partial<ProxyConfig>;
}

const { certificate: ROOT, key: KEY } = selfSigned("root");
const MOUNTED = "var/run/secrets/istio/root-cert.pem";
const CUSTOM = "etc/certs/root-cert.pem";

function setUp(t: Context, { env = {}, files = [MOUNTED], content = ROOT, proxyConfig = {} }: Given) {
  const folder = temporaryFolder(t);
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), content);
  }
  const input = {
    config: parseAgentConfig(env).config,
    proxyConfig: { ...DEFAULT_PROXY_CONFIG, ...proxyConfig },
    place: { ...HERE, folder },
    log: SILENT,
  };
  return {
    at: (file: string) => join(folder, file),
    xds: () => controlPlaneServer(input),
    ca: () => caServer(input),
  };
}

test("controlPlaneServer() and caServer() take the mounted root, unless another is named", async (t) => {
  const { at, xds, ca } = setUp(t, { files: [MOUNTED] });
  assert.equal((await xds()).rootCertificate, at(MOUNTED));
  assert.equal((await ca()).rootCertificate, at(MOUNTED));
  const named = setUp(t, { env: { XDS_ROOT_CA: "x.pem", CA_ROOT_CA: "c.pem" }, files: ["x.pem", "c.pem"] });
  assert.equal((await named.xds()).rootCertificate, named.at("x.pem"));
  assert.equal((await named.ca()).rootCertificate, named.at("c.pem"));
  const system = setUp(t, { env: { XDS_ROOT_CA: "SYSTEM", CA_ROOT_CA: "SYSTEM" }, files: [] });
  assert.equal((await system.xds()).rootCertificate, "system");
  assert.equal((await system.ca()).rootCertificate, "system");
});

test("controlPlaneServer() and caServer() go through the proxy of the environment", async (t) => {
  const proxyConfig = { discoveryAddress: "istiod.istio-system.svc:15012" };
  const env = { https_proxy: "proxy.example:3128", HTTP_PROXY: "http://other.example", CA_ADDR: "10.1.2.3:15010" };
  const { xds, ca } = setUp(t, { env, proxyConfig });
  assert.deepEqual([(await xds()).proxy, (await ca()).proxy], Array(2).fill("http://proxy.example:3128"));
  const near = setUp(t, { env: { ...env, NO_PROXY: ".svc,10.0.0.0/8" }, proxyConfig });
  assert.deepEqual([(await near.xds()).proxy, (await near.ca()).proxy], [undefined, undefined]);
  const wrong = setUp(t, { env: { HTTPS_PROXY: "socks5://proxy.example" }, proxyConfig });
  await assert.rejects(wrong.xds(), { code: "PROXY_INVALID", message: /HTTPS_PROXY .* in NO_PROXY/ });
});

test("caServer() takes an address as gRPC names one that is looked up", async (t) => {
  for (const [address, expected] of [
    ["ca.example:443", "ca.example:443"],
    ["dns:ca.example:443", "ca.example:443"],
    ["dns:///ca.example:443", "ca.example:443"],
    ["dns://8.8.8.8/ca.example:443", "ca.example:443"],
    ["passthrough:///10.0.0.1:15010", "10.0.0.1:15010"],
    ["dns:15012", "dns:15012"],
  ] as const) {
    const { ca } = setUp(t, { env: { CA_ADDR: address } });
    assert.equal((await ca()).address, expected);
  }
});

test("controlPlaneServer() prefers certificates of the installation, caServer() only where the provider is custom", async (t) => {
  const { at, xds, ca } = setUp(t, { files: [MOUNTED, CUSTOM] });
  assert.equal((await xds()).rootCertificate, at(CUSTOM));
  assert.equal((await ca()).rootCertificate, at(MOUNTED));
  for (const provider of ["istiod", "kubernetes", "k8s.io/legacy"]) {
    const other = setUp(t, { env: { PILOT_CERT_PROVIDER: provider }, files: [MOUNTED] });
    assert.equal((await other.ca()).rootCertificate, other.at(MOUNTED), provider);
  }
  const custom = setUp(t, { env: { PILOT_CERT_PROVIDER: "custom" }, files: [MOUNTED, CUSTOM] });
  assert.equal((await custom.ca()).rootCertificate, custom.at(CUSTOM));
});

test("controlPlaneServer() and caServer() reject when there is nothing to recognise the server by", async (t) => {
  const missing = setUp(t, { files: [] });
  await assert.rejects(missing.xds(), {
    code: "ROOT_CERTIFICATE_MISSING",
    message: /root CA file for XDS does not exist/,
  });
  await assert.rejects(missing.ca(), { message: /root CA file for CA does not exist .*root-cert\.pem/ });
  const none = setUp(t, { env: { PILOT_CERT_PROVIDER: "none" } });
  await assert.rejects(none.xds(), /root CA file for XDS required but configured provider as none/);
  await assert.rejects(none.ca(), /root CA file for CA required but configured provider as none/);
  const wrong = setUp(t, { env: { XDS_ROOT_CA: "gone.pem", CA_ROOT_CA: "gone.pem" } });
  await assert.rejects(wrong.xds(), /does not exist .*gone\.pem/);
  await assert.rejects(wrong.ca(), /does not exist .*gone\.pem/);
});

test("controlPlaneServer() and caServer() reject a file without a certificate by its name", async (t) => {
  const useless = ["", "garbage", KEY, ROOT.slice(0, 200), ROOT.replaceAll("\n", ""), ROOT.replace(/\nMI/, "\nAA")];
  const whose: readonly (readonly [string, Record<string, string>])[] = [
    [MOUNTED, {}],
    ["own.pem", { XDS_ROOT_CA: "own.pem", CA_ROOT_CA: "own.pem" }],
    ["etc/prov/root-cert.pem", { PROV_CERT: "etc/prov" }],
  ];
  for (const content of useless) {
    for (const [file, env] of whose) {
      const { at, xds, ca } = setUp(t, { env, files: [file], content });
      const error = (what: string) => ({
        code: "ROOT_CERTIFICATE_UNREADABLE",
        message: `root CA file for ${what} ${at(file)} holds no certificate in PEM form`,
      });
      await assert.rejects(xds(), error("XDS"));
      await assert.rejects(ca(), error("CA"));
    }
  }
});

test("controlPlaneServer() takes a file that holds a certificate among other things, with any ends of lines", async (t) => {
  const broken = ROOT.replace(/\nMI/, "\nAA");
  for (const content of [`# roots\n${broken}\n${KEY}\n${ROOT}`, ROOT.replaceAll("\n", "\r\n")])
    assert.ok((await setUp(t, { content }).xds()).rootCertificate);
});

test("PROV_CERT gives a certificate to show and roots that may come later", async (t) => {
  const { at, xds, ca } = setUp(t, { env: { PROV_CERT: "etc/prov" }, files: [] });
  const shown = { key: at("etc/prov/key.pem"), certificate: at("etc/prov/cert-chain.pem") };
  for (const options of [await xds(), await ca()]) {
    assert.deepEqual(options.clientCertificate, shown);
    assert.equal(options.rootCertificate, at("etc/prov/root-cert.pem"));
  }
});

test("FILE_MOUNTED_CERTS takes the files of proxyMetadata for the control plane, and none for the CA", async (t) => {
  const proxyMetadata = {
    ISTIO_META_TLS_CLIENT_KEY: "c/key.pem",
    ISTIO_META_TLS_CLIENT_CERT_CHAIN: "c/cert.pem",
    ISTIO_META_TLS_CLIENT_ROOT_CERT: "c/root.pem",
  };
  const env = { FILE_MOUNTED_CERTS: "true" };
  const { at, xds } = setUp(t, { env, files: ["c/root.pem"], proxyConfig: { proxyMetadata } });
  const options = await xds();
  assert.equal(options.rootCertificate, at("c/root.pem"));
  assert.deepEqual(options.clientCertificate, { key: at("c/key.pem"), certificate: at("c/cert.pem") });
  await assert.rejects(setUp(t, { env, files: [MOUNTED] }).xds(), {
    message:
      "root CA file for XDS is not named: with FILE_MOUNTED_CERTS it is ISTIO_META_TLS_CLIENT_ROOT_CERT of proxyMetadata",
  });
});

test("certificates of workload-spiffe-credentials count as FILE_MOUNTED_CERTS where proxyMetadata names files", async (t) => {
  const credentials = ["cert-chain.pem", "key.pem", "root-cert.pem"].map(
    (name) => `var/run/secrets/workload-spiffe-credentials/${name}`,
  );
  const proxyMetadata = {
    ISTIO_META_TLS_CLIENT_KEY: "c/key.pem",
    ISTIO_META_TLS_CLIENT_CERT_CHAIN: "c/cert.pem",
    ISTIO_META_TLS_CLIENT_ROOT_CERT: "c/root.pem",
  };
  const { at, xds } = setUp(t, { files: ["c/root.pem", ...credentials], proxyConfig: { proxyMetadata } });
  const { rootCertificate, clientCertificate } = await xds();
  assert.equal(rootCertificate, at("c/root.pem"));
  assert.deepEqual(clientCertificate, { key: at("c/key.pem"), certificate: at("c/cert.pem") });
  const unnamed = setUp(t, { files: [MOUNTED, ...credentials] });
  assert.equal((await unnamed.xds()).rootCertificate, unnamed.at(MOUNTED));
  const alone = setUp(t, { files: [MOUNTED], proxyConfig: { proxyMetadata } });
  assert.equal((await alone.xds()).clientCertificate, undefined);
});

test("plain text needs no roots: port 15010 of the CA, and a control plane without TLS", async (t) => {
  const proxyConfig = { discoveryAddress: "istiod.istio-system.svc:15010" };
  assert.equal((await setUp(t, { files: [], proxyConfig }).ca()).rootCertificate, undefined);
  const { controlPlaneAuthPolicy: _, ...plain } = DEFAULT_PROXY_CONFIG;
  const place = { ...HERE, folder: "/nowhere" };
  const input = { config: parseAgentConfig({}).config, proxyConfig: plain, place, log: SILENT };
  assert.equal((await controlPlaneServer(input)).rootCertificate, undefined);
});

test("caServer() asks CA_ADDR with CA_HEADER_*, and expects ISTIOD_SAN of the control plane alone", async (t) => {
  const env = { CA_ADDR: "ca.example:443", CA_HEADER_TENANT: "a", ISTIO_META_CLUSTER_ID: "c1", ISTIOD_SAN: "istiod.x" };
  const options = await setUp(t, { env }).ca();
  assert.deepEqual([options.address, options.subjectAltName], ["ca.example:443", ""]);
  assert.deepEqual(options.headers, { clusterid: "c1", TENANT: "a" });
  const { CA_ADDR: _, ...rest } = env;
  const own = await setUp(t, { env: rest }).ca();
  assert.deepEqual([own.address, own.subjectAltName], ["istiod.istio-system.svc:15012", "istiod.x"]);
});
