/**
 * `envoy.service.secret.v3.SecretDiscoveryService`: gives Envoy the workload's certificate (`default`) and the roots it
 * trusts (`ROOTCA`), and pushes each of them when it changes. A secret that is not there yet is sent when it is: Envoy
 * waits for it without a time limit, so there is nothing to gain by an error.
 */
import { type ServerDuplexStream, status } from "@grpc/grpc-js";
import type { Logger } from "#lib/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { RAW, type UnixService } from "../unix-server.ts";
import type { WorkloadCertificate } from "./certificate.ts";
import { certificateSecret, DELTA, type EncodedSecret, rootsSecret, type SecretStreamKind, SOTW } from "./messages.ts";
import type { CertificateChange } from "./workload-identity.ts";

/** Where secrets come from. */
export interface CertificateSource {
  readonly current: WorkloadCertificate | undefined;
  subscribe(onChange: (change: CertificateChange) => void): () => void;
}

export const WORKLOAD_SECRET = "default";
export const ROOT_SECRET = "ROOTCA";

type Call = ServerDuplexStream<Buffer, Buffer>;

const SERVICE = "/envoy.service.secret.v3.SecretDiscoveryService";

export function secretDiscoveryService(source: CertificateSource, log: Logger): UnixService {
  const method = (name: string) => ({ path: `${SERVICE}/${name}`, requestStream: true, responseStream: true, ...RAW });
  const handler = (kind: SecretStreamKind) => (call: Call) => serveSecrets({ call, kind, source, log });
  return {
    definition: { StreamSecrets: method("StreamSecrets"), DeltaSecrets: method("DeltaSecrets") },
    implementation: { StreamSecrets: handler(SOTW), DeltaSecrets: handler(DELTA) },
  };
}

interface Stream {
  readonly call: Call;
  readonly kind: SecretStreamKind;
  readonly source: CertificateSource;
  readonly log: Logger;
}

function serveSecrets({ call, kind, source, log }: Stream): void {
  const subscribed = new Set<string>();
  let responses = 0;
  const send = (names: readonly string[]) => {
    const secrets = names.flatMap((name) => secretOf(name, source.current) ?? []);
    if (secrets.length === 0) return;
    const number = String(++responses);
    call.write(kind.format({ secrets, version: number, nonce: number }));
  };
  const unsubscribe = source.subscribe(({ rootsChanged }) => {
    send([WORKLOAD_SECRET, ...(rootsChanged ? [ROOT_SECRET] : [])].filter((name) => subscribed.has(name)));
  });
  call.on("data", (bytes: Buffer) => {
    try {
      const request = kind.parse(bytes, subscribed);
      if (request.refused !== undefined) log.warn(`Envoy refused ${[...subscribed].join(", ")}: ${request.refused}`);
      for (const name of request.unsubscribe) subscribed.delete(name);
      const unknown = request.subscribe.filter((name) => name !== WORKLOAD_SECRET && name !== ROOT_SECRET);
      if (unknown.length > 0) {
        log.warn(`Envoy asked for secrets that the agent does not have: ${unknown.join(", ")}`);
        call.emit("error", { code: status.NOT_FOUND, details: `the agent has no secret ${unknown.join(", ")}` });
        return;
      }
      for (const name of request.subscribe) subscribed.add(name);
      send(request.subscribe);
    } catch (thrown) {
      call.emit("error", { code: status.INVALID_ARGUMENT, details: errorText(thrown) });
    }
  });
  call.on("cancelled", unsubscribe);
  call.on("error", unsubscribe);
  call.on("end", () => {
    unsubscribe();
    call.end();
  });
}

function secretOf(name: string, certificate: WorkloadCertificate | undefined): EncodedSecret | undefined {
  if (certificate === undefined) return undefined;
  return name === ROOT_SECRET ? rootsSecret(name, certificate.roots) : certificateSecret(name, certificate);
}
