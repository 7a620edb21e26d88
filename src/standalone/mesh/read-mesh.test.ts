import assert from "node:assert/strict";
import test from "node:test";
import { type ReadMesh, readMesh } from "./read-mesh.ts";

const FILE = "/srv/shop/mesh.yaml";
const HEAD = `apiVersion: mizzen.dev/v1alpha1
kind: Mesh
metadata: {name: shop}
`;

function read(text: string): ReadMesh {
  return readMesh({ text, file: FILE });
}

function withWorkload(fields: string): ReadMesh {
  return read(`${HEAD}spec:\n  workloads:\n  - {name: web, command: [node, web.ts], ${fields}}\n`);
}

function firstProblem({ mesh, problems }: ReadMesh): string {
  assert.equal(mesh, undefined);
  const [first] = problems;
  assert.ok(first);
  return `${first.line}: ${first.field} ${first.message}`;
}

test("readMesh() fills in what a short file leaves out", () => {
  const { mesh, problems } = read(`${HEAD}spec:\n  workloads:\n  - {name: web, command: [node, web.ts]}\n`);
  assert.deepEqual(problems, []);
  assert.deepEqual(mesh, {
    name: "shop",
    file: FILE,
    lines: { "web.default": 6 },
    config: ["/srv/shop"],
    meshConfig: {},
    members: [
      {
        name: "web",
        workload: "web",
        namespace: "default",
        serviceAccount: "default",
        labels: {},
        annotations: {},
        ports: [],
        publish: [],
        proxy: "sidecar",
        after: [],
        readiness: undefined,
        app: {
          command: ["node", "web.ts"],
          workingDir: "/srv/shop",
          env: {},
          envFrom: [],
          user: undefined,
          restart: "always",
          liveness: undefined,
          limits: { memoryBytes: undefined, cpuMillis: undefined, pids: undefined },
        },
      },
    ],
    cidr: "10.244.0.0/16",
    agents: "own",
    exitWhenDone: false,
    onUnreadablePolicy: "deny",
    suggestions: [],
  });
});

test("readMesh() reads every field of a workload and a gateway", () => {
  const { mesh, problems } = read(`${HEAD}spec:
  config: [manifests, /etc/shop.yaml]
  meshConfig: {accessLogFile: /dev/stdout}
  workloads:
  - name: web
    namespace: front
    serviceAccount: web-sa
    labels: {app: web}
    annotations: {"proxy.istio.io/config": "concurrency: 2"}
    command: [./web, --fast]
    workingDir: web
    env: {PORT: "80"}
    envFrom: [web.env, /etc/web.env]
    user: 1000
    ports: [80, {name: metrics, port: 9090}, {name: dns, port: 53, protocol: UDP}]
    readiness: {httpGet: {path: /up, port: metrics, headers: {Host: web}}, periodSeconds: 1, failureThreshold: 1}
    liveness: {exec: {command: [./alive]}, initialDelaySeconds: 3}
    restart: onFailure
    after: [db, migrate.ops]
    limits: {memory: 64Mi, cpu: 1.5, pids: 50}
    inject: false
  - {name: db, namespace: front, command: [db]}
  - {name: migrate, namespace: ops, command: [migrate], restart: never}
  gateways:
  - {name: istio-ingressgateway, labels: {istio: ingressgateway}, publish: ["127.0.0.1:8080:8080", "[::1]:0:443", "81:81"]}
  exitWhenDone: true
`);
  assert.deepEqual(problems, []);
  assert.deepEqual(mesh?.config, ["/srv/shop/manifests", "/etc/shop.yaml"]);
  const [gateway, web] = mesh?.members ?? [];
  assert.equal(web?.proxy, "none");
  assert.deepEqual(web?.ports, [
    { name: "", port: 80, protocol: "TCP" },
    { name: "metrics", port: 9090, protocol: "TCP" },
    { name: "dns", port: 53, protocol: "UDP" },
  ]);
  const timing = { initialDelayMs: 0, periodMs: 2000, timeoutMs: 1000, failureThreshold: 3, successThreshold: 1 };
  assert.deepEqual(web?.readiness, {
    ...timing,
    port: 9090,
    httpGet: { path: "/up", headers: { Host: "web" } },
    exec: undefined,
    periodMs: 1000,
    failureThreshold: 1,
  });
  assert.deepEqual(web?.after, ["db.front", "migrate.ops"]);
  assert.deepEqual(web?.app, {
    command: ["./web", "--fast"],
    workingDir: "/srv/shop/web",
    env: { PORT: "80" },
    envFrom: ["/srv/shop/web.env", "/etc/web.env"],
    user: "1000",
    restart: "onFailure",
    liveness: { ...timing, port: 0, httpGet: undefined, exec: ["./alive"], initialDelayMs: 3000 },
    limits: { memoryBytes: 64 * 1024 * 1024, cpuMillis: 1500, pids: 50 },
  });
  assert.equal(mesh?.exitWhenDone, true);
  assert.equal(gateway?.proxy, "router");
  assert.equal(gateway?.namespace, "istio-system");
  assert.equal(gateway?.serviceAccount, "istio-ingressgateway-service-account");
  assert.deepEqual(
    gateway?.publish.map(({ host, hostPort, port }) => [host, hostPort, port]),
    [
      ["127.0.0.1", 8080, 8080],
      ["::1", 0, 443],
      ["127.0.0.1", 81, 81],
    ],
  );
});

test("readMesh() numbers replicas and keeps the workload's name", () => {
  const { mesh } = withWorkload("replicas: 3");
  assert.deepEqual(
    mesh?.members.map(({ name, workload }) => [name, workload]),
    [
      ["web-1", "web"],
      ["web-2", "web"],
      ["web-3", "web"],
    ],
  );
});

test("readMesh() says file line, field and what is allowed", () => {
  const { mesh, problems } = read(`${HEAD}spec:
  workloads:
  - name: web
    comand: [node, web.ts]
    ports:
    - 80
    - 70000
`);
  assert.equal(mesh, undefined);
  const lines = problems.map(({ line, field, message }) => `${line}: ${field} ${message}`);
  assert.ok(
    lines.includes(
      "7: spec.workloads[0].comand is not a known field: allowed are name, namespace, serviceAccount, labels, annotations, replicas, ports, publish, command, workingDir, env, envFrom, user, readiness, liveness, restart, after, limits, inject",
    ),
    lines.join("\n"),
  );
  assert.ok(lines.includes("6: spec.workloads[0].command is required"), lines.join("\n"));
});

const WRONG_WORKLOADS: readonly (readonly [string, RegExp])[] = [
  ["name: Web_1", /^6: spec.workloads\[0\].name must be at most 63 lower-case letters.*not "Web_1"$/],
  [`namespace: ""`, /namespace must be at most 63/],
  ["serviceAccount: A B", /serviceAccount must be lower-case/],
  ["labels: {version: 1}", /labels.version must be text, not 1/],
  ["labels: {version: v 1}", /labels.version has "v 1": a label's value/],
  [`labels: {"a b": v1}`, /labels\["a b"\] is not a label's name/],
  ["replicas: 1000", /replicas must be at most 100, not 1000/],
  ["replicas: -1", /replicas must be a whole number from 0/],
  ["ports: [0]", /ports\[0\] must be a port from 1 to 65535, not 0/],
  ["ports: [80, 70000]", /ports\[1\] must be a port from 1 to 65535, not 70000/],
  ["ports: [80, 80]", /ports\[1\] is given twice/],
  ["ports: [http]", /ports\[0\] must be a port, not "http": write a number, or an object with name, port and protocol/],
  ["ports: [{number: 80}]", /ports\[0\].*write a number, or an object with name, port and protocol/],
  ["ports: [15001]", /ports\[0\] must not be 15001: the sidecar listens on it/],
  ["ports: 80", /ports must be a list/],
  ["env: {PORT: 80}", /env.PORT must be text, not 80/],
  [`env: {"A=B": x}`, /env\["A=B"\] is not a variable's name/],
  ["user: 1337", /user must not be 1337: that is the proxy/],
  ["inject: maybe", /inject must be true or false, not "maybe"/],
  ["ports: [{port: 53, protocol: SCTP}]", /ports\[0\].protocol is not a port: .*TCP or UDP/],
  ["readiness: {}", /readiness needs httpGet, tcpSocket or exec/],
  ["liveness: {}", /liveness needs httpGet, tcpSocket or exec/],
  ["liveness: {tcpSocket: {port: 0}}", /liveness.tcpSocket.port must be a port from 1 to 65535, not 0/],
  ["liveness: {exec: {command: []}}", /liveness.exec.command needs a program/],
  ["restart: sometimes", /restart must be one of always, onFailure, never/],
  ["after: [cache]", /after\[0\] names "cache", which is no workload: there are web/],
  ["after: [web]", /after leads back to itself: web.default -> web.default/],
  ["limits: {memory: lots}", /limits.memory must be an amount such as 256Mi or 1G, not "lots"/],
  ["limits: {memory: 1Mi}", /limits.memory must be at least 4Mi/],
  ["limits: {cpu: fast}", /limits.cpu must be an amount such as 500m or 1.5, at least 10m, not "fast"/],
  ["limits: {cpu: 0}", /limits.cpu must be an amount/],
  ["limits: {pids: 1}", /limits.pids must be at least 4/],
  ["limits: {memroy: 1Gi}", /limits.memroy is not a known field: allowed are memory, cpu, pids/],
  ["readiness: {httpGet: {port: http}}", /readiness.httpGet.port names "http", which is not in ports/],
  ["readiness: {httpGet: {port: 80, path: up}}", /readiness.httpGet.path must start with \//],
  ["readiness: {httpGet: {port: 80}, tcpSocket: {port: 80}}", /tcpSocket cannot be set together with "httpGet"/],
  ["readiness: {tcpSocket: {port: 80}, periodSeconds: 0}", /readiness.periodSeconds must be at least 1/],
  ["readiness: {exec: {command: [true]}}", /readiness.exec.command\[0\] must be text, not true/],
  ["readiness: {grpc: {port: 1}}", /readiness.grpc is not a known field: allowed are httpGet, tcpSocket, exec/],
  [`publish: ["0.0.0.0:80:80"]`, /publish\[0\] must be on a loopback address/],
  [`publish: ["8080"]`, /publish\[0\] must be HOST_PORT:PORT/],
  [`publish: ["70000:80"]`, /publish\[0\] has host port 70000/],
  [`publish: ["80:0"]`, /publish\[0\] has port 0/],
  [`replicas: 2, publish: ["80:80"]`, /publish\[0\] needs replicas: 1/],
];

for (const [fields, expected] of WRONG_WORKLOADS) {
  test(`readMesh() refuses a workload with ${fields}`, () => {
    const text = fields.startsWith("name:")
      ? `${HEAD}spec:\n  workloads:\n  - {${fields}, command: [node]}\n`
      : undefined;
    assert.match(firstProblem(text === undefined ? withWorkload(fields) : read(text)), expected);
  });
}

const WRONG_FILES: readonly (readonly [string, string, RegExp])[] = [
  ["nothing", "# only a comment\n", /^1: {2}is empty$/],
  ["broken YAML", "spec: [", /^\d+: {2}is not YAML/],
  ["a list", "[1, 2]", /must be an object/],
  ["two documents", `${HEAD}spec: {}\n---\nspec: {}\n`, /holds several documents/],
  ["a key twice", `${HEAD}spec: {}\nspec: {}\n`, /^5: .*twice: leave one of them out$/],
  ["another version", HEAD.replace("v1alpha1", "v2"), /apiVersion must be mizzen.dev\/v1alpha1/],
  ["another kind", HEAD.replace("Mesh", "Deployment"), /^2: kind must be Mesh, not "Deployment"/],
  ["a bad name", HEAD.replace("shop", "My Shop"), /^3: metadata.name must be .* not "My Shop"/],
];

for (const [what, text, expected] of WRONG_FILES) {
  test(`readMesh() refuses a file with ${what}`, () => {
    const whole =
      text.startsWith("api") && !text.includes("spec") ? `${text}spec: {workloads: [{name: a, command: [b]}]}` : text;
    assert.match(firstProblem(read(whole)), expected);
  });
}

test("readMesh() refuses a mesh without members, and names that collide", () => {
  assert.match(firstProblem(read(`${HEAD}spec: {}\n`)), /spec.workloads needs at least one workload/);
  const twice = read(`${HEAD}spec:
  workloads:
  - {name: web, replicas: 2, command: [node]}
  - {name: web-2, command: [node]}
  - {name: istiod, namespace: istio-system, command: [node]}
`);
  assert.deepEqual(
    twice.problems.map(({ line, message }) => `${line}: ${message}`),
    [
      `7: "web-2" in namespace "default" is already the name of another member of the mesh`,
      `8: "istiod" in namespace "istio-system" is already the name of the control plane`,
    ],
  );
});

test("readMesh() finds circles of workloads that wait for each other, and says the way around", () => {
  const text = `${HEAD}spec:
  workloads:
  - {name: a, command: [node], after: [b]}
  - {name: b, command: [node], after: [c.other]}
  - {name: c, namespace: other, command: [node], after: [a.default]}
  - {name: d, command: [node], after: [a]}
`;
  assert.deepEqual(
    read(text).problems.map(({ line, field, message }) => `${line}: ${field} ${message}`),
    [
      "6: spec.workloads[0].after leads back to itself: a.default -> b.default -> c.other -> a.default",
      "7: spec.workloads[1].after leads back to itself: b.default -> c.other -> a.default -> b.default",
      "8: spec.workloads[2].after leads back to itself: c.other -> a.default -> b.default -> c.other",
    ],
  );
});

test("readMesh() refuses a host port that two members publish", () => {
  const text = `${HEAD}spec:
  workloads: [{name: web, command: [node], publish: ["8080:80"]}]
  gateways: [{name: gw, publish: ["127.0.0.1:8080:8080"]}]
`;
  assert.match(
    firstProblem(read(text)),
    /^6: spec.gateways\[0\].publish\[0\] has host port 8080, which "web" publishes/,
  );
});

test("readMesh() checks the mesh config, and only warns of what it does not know there", () => {
  const wrong = read(
    `${HEAD}spec:\n  meshConfig: {connectTimeout: soon}\n  workloads: [{name: web, command: [node]}]\n`,
  );
  assert.match(firstProblem(wrong), /^5: spec.meshConfig.connectTimeout must be a duration/);
  const unknown = read(`${HEAD}spec:\n  meshConfig: {newThing: 1}\n  workloads: [{name: web, command: [node]}]\n`);
  assert.ok(unknown.mesh);
  assert.deepEqual(
    unknown.problems.map(({ severity }) => severity),
    ["warning"],
  );
});
