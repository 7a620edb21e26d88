/**
 * `envoy.service.secret.v3.SecretDiscoveryService`: gives Envoy the secrets it asks for, and each of them again when it
 * changes. A secret that is not there yet is sent when it is: Envoy waits for it, so there is nothing to gain by an error.
 */
import { type ServerDuplexStream, status } from "@grpc/grpc-js";
import type { Logger } from "#lib/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { RAW, type UnixService } from "../unix-server.ts";
import { DELTA, type EncodedSecret, type SecretStreamKind, SOTW } from "./messages.ts";
import type { SecretSource } from "./secret-source.ts";

type Call = ServerDuplexStream<Buffer, Buffer>;

const SERVICE = "/envoy.service.secret.v3.SecretDiscoveryService";

export function secretDiscoveryService(sources: readonly SecretSource[], log: Logger): UnixService {
  const method = (name: string) => ({ path: `${SERVICE}/${name}`, requestStream: true, responseStream: true, ...RAW });
  const handler = (kind: SecretStreamKind) => (call: Call) => serveSecrets({ call, kind, sources, log });
  return {
    definition: { StreamSecrets: method("StreamSecrets"), DeltaSecrets: method("DeltaSecrets") },
    implementation: { StreamSecrets: handler(SOTW), DeltaSecrets: handler(DELTA) },
  };
}

interface Stream {
  readonly call: Call;
  readonly kind: SecretStreamKind;
  readonly sources: readonly SecretSource[];
  readonly log: Logger;
}

function serveSecrets({ call, kind, sources, log }: Stream): void {
  /** How to stop watching, by name. */
  const watches = new Map<string, () => void>();
  let responses = 0;
  const send = (secret: EncodedSecret) => {
    const number = String(++responses);
    call.write(kind.format({ secrets: [secret], version: number, nonce: number }));
  };
  const stop = (name: string) => {
    watches.get(name)?.();
    watches.delete(name);
  };
  const stopAll = () => {
    for (const name of [...watches.keys()]) stop(name);
  };
  const fail = (code: status, details: string) => {
    stopAll();
    call.emit("error", { code, details });
  };
  call.on("data", (bytes: Buffer) => {
    try {
      const request = kind.parse(bytes, new Set(watches.keys()));
      if (request.refused !== undefined)
        log.warn(`Envoy refused ${[...watches.keys()].join(", ")}: ${request.refused}`);
      for (const name of request.unsubscribe) stop(name);
      for (const name of request.subscribe) {
        const source = sources.find((candidate) => candidate.owns(name));
        if (source === undefined) {
          log.warn(`Envoy asked for a secret that the agent does not have: ${name}`);
          fail(status.NOT_FOUND, `the agent has no secret ${name}`);
          return;
        }
        stop(name);
        watches.set(name, source.watch(name, send));
      }
    } catch (thrown) {
      fail(status.INVALID_ARGUMENT, errorText(thrown));
    }
  });
  call.on("cancelled", stopAll);
  call.on("error", stopAll);
  call.on("end", () => {
    stopAll();
    call.end();
  });
}
