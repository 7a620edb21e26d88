/** TLS that a gateway ends for clients outside the mesh. */
import type { ServerTls } from "#config/kinds/gateway/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { TransportSocket } from "#gen/envoy/config/core/v3/base_pb.ts";
import {
  type CertificateValidationContextSchema,
  type TlsParametersSchema,
  TlsParameters_TlsProtocol as TlsVersion,
} from "#gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts";
import type { SdsSecretConfig } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import type { CommonTlsContextSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import type { ServerSecrets, TcpTraits } from "../traits/traits.ts";
import type { Init } from "../wire/encode.ts";
import { compliant } from "./compliance.ts";
import { downstreamTlsSocket, quicSocket } from "./downstream-tls.ts";
import {
  credentialSecret,
  exactly,
  fileSecret,
  knownCiphers,
  knownCurves,
  TRUSTED_ROOTS,
  WORKLOAD_CERTIFICATE,
} from "./secrets.ts";

type Context = Init<typeof CommonTlsContextSchema>;

/** What a server's TLS is made from. */
export interface ServerTlsInput {
  readonly tls: ServerTls;
  /** Over plain TCP proxies of the mesh also tell each other who they are. */
  readonly isTcp: boolean;
  /** HTTP/3: TLS inside of QUIC, where Envoy cannot ask for clients' certificates. */
  readonly isQuic?: boolean;
  readonly traits: Pick<TcpTraits, "withoutExchangeAlpn" | "compliance" | "credentialSocket" | "fileSocket">;
  /** In place of the workload's certificate and roots. */
  readonly secrets: ServerSecrets;
  /** `NAME CLUSTER` of each service of the mesh that serves credentials. */
  readonly credentialProviders?: readonly string[];
  readonly mesh: MeshConfig;
}

/** The socket of a server with its certificate, and roots for clients' certificates where these are asked for. */
export function serverTls(input: ServerTlsInput): TransportSocket {
  const { tls, isTcp, isQuic = false, traits, mesh } = input;
  const isMutual = tls.mode === "MUTUAL" || tls.mode === "ISTIO_MUTUAL";
  const protocols = isQuic ? ["h3"] : ["h2", "http/1.1"];
  const params = tls.mode === "ISTIO_MUTUAL" ? undefined : parameters(tls, mesh);
  const exchanges = isTcp && tls.mode === "ISTIO_MUTUAL" && !traits.withoutExchangeAlpn;
  const context = {
    ...certificates(input),
    alpnProtocols: exchanges ? ["istio-peer-exchange", ...protocols] : protocols,
    ...(params && { tlsParams: params }),
  };
  return (isQuic ? quicSocket : downstreamTlsSocket)({
    requireClientCertificate: isMutual && !isQuic,
    commonTlsContext: compliant(context, traits.compliance),
  });
}

function certificates({ tls, traits, secrets, credentialProviders }: ServerTlsInput): Context {
  if (tls.mode === "ISTIO_MUTUAL") {
    const own = secrets.certificate === "" ? WORKLOAD_CERTIFICATE : fileSecret(secrets.certificate, traits);
    const roots = secrets.roots === "" ? TRUSTED_ROOTS : fileSecret(secrets.roots, traits);
    return { tlsCertificateSdsSecretConfigs: [own], ...validation(tls, roots) };
  }
  const asks = tls.mode === "MUTUAL" || tls.mode === "OPTIONAL_MUTUAL";
  const credentials = tls.credentialNames?.length ? tls.credentialNames : [tls.credentialName ?? ""];
  if (credentials[0] !== "") {
    const secret = (name: string) => credentialSecret(name, traits, credentialProviders);
    const roots = secret(tls.caCertCredentialName || `${credentials[0]}-cacert`);
    return {
      tlsCertificateSdsSecretConfigs: credentials.map(secret),
      ...(asks ? validation(tls, roots) : namesOnly(tls)),
    };
  }
  const files = tls.tlsCertificates?.length ? tls.tlsCertificates : [tls];
  const roots = tls.caCertificates ? fileSecret(`file-root:${tls.caCertificates}`, traits) : TRUSTED_ROOTS;
  return {
    tlsCertificateSdsSecretConfigs: files.map((pair) => fileCertificate(pair, traits)),
    ...(asks && validation(tls, roots)),
  };
}

function fileCertificate(
  { serverCertificate, privateKey }: Pick<ServerTls, "serverCertificate" | "privateKey">,
  traits: ServerTlsInput["traits"],
): SdsSecretConfig {
  if (!serverCertificate || !privateKey) return WORKLOAD_CERTIFICATE;
  return fileSecret(`file-cert:${serverCertificate}~${privateKey}`, traits);
}

function validation(tls: ServerTls, roots: SdsSecretConfig): Context {
  const isCredential = Boolean(tls.credentialName) || (tls.credentialNames?.length ?? 0) > 0;
  const checks: Init<typeof CertificateValidationContextSchema> = {
    matchSubjectAltNames: exactly(tls.subjectAltNames ?? []),
    ...(isCredential && {
      verifyCertificateSpki: (tls.verifyCertificateSpki ?? []).map((pin) => (SPKI.test(pin) ? pin : NO_SPKI)),
      verifyCertificateHash: (tls.verifyCertificateHash ?? []).map((pin) => (HASH.test(pin) ? pin : NO_HASH)),
    }),
    ...(tls.caCrl && !isCredential && { crl: { specifier: { case: "filename", value: tls.caCrl } } }),
  };
  return {
    validationContextType: {
      case: "combinedValidationContext",
      value: { defaultValidationContext: checks, validationContextSdsSecretConfig: roots },
    },
  };
}

const SPKI = /^[A-Za-z0-9+/]{43}=$/;
const HASH = /^([0-9a-f]{64}|[0-9a-f]{2}(:[0-9a-f]{2}){31})$/i;
/** Envoy refuses what is no pin at all. No certificate has these, so that a mistake does not let anybody in. */
const NO_SPKI = `${"A".repeat(43)}=`;
const NO_HASH = "0".repeat(64);

function namesOnly({ subjectAltNames = [] }: ServerTls): Context {
  if (subjectAltNames.length === 0) return {};
  return {
    validationContextType: { case: "validationContext", value: { matchSubjectAltNames: exactly(subjectAltNames) } },
  };
}

const VERSIONS = {
  TLS_AUTO: TlsVersion.TLS_AUTO,
  TLSV1_0: TlsVersion.TLSv1_0,
  TLSV1_1: TlsVersion.TLSv1_1,
  TLSV1_2: TlsVersion.TLSv1_2,
  TLSV1_3: TlsVersion.TLSv1_3,
} as const;

/** Settings of the mesh, then those of the server; undefined when there are none, which leaves Envoy its own. */
function parameters(tls: ServerTls, { tlsDefaults }: MeshConfig): Init<typeof TlsParametersSchema> | undefined {
  const minimum = VERSIONS[tls.minProtocolVersion ?? "TLS_AUTO"] || meshMinimum(tlsDefaults?.minProtocolVersion);
  const maximum = VERSIONS[tls.maxProtocolVersion ?? "TLS_AUTO"];
  const ciphers = knownCiphers(tls.cipherSuites?.length ? tls.cipherSuites : tlsDefaults?.cipherSuites);
  const curves = knownCurves(tlsDefaults?.ecdhCurves);
  const set = {
    ...(minimum && { tlsMinimumProtocolVersion: minimum }),
    ...(maximum && { tlsMaximumProtocolVersion: maximum }),
    ...(ciphers.length > 0 && { cipherSuites: ciphers }),
    ...(curves.length > 0 && { ecdhCurves: curves }),
  };
  return Object.keys(set).length === 0 ? undefined : set;
}

function meshMinimum(version: "TLS_AUTO" | "TLSV1_2" | "TLSV1_3" | undefined): TlsVersion {
  if (version === undefined || version === "TLS_AUTO") return TlsVersion.TLS_AUTO;
  return version === "TLSV1_3" ? TlsVersion.TLSv1_3 : TlsVersion.TLSv1_2;
}
