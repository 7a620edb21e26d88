/** Says and counts what is wrong with the secrets that proxies ask for. What is there is sent all the same, as by istiod. */
import { X509Certificate } from "node:crypto";
import { fromBinary } from "@bufbuild/protobuf";
import { SecretSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Draft } from "#protocol/subscription.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { BuiltResource } from "../resources/built-resource.ts";
import type { Clock } from "../timing/clock.ts";

export interface SentSecretsInput {
  readonly clock: Pick<Clock, "now">;
  readonly metrics: Pick<Metrics, "count">;
  readonly log: Logger;
}

export class SentSecrets {
  readonly #input: SentSecretsInput;
  /** Proxies share resources: each is looked at when it is first sent. */
  readonly #seen = new WeakSet<BuiltResource>();

  constructor(input: SentSecretsInput) {
    this.#input = input;
  }

  /** These go to a proxy. */
  sent({ resources, removed }: Pick<Draft<BuiltResource>, "resources" | "removed">, node: string): void {
    const { log } = this.#input;
    for (const resource of resources) {
      if (this.#seen.has(resource)) continue;
      this.#seen.add(resource);
      const problem = certificateProblem(resource.value, this.#input.clock.now());
      if (problem === undefined) continue;
      this.#count(1);
      log.warn(`the certificate of a secret ${problem}`, { name: resource.name, node });
    }
    if (removed.length === 0) return;
    this.#count(removed.length);
    log.warn("a proxy asks for secrets that are not there, or not for it", { node, names: removed });
  }

  #count(by: number): void {
    this.#input.metrics.count("pilot_sds_certificate_errors_total", {}, by);
  }
}

/** What is wrong with the first certificate of a secret, which is that of the server or a root. */
function certificateProblem(secret: Uint8Array, now: number): string | undefined {
  const { type } = fromBinary(SecretSchema, secret);
  const holder = type.case === "tlsCertificate" ? type.value.certificateChain : undefined;
  const { specifier } = (type.case === "validationContext" ? type.value.trustedCa : holder) ?? {};
  if (specifier?.case !== "inlineBytes") return undefined;
  try {
    const { validFromDate, validToDate } = new X509Certificate(specifier.value);
    if (now > validToDate.getTime()) return "has ended";
    return now < validFromDate.getTime() ? "is not valid yet" : undefined;
  } catch {
    // The library's message may quote what it read.
    return "is no certificate in PEM";
  }
}
