import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { DiscoveryRequestSchema, DiscoveryResponseSchema } from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { eventually, startFakeControlPlane, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { RAW } from "../../../test/support/raw-messages.ts";
import { fetchText } from "../http-client.ts";
import { startDebugTap } from "./debug-tap.ts";

type Context = { after(fn: () => void): void };

const NODE_ID = "sidecar~0.0.0.0~debug~";

/** A control plane that answers debug requests with the resource's name and who asked, and refuses `secret`. */
async function setUp(t: Context) {
  let streams = 0;
  const plane = await startFakeControlPlane({
    onStream: (stream) => {
      streams++;
      stream.on("error", () => undefined);
      stream.on("data", (bytes: Buffer) => {
        const { typeUrl, resourceNames, node } = fromBinary(DiscoveryRequestSchema, bytes);
        const [name = ""] = resourceNames;
        if (name === "hang") return;
        if (name === "secret") {
          stream.emit("error", { code: 7, details: "the debug info is not available for current identity" });
          return;
        }
        const token = stream.metadata.get("authorization")[0];
        const page = JSON.stringify({ name, node: node?.id, metadata: node?.metadata, token });
        const value = Buffer.from(name === "text" ? "plain words" : page);
        const response = create(DiscoveryResponseSchema, { typeUrl, nonce: "1", resources: [{ typeUrl, value }] });
        stream.write(Buffer.from(toBinary(DiscoveryResponseSchema, response)));
      });
    },
  });
  const folder = temporaryFolder(t);
  const rootCertificate = join(folder, "root.pem");
  writeFileSync(rootCertificate, plane.rootPem);
  const upstream = {
    address: plane.address,
    rootCertificate,
    subjectAltName: "",
    headers: {},
    fetchToken: async () => "mine",
  };
  const tap = await startDebugTap({ host: "127.0.0.1", port: 0, upstream, namespace: "default" });
  t.after(() => {
    tap.close();
    plane.close();
  });
  return { tap, plane, streams: () => streams, get: (path: string) => fetch(`http://127.0.0.1:${tap.port}${path}`) };
}

test("the debug tap gives the control plane's page over HTTP, asked as nobody's proxy in the workload's namespace", async (t) => {
  const { get } = await setUp(t);
  const answer = await get("/debug/config_dump?proxyID=a.default");
  assert.equal(answer.headers.get("content-type"), "application/json");
  assert.deepEqual(await answer.json(), {
    name: "config_dump?proxyID=a.default",
    node: NODE_ID,
    metadata: { NAMESPACE: "default" },
    token: "Bearer mine",
  });
  const text = await get("/debug/text");
  assert.deepEqual([await text.text(), text.headers.get("content-type")], ["plain words", "text/plain; charset=utf-8"]);
});

test("the debug tap passes a refusal on, knows no other path, and says when nobody answers", async (t) => {
  const { get, plane } = await setUp(t);
  const refused = await get("/debug/secret");
  assert.equal(refused.status, 503);
  assert.match(await refused.text(), /not available for current identity/);
  for (const path of ["/", "/debugger", "/quitquitquit"]) assert.equal((await get(path)).status, 404);
  plane.close();
  const nobody = await get("/debug/syncz");
  assert.deepEqual([nobody.status, (await nobody.text()).length > 0], [503, true]);
});

test("the debug tap answers gRPC on the same port, requests of type istio.io/debug only", async (t) => {
  const { tap } = await setUp(t);
  const client = new Client(`127.0.0.1:${tap.port}`, credentials.createInsecure());
  t.after(() => client.close());
  const open = (typeUrl: string, node?: { id: string; metadata: { NAMESPACE: string } }) => {
    const path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
    const stream = client.makeBidiStreamRequest(path, RAW.requestSerialize, RAW.responseDeserialize);
    const request = create(DiscoveryRequestSchema, { typeUrl, resourceNames: ["syncz"], ...(node && { node }) });
    stream.write(Buffer.from(toBinary(DiscoveryRequestSchema, request)));
    return stream;
  };
  const [bytes] = await once(open("istio.io/debug"), "data");
  const { typeUrl, resources } = fromBinary(DiscoveryResponseSchema, bytes);
  assert.equal(typeUrl, "istio.io/debug");
  assert.equal(JSON.parse(String(Buffer.from(resources[0]?.value ?? []))).node, NODE_ID);
  const node = { id: "router~10.0.0.1~gateway.istio-system~x", metadata: { NAMESPACE: "istio-system" } };
  const [pretended] = await once(open("istio.io/debug", node), "data");
  const [resource] = fromBinary(DiscoveryResponseSchema, pretended).resources;
  const { node: id, metadata } = JSON.parse(String(Buffer.from(resource?.value ?? [])));
  assert.deepEqual([id, metadata], [NODE_ID, { NAMESPACE: "default" }], "callers cannot choose another namespace");
  const other = open("type.googleapis.com/envoy.config.cluster.v3.Cluster");
  other.resume();
  const [error] = await once(other, "error");
  assert.equal(error.code, 3);
});

test("the debug tap rejects requests of web pages", async (t) => {
  const { tap } = await setUp(t);
  for (const headers of [{ host: "attacker.example:15004" }, { origin: "https://attacker.example" }]) {
    const target = { host: "127.0.0.1", port: tap.port, path: "/debug/syncz", headers, timeoutMs: 10_000 };
    assert.equal((await fetchText(target)).status, 403);
  }
});

test("the debug tap bounds the questions to the control plane, and callers that hold connections keep nobody out", async (t) => {
  const { tap, get, streams } = await setUp(t);
  const hanging = Array.from({ length: 4 }, () => {
    const socket = connect(tap.port, "127.0.0.1").on("error", () => undefined);
    socket.write("GET /debug/hang HTTP/1.1\r\nhost: localhost\r\n\r\n");
    t.after(() => socket.destroy());
    return socket;
  });
  await eventually("questions", () => streams() === 4);
  for (let idle = 0; idle < 100; idle++) hanging.push(connect(tap.port, "127.0.0.1").on("error", () => undefined));
  t.after(() => hanging.forEach((socket) => void socket.destroy()));
  const refused = await get("/debug/syncz");
  assert.deepEqual([refused.status, streams()], [503, 4]);
  assert.match(await refused.text(), /too many debug requests/);
});

test("the debug tap survives garbage, and says when its port is taken", async (t) => {
  const { tap, get } = await setUp(t);
  for (const garbage of ["PRI garbage\r\n\r\n", "\x00\x01\x02", "GET", "GET /debug/x HTTP/9.9\r\n\r\n"]) {
    const socket = connect(tap.port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.resume().end(garbage);
    await once(socket, "close");
  }
  assert.equal((await get("/debug/syncz")).status, 200);
  const upstream = {
    address: "",
    rootCertificate: undefined,
    subjectAltName: "",
    headers: {},
    fetchToken: async () => "",
  };
  await assert.rejects(startDebugTap({ host: "127.0.0.1", port: tap.port, upstream, namespace: "" }), {
    code: "DEBUG_NOT_LISTENING",
  });
});
