import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { NodeSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { parseProxyNode } from "./proxy-node.ts";

const ID = "sidecar~10.0.0.1~httpbin-1.default~default.svc.cluster.local";
const parse = (init: MessageInitShape<typeof NodeSchema>) =>
  parseProxyNode(toBinary(NodeSchema, create(NodeSchema, init)));
const problem = (init: MessageInitShape<typeof NodeSchema>) => {
  const { value, problems } = parse(init);
  assert.equal(value, undefined);
  return problems.map(({ field, message }) => `${field} ${message}`).join("\n");
};

test("parseProxyNode() reads id, metadata, version and extensions", () => {
  const { value } = parse({
    id: ID,
    metadata: {
      NAMESPACE: "prod",
      LABELS: { app: "httpbin", none: null },
      SERVICE_ACCOUNT: "httpbin",
      INSTANCE_IPS: "10.0.0.1, fd00::1",
      CLUSTER_ID: "Kubernetes",
    },
    userAgentVersionType: {
      case: "userAgentBuildVersion",
      value: { version: { majorNumber: 1, minorNumber: 40, patch: 2 } },
    },
    extensions: [{ name: "envoy.filters.http.router" }, { name: "istio.stats", disabled: true }],
  });
  assert.deepEqual(value, {
    nodeId: ID,
    type: "sidecar",
    addresses: ["10.0.0.1", "fd00::1"],
    id: "httpbin-1.default",
    namespace: "prod",
    dnsDomain: "default.svc.cluster.local",
    labels: { app: "httpbin" },
    locality: "",
    nodeLocality: "",
    serviceAccount: "httpbin",
    metadata: value?.metadata,
    envoyVersion: "1.40.2",
    extensions: new Set(["envoy.filters.http.router"]),
  });
  assert.equal(value?.metadata.CLUSTER_ID, "Kubernetes");
});

test("parseProxyNode() takes address and namespace from the id where metadata has none", () => {
  const { value } = parse({ id: "router~10.0.0.9~gw-1.istio-system~x" });
  assert.deepEqual(
    [value?.type, value?.addresses, value?.namespace, value?.envoyVersion],
    ["router", ["10.0.0.9"], "istio-system", ""],
  );
});

test("parseProxyNode() says what is wrong with an id", () => {
  assert.match(problem({}), /node\.id must be "type~address~name\.namespace~domain", not ""/);
  assert.match(problem({ id: "sidecar~10.0.0.1~a.b" }), /must be/);
  assert.match(problem({ id: "waypoint~10.0.0.1~a.b~c" }), /type "waypoint": sidecar and router are served/);
  assert.match(problem({ id: "sidecar~nowhere~a.b~c" }), /needs an IP address, not "nowhere"/);
  assert.match(problem({ id: "sidecar~~a.b~c" }), /needs an IP address, not ""/);
  assert.match(problem({ id: "sidecar~~a.b~c", metadata: { INSTANCE_IPS: "10.0.0.1,x" } }), /needs an IP address/);
  assert.ok(problem({ id: "x".repeat(100_000) }).length < 300);
  assert.equal(
    problem({ id: "sidecar~10.0.0.1~a\n2026\tinfo\tall is well.b~c" }),
    String.raw`node.id has blanks or control characters: "sidecar~10.0.0.1~a\n2026\tinfo\tall is well.b~c"`,
  );
});

test("parseProxyNode() refuses ports of the pod that nobody can read, and names node and field", () => {
  assert.equal(
    problem({ id: ID, metadata: { POD_PORTS: "80" } }),
    `node.metadata.POD_PORTS of "${ID}" must be a JSON list of ports as text, not "80"`,
  );
  const bad = [
    "",
    "[",
    "[3]",
    '{"a":1}',
    '[{"containerPort":"80"}]',
    '[{"containerPort":80.5}]',
    '[{"name":1}]',
    7,
    null,
    [],
  ];
  for (const POD_PORTS of bad) assert.match(problem({ id: ID, metadata: { POD_PORTS } }), /POD_PORTS/);
  assert.match(problem({ id: ID, metadata: { POD_PORTS: 7 } }), /, not 7$/);
  assert.ok(problem({ id: ID, metadata: { POD_PORTS: "x".repeat(100_000) } }).length < 400);
  const good = ["[]", " [ ] ", "null", "[null]", '[{"name":null,"containerPort":80,"hostPort":1}]', '[{"name":"a"}]'];
  for (const POD_PORTS of good) assert.ok(parse({ id: ID, metadata: { POD_PORTS } }).value);
});

test("parseProxyNode() refuses metadata of another type than Istio's", () => {
  const bad = {
    ISTIO_VERSION: [129, ["1.29"], { major: 1 }, true],
    DNS_CAPTURE: [true, null, "yes", "", 1],
    ENVOY_STATUS_PORT: ["15021", 1.5, true],
    LABELS: [{ app: 3 }, "app=x", ["app"]],
    PILOT_SAN: ["istiod", [1]],
    PROXY_CONFIG: ["{}", []],
    INSTANCE_IPS: [["10.0.0.1"]],
  };
  for (const [name, values] of Object.entries(bad)) {
    for (const value of values) {
      assert.match(
        problem({ id: ID, metadata: { [name]: value } }),
        new RegExp(`^node.metadata.${name} of ".*must be`),
      );
    }
  }
  assert.equal(
    problem({ id: ID, metadata: { DNS_CAPTURE: true } }),
    `node.metadata.DNS_CAPTURE of "${ID}" must be "true" or "false", not true`,
  );
  const metadata = {
    ISTIO_VERSION: null,
    DNS_CAPTURE: "T",
    ENVOY_STATUS_PORT: 15021,
    LABELS: { a: "b" },
    PILOT_SAN: ["istiod"],
    PROXY_CONFIG: { concurrency: 2 },
    INSTANCE_IPS: null,
    MY_OWN: [1, { a: true }],
    constructor: 3,
  };
  assert.ok(parse({ id: ID, metadata }).value);
});

test("parseProxyNode() answers bytes that are no node with a problem", () => {
  for (const bytes of [
    [0x0a, 0x7f],
    [0xff, 0xff],
  ]) {
    assert.match(parseProxyNode(new Uint8Array(bytes)).problems[0]?.message ?? "", /is not an encoded node/);
  }
});

test("parseProxyNode() refuses metadata that is nested without end", () => {
  let inner: Buffer = Buffer.alloc(0); // a Struct in a Value in a Struct ...
  for (let depth = 0; depth < 1_000; depth++) inner = wrap(0x0a, wrap(0x12, wrap(0x2a, inner)));
  const { problems } = parseProxyNode(wrap(0x1a, inner));
  assert.match(problems[0]?.message ?? "", /is not an encoded node/);
});

test("parseProxyNode() is not fooled by a label or key named __proto__", () => {
  const bytes = Buffer.concat([
    toBinary(NodeSchema, create(NodeSchema, { id: ID })),
    // metadata {"__proto__": {"LABELS": {"app": "x"}}}
    wrap(0x1a, entry("__proto__", wrap(0x2a, entry("LABELS", wrap(0x2a, entry("app", wrap(0x1a, Buffer.from("x")))))))),
  ]);
  const { value } = parseProxyNode(bytes);
  assert.deepEqual(value?.labels, {});
  assert.equal(Object.getPrototypeOf({}).LABELS, undefined);
});

function wrap(tag: number, inner: Uint8Array): Buffer {
  const length: number[] = [];
  let rest = inner.length;
  for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.from([tag, ...length, rest]), inner]);
}

function entry(key: string, value: Uint8Array): Buffer {
  return wrap(0x0a, Buffer.concat([wrap(0x0a, Buffer.from(key)), wrap(0x12, value)]));
}

test("addresses that are not all such leave that of the id", () => {
  const addresses = (list: string) =>
    parse({ id: "sidecar~10.0.0.1~a.b~c", metadata: { INSTANCE_IPS: list } }).value?.addresses;
  assert.deepEqual(addresses("10.0.0.2,unknown"), ["10.0.0.1"]);
  assert.deepEqual(addresses(" , "), ["10.0.0.1"]);
  assert.deepEqual(addresses("10.0.0.2,fd00::2"), ["10.0.0.2", "fd00::2"]);
});

test("the locality is that of labels, else that of the node", () => {
  const at = (labels: Record<string, string>, locality = {}) =>
    parseProxyNode(
      toBinary(
        NodeSchema,
        create(NodeSchema, { id: "sidecar~10.0.0.1~a.b~c", metadata: { LABELS: labels }, locality }),
      ),
    ).value?.locality;
  assert.equal(at({}), "");
  assert.equal(at({}, { region: "us", zone: "a" }), "us/a");
  assert.equal(at({}, { region: "us", zone: "a", subZone: "1" }), "us/a/1");
  assert.equal(at({}, { region: "us", subZone: "1" }), "us");
  assert.equal(at({ "topology.kubernetes.io/region": "eu" }, { region: "us" }), "eu");
  assert.equal(at({ "istio-locality": "eu/b" }, { region: "us" }), "eu/b");
  assert.equal(at({ "topology.istio.io/locality": "eu/c", "istio-locality": "eu/b" }), "eu/c");
});

test("parseProxyNode() refuses a node, an id and addresses beyond their limits", () => {
  assert.match(problem({ id: ID, metadata: { a: "x".repeat(524_288) } }), /^node has 524\d+ bytes: at most 524288/);
  assert.equal(problem({ id: `sidecar~10.0.0.1~${"a".repeat(1_010)}.b~c` }), "node.id has more than 1024 bytes");
  const INSTANCE_IPS = Array(257).fill("10.0.0.1").join();
  assert.equal(
    problem({ id: ID, metadata: { INSTANCE_IPS } }),
    "node.metadata.INSTANCE_IPS has more than 256 addresses",
  );
});

test("parseProxyNode() refuses metadata that is nested too deeply, before the stack is used up", () => {
  // `bytes` of each level: a Value with a list of one Value.
  let value: Buffer = Buffer.from([0x08, 0x00]);
  for (let depth = 0; depth < 1_000; depth++) value = lengthDelimited(0x32, lengthDelimited(0x0a, value));
  const field = Buffer.concat([lengthDelimited(0x0a, Buffer.from("key")), lengthDelimited(0x12, value)]);
  const metadata = lengthDelimited(0x1a, lengthDelimited(0x0a, field));
  const { problems } = parseProxyNode(Buffer.concat([lengthDelimited(0x0a, Buffer.from(ID)), metadata]));
  assert.match(problems[0]?.message ?? "", /recursion depth/);
});

function lengthDelimited(tag: number, bytes: Uint8Array): Buffer {
  const length: number[] = [];
  for (let rest = bytes.length; ; rest >>>= 7) {
    if (rest < 128) {
      length.push(rest);
      return Buffer.concat([Buffer.from([tag, ...length]), bytes]);
    }
    length.push((rest & 127) | 128);
  }
}
