/** Holes that control planes had, each tried on a whole one. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { parseObject } from "#config/parse-object.ts";
import { CLUSTER_TYPE } from "#protocol/type-urls.ts";
import { TestControlPlane } from "../../../test/support/control-plane.ts";
import { proxyOf } from "../../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../../test/support/xds-client.ts";

const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
const STREAM = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const MEGABYTE = 1_048_576;
const asIs = (bytes: Buffer) => bytes;

/** Bytes that are no message: random ones, fields without an end, and nesting without a bottom. */
const CRAFTED: readonly Buffer[] = [
  randomBytes(1000),
  Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
  Buffer.alloc(100_000, 0x0b),
  Buffer.from("0a".repeat(2_000), "hex"),
];

describe("holes of the past", () => {
  let plane: TestControlPlane;
  let plain: string;
  let secure: string;
  before(async () => {
    plane = new TestControlPlane();
    await plane.ready();
    plain = await plane.address("gRPC discovery service");
    secure = (await plane.address("secure gRPC discovery service")).replace("127.0.0.1", "localhost");
  });
  after(() => plane?.[Symbol.asyncDispose]());

  function client(): Client {
    const root = readFileSync(join(plane.folder, "ca/root-cert.pem"));
    return new Client(secure, credentials.createSsl(root), { "grpc.max_send_message_length": -1 });
  }

  /** How a call without credentials ends. */
  function refusal(path: string, bytes: Buffer): Promise<status> {
    const caller = client();
    return new Promise<status>((resolve) => {
      const ended = ({ code }: Pick<ServiceError, "code">) => {
        caller.close();
        resolve(code);
      };
      if (path === STREAM) {
        const call = caller.makeBidiStreamRequest(path, asIs, asIs);
        call.on("error", () => undefined); // the status tells
        call.on("status", ended);
        call.on("data", () => ended({ code: status.OK }));
        call.write(bytes);
      } else {
        caller.makeUnaryRequest(path, asIs, asIs, bytes, (error) => ended({ code: error?.code ?? status.OK }));
      }
    });
  }

  async function stillServes(): Promise<void> {
    using proxy = new XdsClient(plain, { node: nodeOf(proxyOf()) });
    proxy.request(CLUSTER_TYPE);
    await proxy.take(CLUSTER_TYPE);
  }

  test("CVE-2022-23635: crafted messages of nobody end the control plane", async () => {
    for (const bytes of CRAFTED) {
      for (const path of [CREATE_CERTIFICATE, STREAM]) assert.notEqual(await refusal(path, bytes), status.OK);
      for (const address of [plain, secure]) await sent(address, bytes);
    }
    await stillServes();
  });

  test("CVE-2022-24726: messages without measure end the control plane", async () => {
    for (const path of [CREATE_CERTIFICATE, STREAM]) {
      assert.notEqual(await refusal(path, Buffer.alloc(20 * MEGABYTE, 0x0a)), status.OK);
    }
    await stillServes();
  });

  test("CVE-2022-39388: who calls from the same machine is believed", async () => {
    assert.equal(await refusal(CREATE_CERTIFICATE, Buffer.alloc(0)), status.UNAUTHENTICATED);
    assert.equal(await refusal(STREAM, Buffer.alloc(0)), status.UNAUTHENTICATED);
  });
});

test("CVE-2022-39278, CVE-2019-14993: regular expressions that are deep, huge or slow", () => {
  const http = (regex: string) => [{ match: [{ uri: { regex } }], route: [{ destination: { host: "a" } }] }];
  const startedAt = performance.now();
  for (const regex of ["(".repeat(20_000), `${"(".repeat(2_000)}a${")".repeat(2_000)}`, "(a{1000}){1000}", "(a*)*b"]) {
    const metadata = { name: "x", namespace: "ns" };
    const spec = { hosts: ["a"], http: http(regex) };
    // Refused or not, it is answered.
    parseObject({ apiVersion: "networking.istio.io/v1", kind: "VirtualService", metadata, spec });
  }
  assert.ok(performance.now() - startedAt < 20_000);
});

/** Sends bytes as they are, and waits until the other side has had enough of them. */
function sent(address: string, bytes: Buffer): Promise<void> {
  const port = Number(address.split(":").at(-1));
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
    socket.on("error", () => undefined); // being cut off is fine
    socket.on("close", () => resolve());
    socket.resume();
  });
}
