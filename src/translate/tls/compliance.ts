/** TLS within what a policy allows (COMPLIANCE_POLICY), applied after everything else. */
import { TlsParameters_TlsProtocol as TlsVersion } from "#gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts";
import type { CommonTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import type { Compliance } from "../traits/switches.ts";
import type { Init } from "../wire/encode.ts";

type Context = Init<typeof CommonTlsContextSchema>;

/** Those that FIPS 140-2 knows. */
const CIPHER_SUITES = [
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
];

/** The settings as the policy allows them; without a policy as they are. */
export function compliant(context: Context, policy: Compliance | undefined): Context {
  if (policy === undefined) return context;
  const { tlsParams = {} } = context;
  if (policy === "pqc") {
    const params = { tlsMinimumProtocolVersion: TlsVersion.TLSv1_3, cipherSuites: [...CIPHER_SUITES] };
    return { ...context, tlsParams: { ...tlsParams, ...params, ecdhCurves: ["X25519MLKEM768"] } };
  }
  const versions = {
    tlsMinimumProtocolVersion: TlsVersion.TLSv1_2,
    tlsMaximumProtocolVersion: TlsVersion.TLSv1_2,
  };
  // Without a list Envoy's FIPS build takes what it may; its curve is P-256 then.
  const cipherSuites = (tlsParams.cipherSuites ?? []).filter((suite) => CIPHER_SUITES.includes(suite));
  return { ...context, tlsParams: { ...tlsParams, ...versions, cipherSuites, ecdhCurves: [] } };
}
