/** The xDS proxy between a client that plays Envoy and a control plane that does what a test says. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, type ClientDuplexStream, credentials } from "@grpc/grpc-js";
import { agentMetrics } from "#agent/metrics.ts";
import { serveUnix } from "#agent/unix-server.ts";
import { XdsProxy, type XdsProxyOptions } from "#agent/xds-proxy/service.ts";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
} from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { createLogger } from "#lib/log/log.ts";
import {
  eventually,
  type FakeControlPlane,
  type Stream,
  startFakeControlPlane,
  temporaryFolder,
} from "./fake-control-plane.ts";
import { RAW } from "./raw-messages.ts";
import { UnreadCall } from "./unread-call.ts";

const ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService";

export type Context = { after(fn: () => void): void };

export const deltaRequest = (
  typeUrl: string,
  more: { responseNonce?: string; resourceNamesSubscribe?: string[] } = {},
) => Buffer.from(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl, ...more })));
export const deltaResponse = (typeUrl: string, nonce: string, value: Uint8Array = new Uint8Array()) =>
  Buffer.from(
    toBinary(
      DeltaDiscoveryResponseSchema,
      create(DeltaDiscoveryResponseSchema, {
        typeUrl,
        nonce,
        resources: [{ name: "x", version: "1", resource: { typeUrl, value } }],
      }),
    ),
  );
/** A request that came to the control plane. */
export const read = (bytes: Buffer) => fromBinary(DeltaDiscoveryRequestSchema, bytes);

/** The proxy between a client on its socket and a fake control plane. */
export async function setUp(
  t: Context,
  {
    plane: given,
    ownTypes = new Map(),
    maxRequestBytes,
    ...more
  }: Partial<XdsProxyOptions> & { plane?: FakeControlPlane; maxRequestBytes?: number } = {},
) {
  const upstreams: { stream: Stream; kind: string; requests: Buffer[] }[] = [];
  const plane =
    given ??
    (await startFakeControlPlane({
      onStream: (stream, kind) => {
        const upstream = { stream, kind, requests: [] as Buffer[] };
        stream.on("data", (request: Buffer) => upstream.requests.push(request));
        stream.on("error", () => undefined);
        upstreams.push(upstream);
      },
    }));
  const folder = temporaryFolder(t);
  const [path, rootCertificate] = [join(folder, "XDS"), join(folder, "root.pem")];
  writeFileSync(rootCertificate, plane.rootPem);
  const lines: string[] = [];
  const metrics = agentMetrics();
  const stop = new AbortController();
  const upstream = {
    address: plane.address,
    rootCertificate,
    subjectAltName: "",
    headers: { clusterid: "Kubernetes", "x-extra": "1" },
    fetchToken: async () => "secret-token",
  };
  const log = createLogger({ write: (line) => lines.push(line) });
  const proxy = new XdsProxy({ upstream, ownTypes, log, metrics, ...more });
  void proxy.run(stop.signal);
  await serveUnix(path, [proxy.service], {
    signal: stop.signal,
    ...(maxRequestBytes === undefined ? {} : { maxRequestBytes }),
  });
  const client = new Client(`unix:${path}`, credentials.createInsecure(), { "grpc.max_receive_message_length": -1 });
  t.after(() => {
    client.close();
    stop.abort();
    plane.close();
  });
  const envoy = (method = "DeltaAggregatedResources"): ClientDuplexStream<Buffer, Buffer> => {
    const stream = client.makeBidiStreamRequest(`${ADS}/${method}`, RAW.requestSerialize, RAW.responseDeserialize);
    stream.on("error", () => undefined); // cancelling is one
    return stream;
  };
  const connected = async (count = 1) => {
    await eventually(`${count} streams at the control plane`, () => upstreams.length >= count);
    const last = upstreams[count - 1];
    if (last === undefined) throw new Error("no stream");
    return last;
  };
  /** One that does not read what it asked for. */
  const idleEnvoy = (request: Buffer) => new UnreadCall(`unix:${path}`, `${ADS}/DeltaAggregatedResources`, request);
  return { plane, proxy, envoy, idleEnvoy, connected, upstreams, lines, metrics, folder };
}
