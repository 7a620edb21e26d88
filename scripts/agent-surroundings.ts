/** What an agent meets when it starts: a control plane that signs and has nothing to say, and an Envoy that asks. */
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, get } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { dirname, join } from "node:path";
import { joined, MessageSender, MessageSplitter } from "#lib/grpc/messages.ts";
import type { Method } from "#lib/grpc/server-call.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { EMPTY_REQUEST, formatDeltaRequest, parseDeltaRequest } from "#protocol/messages/delta-request.ts";
import { formatDeltaResponse, parseDeltaResponse } from "#protocol/messages/delta-response.ts";
import { CLUSTER_TYPE, LISTENER_TYPE, SECRET_TYPE } from "#protocol/messages/type-urls.ts";
import { startSigningService } from "./signing-service.ts";

const DELTA_CONFIGURATION = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const SECRETS = "/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets";
/** What the agent asks Envoy for until it is ready. */
const STATS = `cluster_manager.cds.update_success: 1
listener_manager.lds.update_success: 1
listener_manager.workers_started: 1
server.state: 0
`;
const NODE = new MessageWriter().string(1, "sidecar~127.0.0.1~pod.default~default.svc.cluster.local").finish();

/** Starts a control plane and writes what a pod has of it into a folder. Answers with its address. */
export async function startControlPlane(pod: string): Promise<string> {
  const { address, rootPem } = await startSigningService({
    serviceAccount: "default",
    name: "istiod.istio-system.svc",
    others: { [DELTA_CONFIGURATION]: answerEmpty },
  });
  put(join(pod, "var/run/secrets/istio/root-cert.pem"), rootPem);
  put(join(pod, "var/run/secrets/tokens/istio-token"), "token");
  return address;
}

/** There is nothing of any type. */
const answerEmpty: Method = (call) => {
  call.serve({
    message: (message) => {
      const { typeUrl, nonce } = parseDeltaRequest(joined(message));
      const empty = { resources: [], removed: [], systemVersion: "1", controlPlane: "" };
      if (nonce === "") call.send(formatDeltaResponse({ typeUrl, nonce: "1", ...empty }));
    },
  });
};

/** An admin port of an Envoy that is ready. */
export async function startAdmin(): Promise<number> {
  const server = createServer((_, response) => response.end(STATS)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Asks the agent of a pod as Envoy does, for configuration and for its certificate, and as the kubelet does, whether it is ready. */
export async function askAsEnvoy(pod: string, statusPort: number): Promise<void> {
  const configuration = speak(join(pod, "etc/istio/proxy/XDS"), DELTA_CONFIGURATION);
  for (const typeUrl of [CLUSTER_TYPE, LISTENER_TYPE]) {
    configuration.say(formatDeltaRequest({ ...EMPTY_REQUEST, node: NODE, typeUrl }));
    const { nonce } = parseDeltaResponse(await configuration.heard());
    configuration.say(formatDeltaRequest({ ...EMPTY_REQUEST, typeUrl, nonce }));
  }
  for (const name of ["default", "ROOTCA"]) {
    const secrets = speak(join(pod, "var/run/secrets/workload-spiffe-uds/socket"), SECRETS);
    secrets.say(new MessageWriter().bytes(2, NODE).string(3, name).string(4, SECRET_TYPE).finish());
    await secrets.heard();
    secrets.end();
  }
  for (const path of ["/healthz/ready", "/stats/prometheus"]) {
    const [response] = await once(get({ host: "127.0.0.1", port: statusPort, path, agent: false }), "response");
    await once(response.resume(), "end");
  }
  configuration.end();
}

/** A stream of messages on a socket. */
function speak(socket: string, path: string) {
  const session: ClientHttp2Session = connectHttp2("http://agent", { createConnection: () => connect(socket) });
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
    te: "trailers",
  });
  // Whoever waits for an answer hears of it.
  for (const each of [session, stream]) each.on("error", () => undefined);
  const sender = new MessageSender(stream, { isEncrypted: false });
  const come: Buffer[] = [];
  const splitter = new MessageSplitter(-1, (message) => {
    come.push(joined(message));
    stream.emit("message");
  });
  stream.on("data", (chunk: Buffer) => splitter.push(chunk));
  return {
    say: (message: Uint8Array) => sender.send(message),
    heard: async (): Promise<Buffer> => {
      if (come.length === 0) await once(stream, "message");
      return come.shift() ?? Buffer.alloc(0);
    },
    end: () => session.destroy(),
  };
}

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
