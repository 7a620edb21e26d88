/** Figures of the CA under the names that Istio's dashboards know. */
import { X509Certificate } from "node:crypto";
import type { GaugeValue, MetricDefinition } from "#lib/metrics/metrics.ts";
import type { Authority } from "./authority.ts";

export const CA_COUNTERS = {
  citadel_server_csr_count: counter("Certificate requests received"),
  citadel_server_authentication_failure_count: counter("Certificate requests of callers that were not believed"),
  citadel_server_csr_parsing_err_count: counter("Certificate requests whose CSR was refused"),
  citadel_server_csr_sign_err_count: counter("Certificate requests that could not be signed"),
  citadel_server_success_cert_issuance_count: counter("Certificates issued"),
};
export type CaCounter = keyof typeof CA_COUNTERS;

export const CA_GAUGES = {
  citadel_server_root_cert_expiry_timestamp: gauge("When the first root ends, in seconds since 1970"),
  citadel_server_root_cert_expiry_seconds: gauge("Seconds until the first root ends"),
  citadel_server_cert_chain_expiry_timestamp: gauge("When the signing certificate's chain ends, in seconds since 1970"),
  citadel_server_cert_chain_expiry_seconds: gauge("Seconds until the signing certificate's chain ends"),
};

/** Values of the gauges now. Without a chain the root signs itself, and nothing is said of a chain. */
export function caGauges(
  { bundle }: Authority,
  now: number,
): Readonly<Record<keyof typeof CA_GAUGES, readonly GaugeValue[]>> {
  const [root] = bundle.roots;
  const [chain] = bundle.chain.map((pem) => new X509Certificate(pem));
  const timestamp = (certificate: X509Certificate | undefined) =>
    certificate === undefined ? [] : [{ value: certificate.validToDate.getTime() / 1000 }];
  const left = (certificate: X509Certificate | undefined) =>
    timestamp(certificate).map(({ value }) => ({ value: value - now / 1000 }));
  return {
    citadel_server_root_cert_expiry_timestamp: timestamp(root),
    citadel_server_root_cert_expiry_seconds: left(root),
    citadel_server_cert_chain_expiry_timestamp: timestamp(chain),
    citadel_server_cert_chain_expiry_seconds: left(chain),
  };
}

function counter(help: string): MetricDefinition {
  return { type: "counter", help };
}

function gauge(help: string): MetricDefinition {
  return { type: "gauge", help };
}
