import assert from "node:assert/strict";
import test from "node:test";
import { scriptEnvironment } from "../../../test/support/program-script.ts";
import { readMesh } from "../mesh/read-mesh.ts";
import { NOBODY } from "./enter.ts";
import { cableName, meshId } from "./names.ts";
import { type MeshPlan, type PlanInput, planMesh } from "./plan.ts";

const PROGRAMS = {
  nodeFolder: "/opt/node/bin",
  envoy: "/opt/envoy",
  agent: ["/opt/node/bin/node", "/opt/pilot-agent.cjs"],
  discovery: ["/opt/node/bin/node", "/opt/pilot-discovery.cjs"],
};

function plan(spec: string, changes: Partial<PlanInput> = {}): MeshPlan {
  const text = `apiVersion: mizzen.dev/v1alpha1\nkind: Mesh\nmetadata: {name: shop}\nspec:\n${spec}`;
  const { mesh, problems } = readMesh({ text, file: "/srv/shop/mesh.yaml" });
  assert.ok(mesh, JSON.stringify(problems));
  return planMesh({
    mesh,
    id: "abc123",
    stateFolder: "/state",
    programs: PROGRAMS,
    users: { first: 2_000_000_000, count: 1000 },
    accounts: { nobody: NOBODY },
    workingCopies: {},
    privateConfig: false,
    jwtRule: "{}",
    addresses: new Map(),
    groups: undefined,
    ...changes,
  });
}

const SHOP = `
  meshConfig: {trustDomain: shop.example, defaultConfig: {drainDuration: 1s}}
  workloads:
  - {name: web, replicas: 2, labels: {app: web}, command: [node, web.ts], env: {PORT: "80"}, ports: [{name: http, port: 80}]}
  - {name: legacy, command: [./legacy], inject: false}
  gateways: [{name: gw, labels: {istio: gw}}]
`;

test("planMesh() gives every member a namespace with the mesh's id and an address of its own", () => {
  const { fabric, controlPlane, members } = plan(SHOP);
  assert.equal(fabric.netns, "mizzen-abc123-fabric");
  assert.deepEqual(
    [controlPlane, ...members].map(({ network }) => network.netns),
    [
      "mizzen-abc123-istiod.istio-system",
      "mizzen-abc123-gw.istio-system",
      "mizzen-abc123-web-1.default",
      "mizzen-abc123-web-2.default",
      "mizzen-abc123-legacy.default",
    ],
  );
  const addresses = members.map(({ address }) => address);
  assert.deepEqual(addresses, ["10.244.0.10", "10.244.0.11", "10.244.0.12", "10.244.0.13"]);
});

test("planMesh() leaves members where they are, and gives new ones addresses that are free", () => {
  const { members } = plan(SHOP, { addresses: new Map([["web-2.default", "10.244.0.10"]]) });
  assert.deepEqual(
    members.map(({ key, address }) => [key, address]),
    [
      ["gw.istio-system", "10.244.0.11"],
      ["web-1.default", "10.244.0.12"],
      ["web-2.default", "10.244.0.10"],
      ["legacy.default", "10.244.0.13"],
    ],
  );
});

test("planMesh() connects every member to the bridge with the names of both ends", () => {
  const { controlPlane, members } = plan(SHOP);
  for (const { cable, network } of [controlPlane, ...members]) {
    const [add = "", join] = cable;
    assert.ok(add.endsWith(`type veth peer name eth0 netns ${network.netns}`), add);
    assert.equal(join, `link set ${add.split(" ")[2]} master mizzen0 up`);
  }
});

/** User, group and kept capability, as the script that enters a member is told them. */
function accountIn(argv: readonly string[]): readonly string[] {
  const script = argv.indexOf("-c");
  return argv.slice(script + 4, script + 7);
}

test("planMesh() starts the control plane with the environment of bin/pilot-discovery", () => {
  const { env } = plan(SHOP).controlPlane.process;
  const expected = scriptEnvironment("pilot-discovery");
  assert.ok(Object.keys(expected).length > 0);
  assert.deepEqual({ ...env, ...expected }, env);
});

test("planMesh() starts agents as the proxy's account, with what an injected pod has", () => {
  const web = plan(SHOP).members.find(({ member }) => member.name === "web-1");
  const agent = web?.proxy?.process;
  assert.ok(agent);
  assert.deepEqual(accountIn(agent.argv), ["1337", "1337", ""]);
  assert.deepEqual(agent.argv.slice(agent.argv.indexOf("proxy"), agent.argv.indexOf("proxy") + 4), [
    "proxy",
    "sidecar",
    "--domain=default.svc.cluster.local",
    "--proxyLogLevel=warning",
  ]);
  const { env } = agent;
  assert.equal(env.POD_NAME, "web-1");
  assert.equal(env.INSTANCE_IP, "10.244.0.11");
  assert.equal(env.TRUST_DOMAIN, "shop.example");
  assert.equal(env.ISTIO_META_WORKLOAD_NAME, "web");
  assert.equal(env.ISTIO_META_DNS_CAPTURE, "true");
  assert.deepEqual(JSON.parse(env.PROXY_CONFIG ?? ""), {
    binaryPath: "/opt/envoy",
    concurrency: 1,
    drainDuration: "1s",
  });
  assert.deepEqual(JSON.parse(env.ISTIO_META_POD_PORTS ?? ""), [{ name: "http", containerPort: 80, protocol: "TCP" }]);
});

test("planMesh() gives agents the variables of proxyMetadata, of the mesh and of a workload, but none that the mesh sets", () => {
  const workloads = `
  meshConfig: {defaultConfig: {proxyMetadata: {SECRET_TTL: 1h, PROXY_XDS_DEBUG_VIA_AGENT: "false", ISTIO_META_DNS_CAPTURE: "false"}}}
  workloads:
  - {name: plain, command: [./app]}
  - {name: own, command: [./app], annotations: {proxy.istio.io/config: "proxyMetadata: {SECRET_TTL: 2h, CA_HEADER_A: b}"}}
`;
  const variables = (key: string) => {
    const env = plan(workloads).members.find((member) => member.key === key)?.proxy?.process.env ?? {};
    return ["SECRET_TTL", "PROXY_XDS_DEBUG_VIA_AGENT", "CA_HEADER_A", "ISTIO_META_DNS_CAPTURE"].map(
      (name) => env[name],
    );
  };
  assert.deepEqual(variables("plain.default"), ["1h", "false", undefined, "true"]);
  assert.deepEqual(variables("own.default"), ["2h", "false", "b", "true"]);
  const shared = plan(`  agents: shared\n${workloads}`).members.find(({ key }) => key === "own.default")?.shared;
  assert.equal(shared?.workload.env.SECRET_TTL, "2h");
});

test("planMesh() tells agents what to scrape of their application where its annotations say so, as injection does", () => {
  const scraped = (annotations: string, meshConfig = "{}") => {
    const workload = `{name: web, command: [./web], annotations: {${annotations}}}`;
    const [member] = plan(`\n  meshConfig: ${meshConfig}\n  workloads: [${workload}]\n`).members;
    return member?.proxy?.process.env.ISTIO_PROMETHEUS_ANNOTATIONS;
  };
  const asked = 'prometheus.io/scrape: "true", prometheus.io/port: "9090"';
  assert.deepEqual(JSON.parse(scraped(asked) ?? ""), { scrape: "true", path: "", port: "9090" });
  assert.equal(scraped(""), undefined);
  assert.equal(scraped('prometheus.io/scrape: "false", prometheus.io/port: "9090"'), undefined);
  assert.equal(scraped(`${asked}, prometheus.istio.io/merge-metrics: "false"`), undefined);
  assert.equal(scraped(asked, "{enablePrometheusMerge: false}"), undefined);
  assert.equal(scraped('prometheus.io/port: "15020"'), undefined, "the agent's own page");
  assert.equal(scraped(asked, "{defaultConfig: {statusPort: 9090}}"), undefined);
});

test("planMesh() lets annotations say what a workload's agent and Envoy log, as injection does", () => {
  const workloads = `
  workloads:
  - {name: plain, command: [./app]}
  - name: loud
    command: [./app]
    annotations:
      sidecar.istio.io/logLevel: debug
      sidecar.istio.io/componentLogLevel: rbac:trace
      sidecar.istio.io/agentLogLevel: dns:debug
`;
  const flags = (key: string) => {
    const argv = plan(workloads).members.find((member) => member.key === key)?.proxy?.process.argv ?? [];
    return argv.filter((argument) => /log/i.test(argument));
  };
  const asked = (envoy: string, components: string, agent: string) => [
    `--proxyLogLevel=${envoy}`,
    `--proxyComponentLogLevel=${components}`,
    `--log_output_level=${agent}`,
  ];
  assert.deepEqual(flags("plain.default"), asked("warning", "misc:error", "default:info"));
  assert.deepEqual(flags("loud.default"), asked("debug", "rbac:trace", "dns:debug"));
  const shared = plan(`  agents: shared\n${workloads}`).members.find(({ key }) => key === "loud.default")?.shared;
  assert.equal(shared?.workload.flags.proxyLogLevel, "debug");
});

test("planMesh() gives gateways a router without capture, and workloads without a sidecar neither", () => {
  const { members } = plan(SHOP);
  const gateway = members.find(({ member }) => member.name === "gw");
  assert.ok(gateway?.proxy?.process.argv.includes("router"));
  assert.equal(gateway?.proxy?.capture, undefined);
  assert.equal(gateway?.proxy?.process.env.ISTIO_META_UNPRIVILEGED_POD, undefined, "it may open ports below 1024");
  assert.equal(gateway?.network.sysctls["ipv4/ip_unprivileged_port_start"], "0");
  assert.equal(gateway?.app, undefined);
  const legacy = members.find(({ member }) => member.name === "legacy");
  assert.equal(legacy?.proxy, undefined);
  assert.ok(legacy?.app?.process.argv.includes("./legacy"));
});

test("planMesh() starts apps with a clean environment, as their user", () => {
  const app = plan(SHOP).members.find(({ member }) => member.name === "web-2")?.app;
  assert.deepEqual(app?.process.env, {
    PATH: "/opt/node/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/nonexistent",
    LANG: "C.UTF-8",
    POD_NAME: "web-2",
    POD_NAMESPACE: "default",
    POD_IP: "10.244.0.12",
    SERVICE_ACCOUNT: "default",
    PORT: "80",
  });
  assert.equal(app?.process.cwd, "/srv/shop");
  assert.deepEqual(accountIn(app?.process.argv ?? []), ["2000000012", "2000000012", ""]);
});

test("planMesh() uses the copy of a working folder where there is one", () => {
  const { members } = plan(SHOP, { workingCopies: { "/srv/shop": "/state/runtime/x/shop" } });
  assert.equal(members.at(-1)?.app?.process.cwd, "/state/runtime/x/shop");
});

test("planMesh() captures with the flags of injection, changed by the annotations of the pod", () => {
  const spec = `
  workloads:
  - name: web
    command: [node]
    annotations:
      traffic.sidecar.istio.io/excludeInboundPorts: "9090"
      traffic.sidecar.istio.io/excludeOutboundIPRanges: 10.1.0.0/16
`;
  const argv = plan(spec).members[0]?.proxy?.capture?.argv ?? [];
  const flags = argv.slice(argv.indexOf("istio-iptables"));
  assert.deepEqual(flags, [
    "istio-iptables",
    ...["-p", "15001", "-z", "15006", "-u", "1337", "-m", "REDIRECT", "-i", "*", "-x", "10.1.0.0/16", "-b", "*"],
    ...["-d", "15090,15021,15020,9090", "--redirect-dns", "--log_output_level=default:warn"],
  ]);
  assert.deepEqual(accountIn(argv), ["0", "0", ""], "rules need root");
});

test("planMesh() lets the control plane read configuration that is root's alone, and only then", () => {
  const [open, closed] = [plan(SHOP), plan(SHOP, { privateConfig: true })];
  assert.deepEqual(accountIn(open.controlPlane.process.argv), ["2000000002", "2000000002", ""]);
  assert.deepEqual(accountIn(closed.controlPlane.process.argv), ["2000000002", "2000000002", "dac_read_search"]);
  const { argv, env } = open.controlPlane.process;
  assert.deepEqual(
    argv.filter((_, i) => argv[i - 1] === "--configDir"),
    ["/srv/shop", "/state/registry", "/state/applied"],
  );
  assert.equal(env.ROOT_CA_DIR, "/state/ca");
});

test("planMesh() keeps secrets from other accounts, and the way to them from the proxy's", () => {
  const whole = plan(SHOP);
  const folders = [whole, whole.controlPlane, ...whole.members].flatMap((part) => part.folders);
  const secrets = folders.filter(({ path }) => path.includes("/proxy/var/run/secrets"));
  assert.ok(secrets.length > 0);
  for (const { path, mode, owner } of secrets) {
    const own = /workload-spiffe|credential-uds/.test(path);
    assert.deepEqual({ mode, owner }, own ? { mode: 0o700, owner: 1337 } : { mode: 0o711, owner: 0 }, path);
  }
  const listed = new Set(folders.map(({ path }) => path));
  for (const { path } of folders) {
    const parent = path.slice(0, path.lastIndexOf("/"));
    assert.ok(listed.has(parent) || path === "/state", `the mode of "${parent}" would depend on the umask`);
  }
});

test("planMesh() gives no two members the same log, whatever their names", () => {
  const { members } = plan(`
  workloads:
  - {name: a, namespace: b, command: [node]}
  - {name: a, namespace: b-proxy, command: [node]}
`);
  const logs = members.flatMap(({ app, proxy }) => [app?.process.log, proxy?.process.log]);
  assert.equal(new Set(logs).size, 4);
});

test("cableName() fits an interface however long the member's name is", () => {
  const long = cableName(`${"a".repeat(63)}.${"b".repeat(63)}`);
  assert.ok(long.length <= 15);
  assert.notEqual(long, cableName(`${"a".repeat(63)}.${"c".repeat(63)}`));
});

test("meshId() differs by state folder", () => {
  assert.match(meshId("/a"), /^[0-9a-f]{6}$/);
  assert.notEqual(meshId("/a"), meshId("/b"));
});

test("planMesh() with a shared agent describes each proxy to it, and names the control plane by address", () => {
  const { sharedAgent, members } = plan(`  agents: shared\n${SHOP}`);
  const argv = sharedAgent?.process.argv ?? [];
  assert.deepEqual(argv.slice(0, 2), ["setpriv", "--no-new-privs"]);
  assert.deepEqual(argv.slice(argv.indexOf("--") + 1), [...PROGRAMS.agent, "serve", "/state/agents"]);
  const described = members.map(({ shared }) => shared?.name);
  assert.deepEqual(described, ["gw.istio-system", "web-1.default", "web-2.default", undefined]);
  const workload = members.find(({ key }) => key === "web-1.default")?.shared?.workload;
  assert.equal(workload?.folder, "/state/members/web-1.default/proxy");
  assert.equal(workload?.env.ISTIOD_SAN, "istiod.istio-system.svc");
  assert.equal(workload?.env.CA_ADDR, undefined);
  const proxyConfig = JSON.parse(workload?.env.PROXY_CONFIG ?? "");
  assert.equal(proxyConfig.discoveryAddress, "10.244.0.2:15012");
  assert.equal(proxyConfig.drainDuration, "1s");
  assert.deepEqual(workload?.flags.type, "sidecar");
});

test("planMesh() with agents of their own has no shared one", () => {
  const { sharedAgent, members } = plan(SHOP);
  assert.equal(sharedAgent, undefined);
  assert.ok(members.every(({ shared }) => shared === undefined));
});

test("planMesh() shows places the copies of programs and their own files, and nothing else of the state folder", () => {
  const { folders, controlPlane, members } = plan(SHOP);
  assert.ok(folders.some(({ path }) => path === "/state/runtime"));
  assert.deepEqual(controlPlane.place.visible, ["runtime", "ca", "control-plane", "registry", "applied"]);
  const web = members.find(({ key }) => key === "web-1.default");
  assert.deepEqual(web?.place.visible, ["runtime"]);
  assert.deepEqual(web?.proxy?.place.visible, ["runtime", "members/web-1.default/proxy", "members/web-1.default/etc"]);
});
