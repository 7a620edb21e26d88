import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { styleFor } from "#lib/print/style.ts";
import { selfSigned } from "../../../test/support/certificates.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { translateCommand } from "./translate-command.ts";

const SIDECAR = "sidecar~10.0.0.1~app-1.default~default.svc.cluster.local";
const ROUTER = "router~10.0.0.9~gw-1.istio-system~istio-system.svc.cluster.local";

const WEB = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: default}
spec:
  hosts: [web.example.com]
  addresses: [10.1.1.1]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.5}]
`;
const ROUTE = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: slow, namespace: default}
spec:
  hosts: [web.example.com]
  http:
  - timeout: 5s
    route: [{destination: {host: web.example.com}}]
`;

describe("mizzen translate", () => {
  let root: string;
  let folder: string;
  let printed: string;
  let said: string;

  before(() => {
    root = mkdtempSync(join(tmpdir(), "mizzen-translate-"));
  });
  after(() => rmSync(root, { recursive: true }));
  let count = 0;
  beforeEach(() => {
    folder = join(root, `config-${++count}`);
    mkdirSync(folder);
    write("web.yaml", WEB);
    process.exitCode = 0;
  });

  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);

  async function run(...args: readonly string[]): Promise<number> {
    printed = "";
    said = "";
    const terminal: Pick<Terminal, "env" | "style" | "isScreen" | "print" | "say"> = {
      env: {},
      style: styleFor({}, {}),
      isScreen: false,
      print: (text) => {
        printed += text;
      },
      say: (line) => {
        said += `${line}\n`;
      },
    };
    await translateCommand(terminal as Terminal)
      .exitOverride()
      .parseAsync([...args], { from: "user" });
    const code = Number(process.exitCode);
    process.exitCode = 0;
    return code;
  }

  const translate = (...args: readonly string[]) => run("-f", folder, "--proxy", SIDECAR, ...args);
  const names = () =>
    JSON.parse(printed).map((resource: Record<string, string>) => resource.name ?? resource.clusterName ?? "");

  test("prints the resources of a proxy as JSON with their types, always in the same order", async () => {
    assert.equal(await translate(), 0);
    const types = JSON.parse(printed).map((resource: Record<string, string>) => resource["@type"]?.split(".").at(-1));
    assert.deepEqual([...new Set(types)], ["Cluster", "ClusterLoadAssignment", "Listener", "RouteConfiguration"]);
    const first = printed;
    await translate();
    assert.equal(printed, first);
    await translate("--type", "eds,rds");
    assert.deepEqual(names(), ["outbound|80||web.example.com", "80"]);
    await translate("--type", "cds", "--name", "BlackHoleCluster", "-o", "yaml");
    assert.match(
      printed,
      /^- '@type': type.googleapis.com\/envoy.config.cluster.v3.Cluster\n {2}name: BlackHoleCluster\n/,
    );
  });

  test("labels, namespace and metadata decide as those of a real proxy", async () => {
    write(
      "sidecar.yaml",
      `apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: narrow, namespace: default}
spec: {workloadSelector: {labels: {app: narrow}}, egress: [{hosts: ["./none.example.com"]}]}
`,
    );
    await translate("--type", "eds");
    assert.deepEqual(names(), ["outbound|80||web.example.com"]);
    await translate("--type", "eds", "--labels", "app=narrow,x=y");
    assert.deepEqual(names(), []);
    await translate("--type", "eds", "--labels", "app=narrow", "--namespace", "other");
    assert.deepEqual(names(), ["outbound|80||web.example.com"]);
    await translate("--type", "nds");
    assert.equal(JSON.parse(printed).length, 1);
    await translate("--metadata", '{"DNS_CAPTURE":"true"}');
    assert.match(printed, /NameTable/);
    await translate("--type", "lds", "--metadata", '{"INTERCEPTION_MODE":"NONE"}');
    assert.equal(names().includes("virtualInbound"), false);
  });

  test("Istio's build of Envoy gets its filters, upstream Envoy does not", async () => {
    await translate("--type", "lds");
    assert.doesNotMatch(printed, /istio.alpn/);
    await translate("--type", "lds", "--proxy-build", "istio");
    assert.match(printed, /istio.alpn/);
    await translate("--type", "lds", "--extensions", "istio.alpn");
    assert.match(printed, /istio.alpn/);
    assert.doesNotMatch(printed, /metadata_exchange/);
  });

  test("a router gets the secrets that its Gateways name", async () => {
    const { certificate, key } = selfSigned("web.example.com");
    const base64 = (text: string) => Buffer.from(text).toString("base64");
    write(
      "gateway.yaml",
      `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gw, namespace: istio-system}
spec:
  selector: {istio: gw}
  servers:
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts: ["*"]
    tls: {mode: SIMPLE, credentialName: cert}
---
apiVersion: v1
kind: Secret
metadata: {name: cert, namespace: istio-system}
type: kubernetes.io/tls
data: {tls.crt: ${base64(certificate)}, tls.key: ${base64(key)}}
`,
    );
    await run("-f", folder, "--proxy", ROUTER, "--labels", "istio=gw", "--type", "lds,sds");
    assert.deepEqual(names(), ["0.0.0.0_443", "kubernetes://cert"]);
  });

  test("objects with errors are told with file and line and left out, the rest is shown", async () => {
    write("bad.yaml", `---\n${ROUTE.replace("5s", "soon")}---\nnot: an object\n---\n{`);
    write("odd.yaml", "\u0000");
    assert.equal(await translate("--type", "eds"), 1);
    assert.deepEqual(names(), ["outbound|80||web.example.com"]);
    assert.match(said, /^error: .*bad\.yaml:8: VirtualService\/default\/slow: spec\.http\[0\]\.timeout /m);
    assert.match(said, /^error: .*bad\.yaml:11: is not an object/m);
    assert.match(said, /^error: .*odd\.yaml:1: /m);
  });

  test("the mesh config is taken from a file that is named, or from the folder", async () => {
    write("meshconfig.yaml", "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n");
    assert.equal(await translate("--type", "rds"), 0, said);
    assert.match(printed, /block_all/);
    const other = join(root, "other-mesh.yaml");
    writeFileSync(other, "outboundTrafficPolicy: {mode: ALLOW_ANY}\n");
    await translate("--type", "rds", "--mesh-config", other);
    assert.match(printed, /allow_any/);
    writeFileSync(other, "outboundTrafficPolicy: {mode: NEVER}\n");
    assert.equal(await translate("--mesh-config", other), 1);
    assert.match(said, /other-mesh\.yaml:1: MeshConfig: outboundTrafficPolicy\.mode/);
    assert.equal(await translate("--mesh-config", join(root, "none.yaml")), 2);
  });

  test("networks and localities order and replace endpoints", async () => {
    const endpoints =
      "endpoints: [{address: 10.0.0.5, locality: us/a, network: far}, {address: 10.0.0.6, locality: eu/b}]";
    write("web.yaml", WEB.replace("endpoints: [{address: 10.0.0.5}]", endpoints));
    write(
      "rule.yaml",
      `apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: default}
spec: {host: web.example.com, trafficPolicy: {outlierDetection: {}}}
`,
    );
    const first = () => {
      const [{ endpoints: groups }] = JSON.parse(printed);
      return groups.find(({ priority = 0 }) => priority === 0).locality.region;
    };
    await translate("--type", "eds", "--locality", "eu/b");
    assert.equal(first(), "eu");
    await translate("--type", "eds", "--locality", "us/a");
    assert.equal(first(), "us");
    const networks = join(root, "networks.yaml");
    writeFileSync(networks, "networks: {far: {endpoints: [], gateways: [{address: 192.0.2.1, port: 15443}]}}\n");
    assert.equal(await translate("--type", "eds", "--mesh-networks", networks), 0, said);
    writeFileSync(networks, "networks: 5\n");
    assert.equal(await translate("--mesh-networks", networks), 1);
    assert.match(said, /networks\.yaml:1: MeshNetworks: networks /);
    assert.equal(await translate("--mesh-networks", join(root, "none.yaml")), 2);
  });

  test("an IstioOperator gives the mesh config, and nobody complains of it", async () => {
    write(
      "operator.yaml",
      "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator\nmetadata: {name: a}\nspec: {meshConfig: {outboundTrafficPolicy: {mode: REGISTRY_ONLY}}}\n",
    );
    assert.equal(await translate("--type", "rds"), 0);
    assert.match(printed, /block_all/);
    assert.equal(said, "");
  });

  test("--diff shows what would change, with the exit codes of diff", async () => {
    const base = folder;
    folder = join(root, "changed");
    mkdirSync(folder);
    write("web.yaml", WEB);
    assert.equal(await run("-f", base, "--proxy", SIDECAR, "--diff", folder), 0);
    assert.equal(printed, "0 added, 0 changed, 0 removed\n");
    write("route.yaml", ROUTE);
    assert.equal(await run("-f", base, "--proxy", SIDECAR, "--diff", folder), 1);
    assert.match(printed, /^changed: rds 80$/m);
    assert.match(printed, /routes\[0\]\.route\.timeout is "5s", it was "0s"$/m);
    assert.match(printed, /^\+ +timeout: 5s$/m);
    assert.match(printed, /^0 added, 1 changed, 0 removed$/m);
    await run("-f", base, "--proxy", SIDECAR, "--diff", folder, "-o", "json");
    assert.deepEqual(JSON.parse(printed)[0].change, "changed");
    write("bad.yaml", "{");
    assert.equal(await run("-f", base, "--proxy", SIDECAR, "--diff", folder), 2);
    assert.equal(await run("-f", base, "--proxy", SIDECAR, "--diff", join(root, "none")), 2);
  });

  test("--explain names the objects that a resource came from", async () => {
    write("route.yaml", ROUTE);
    assert.equal(await translate("--type", "rds", "--explain", "-o", "json"), 0);
    const [{ type, name, from }] = JSON.parse(printed);
    assert.deepEqual([type, name], ["rds", "80"]);
    assert.deepEqual(
      from.map(({ object, line }: { object: string; line: number }) => [object, line]),
      [
        ["ServiceEntry/default/web", 1],
        ["VirtualService/default/slow", 1],
      ].filter(([object]) => from.some((one: { object: string }) => one.object === object)),
    );
    assert.ok(
      from.some(
        ({ object, file }: Record<string, string>) =>
          object === "VirtualService/default/slow" && file?.endsWith("route.yaml"),
      ),
    );
    await translate("--explain");
    assert.match(printed, /^eds +outbound\|80\|\|web\.example\.com +ServiceEntry\/default\/web +.*web\.yaml:1$/m);
    assert.match(printed, /^cds +BlackHoleCluster +\(the mesh itself\)$/m);
  });

  test("a proxy may be named that mesh.yaml describes", async () => {
    write(
      "mesh.yaml",
      `apiVersion: mizzen.dev/v1alpha1
kind: Mesh
metadata: {name: m}
spec:
  workloads:
  - {name: client, namespace: default, labels: {app: client}, command: [sleep]}
  - {name: bare, namespace: default, command: [sleep], inject: false}
`,
    );
    assert.equal(await run("-f", folder, "--proxy", "client", "--type", "nds"), 0, said);
    assert.match(printed, /web\.example\.com/);
    assert.equal(await run("-f", folder, "--proxy", "bare"), 2);
    assert.match(said, /No workload "bare" has a proxy \(there are client\)/);
  });

  test("a node may be given as Envoy has it, and flags go over it", async () => {
    const file = join(root, "node.json");
    const node = {
      id: SIDECAR,
      metadata: { INTERCEPTION_MODE: "NONE", NAMESPACE: "default" },
      user_agent_build_version: { version: { major_number: 1, minor_number: 39 } },
      extensions: [{ name: "istio.alpn" }],
      something_new: 1,
    };
    writeFileSync(file, JSON.stringify(node));
    assert.equal(await run("-f", folder, "--proxy", `@${file}`, "--type", "lds"), 0, said);
    assert.equal(names().includes("virtualInbound"), false);
    assert.match(printed, /istio.alpn/);
    const over = ["--metadata", '{"INTERCEPTION_MODE":"REDIRECT"}'];
    await run("-f", folder, "--proxy", `@${file}`, "--type", "lds", ...over);
    assert.equal(names().includes("virtualInbound"), true);
    writeFileSync(file, "[]");
    assert.equal(await run("-f", folder, "--proxy", `@${file}`), 2);
    assert.match(said, /is no node of Envoy/);
    writeFileSync(file, "{}");
    assert.equal(await run("-f", folder, "--proxy", `@${file}`), 2);
    assert.equal(await run("-f", folder, "--proxy", `@${join(root, "none")}`), 2);
  });

  test("switches of istiod are read by the names that its environment has", async () => {
    write("web.yaml", WEB.replace("name: http, protocol: HTTP", "name: any"));
    const sniffing = "PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND";
    await translate("--type", "lds");
    assert.match(printed, /http_inspector/);
    await translate("--type", "lds", "--set-feature", `${sniffing}=false`);
    assert.doesNotMatch(printed.split(`"name": "virtualInbound"`)[0] ?? "", /http_inspector/);
    assert.equal(await translate("--set-feature", `${sniffing}=perhaps`), 2);
  });

  test("a name that no resource has, and a switch that nobody reads, are told", async () => {
    const flags = ["--name", "nosuch,80", "--set-feature", "PILOT_NOSUCH=1,PILOT_HTTP10=true"];
    assert.equal(await translate("--type", "rds", ...flags), 0);
    assert.deepEqual(names(), ["80"]);
    assert.equal(
      said,
      [
        "warning: --set-feature PILOT_NOSUCH: no switch of this name changes what proxies get",
        "warning: --name nosuch: no resource of rds has this name\n",
      ].join("\n"),
    );
  });

  test("says what is wrong with the command line", async () => {
    assert.equal(await run("-f", folder, "--proxy", "sidecar~x~app-1.default~d"), 2);
    assert.match(said, /needs an IP address/);
    assert.equal(await run("-f", folder, "--proxy", "ztunnel~10.0.0.1~a.b~c"), 2);
    assert.equal(await translate("--metadata", "[]"), 2);
    assert.equal(await translate("--metadata", "@/none"), 2);
    assert.equal(await translate("--diff", folder, "--explain"), 2);
    assert.equal(await run("-f", join(root, "none"), "--proxy", SIDECAR), 2);
    await assert.rejects(translate("--labels", "x"), /not KEY=VALUE/);
    await assert.rejects(translate("--type", "xds"), /There are cds/);
    await assert.rejects(translate("--envoy-version", "new"), /a version such as 1\.40\.0/);
    await assert.rejects(translate("--locality", "a/b/c/d"), /REGION\/ZONE\/SUBZONE/);
    await assert.rejects(run("--proxy", SIDECAR), /required option/);
  });
});
