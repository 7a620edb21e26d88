/** TLS towards the endpoints of a cluster. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import type { ClientTls } from "#config/kinds/destination-rule/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { type TransportSocket, TransportSocketSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import type { UpstreamHttpProtocolOptionsSchema } from "#gen/envoy/config/core/v3/protocol_pb.ts";
import { RawBufferSchema } from "#gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.ts";
import {
  type TlsParametersSchema,
  TlsParameters_TlsProtocol as TlsVersion,
} from "#gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts";
import {
  type CommonTlsContextSchema,
  UpstreamTlsContextSchema,
} from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import type { Service } from "#model/service/service.ts";
import type { MtlsMode } from "../policies/peer-authentication.ts";
import type { ClusterTraits } from "../traits/traits.ts";
import { type Init, pack } from "../wire/encode.ts";
import { compliant } from "./compliance.ts";
import {
  credentialSecret,
  exactly,
  fileSecret,
  knownCiphers,
  knownCurves,
  TRUSTED_ROOTS,
  WORKLOAD_CERTIFICATE,
} from "./secrets.ts";

/** What decides how connections to a service are protected. */
export interface UpstreamTlsInput {
  readonly tls: ClientTls | undefined;
  readonly service: Service;
  /** SPIFFE ids and other names that the servers may have. */
  readonly identities: readonly string[];
  /** What the servers accept, as far as a client can know. */
  readonly mtls: MtlsMode;
  readonly serverName: string;
  readonly isHttp2: boolean;
  /** The endpoints are whatever address was called, so they cannot be told apart by metadata. */
  readonly isOriginalDestination: boolean;
  /** The rule selects this workload, so that its credentials may be meant for it. */
  readonly ruleSelects: boolean;
  readonly traits: ClusterTraits;
  readonly mesh: MeshConfig;
}

/** The parts of a cluster that TLS decides. */
export interface UpstreamTls {
  readonly sockets: {
    readonly transportSocket?: TransportSocket;
    /** One of them for each endpoint, by its metadata. */
    readonly transportSocketMatches?: SocketMatch[];
  };
  readonly http: Init<typeof UpstreamHttpProtocolOptionsSchema> | undefined;
}

/** A socket for the endpoints whose metadata fit. */
export interface SocketMatch {
  readonly name: string;
  readonly match: JsonObject;
  readonly transportSocket: TransportSocket;
}

const PLAIN: UpstreamTls = { sockets: {}, http: undefined };

/** By the rule if it says so; else mutual TLS to those endpoints of the mesh that can do it. */
export function upstreamTls(input: UpstreamTlsInput): UpstreamTls {
  const { service, mesh, mtls, traits, identities, serverName } = input;
  if (input.tls !== undefined) return ruledTls(withFiles(input.tls, input), input);
  if (service.meshExternal || !mesh.enableAutoMtls || mtls === "DISABLE") return PLAIN;
  if (traits.certificate !== undefined) {
    // As by istiod, which asks nobody whether they can do it: who has such files has a mesh of its own.
    return originated({ mode: "MUTUAL", ...traits.certificate, subjectAltNames: identities, sni: serverName }, input);
  }
  const socket = istioMutual(input, identities, serverName);
  return { sockets: input.isOriginalDestination ? { transportSocket: socket } : perEndpoint(socket), http: undefined };
}

/** A proxy with a certificate in files shows that one to the mesh, whatever the rule says. */
function withFiles(tls: ClientTls, { traits, service }: UpstreamTlsInput): ClientTls {
  const isMutual = tls.mode === "MUTUAL" || tls.mode === "ISTIO_MUTUAL";
  if (traits.certificate === undefined || !isMutual) return tls;
  if (service.meshExternal && !traits.filesForExternal) return tls;
  return { mode: "MUTUAL", ...traits.certificate, subjectAltNames: tls.subjectAltNames, sni: tls.sni };
}

function ruledTls(tls: ClientTls, input: UpstreamTlsInput): UpstreamTls {
  switch (tls.mode) {
    case "ISTIO_MUTUAL": {
      const names = tls.subjectAltNames ?? input.identities;
      return { sockets: { transportSocket: istioMutual(input, names, tls.sni || input.serverName) }, http: undefined };
    }
    case "SIMPLE":
    case "MUTUAL":
      return canUseCredential(tls, input) ? originated(tls, input) : PLAIN;
    default:
      return PLAIN;
  }
}

/** Endpoints with a proxy of the mesh get mutual TLS, the others plain text. */
function perEndpoint(socket: TransportSocket): UpstreamTls["sockets"] {
  return {
    transportSocketMatches: [
      { name: "tlsMode-istio", match: { tlsMode: "istio" }, transportSocket: socket },
      { name: "tlsMode-disabled", match: {}, transportSocket: RAW_BUFFER },
    ],
  };
}

const RAW_BUFFER = create(TransportSocketSchema, {
  name: "envoy.transport_sockets.raw_buffer",
  configType: { case: "typedConfig", value: pack(RawBufferSchema, {}) },
});

function istioMutual(input: UpstreamTlsInput, names: readonly string[], sni: string): TransportSocket {
  const protocols = input.isHttp2 ? ["istio", "h2"] : ["istio"];
  const { metadataExchange, withoutExchangeAlpn } = input.traits;
  return tlsSocket(sni, input, {
    tlsParams: TLS_VERSIONS,
    alpnProtocols: metadataExchange && !withoutExchangeAlpn ? ["istio-peer-exchange", ...protocols] : protocols,
    tlsCertificateSdsSecretConfigs: [WORKLOAD_CERTIFICATE],
    validationContextType: {
      case: "combinedValidationContext",
      value: {
        defaultValidationContext: { matchSubjectAltNames: exactly(names) },
        validationContextSdsSecretConfig: TRUSTED_ROOTS,
      },
    },
  });
}

const TLS_VERSIONS: Init<typeof TlsParametersSchema> = {
  tlsMinimumProtocolVersion: TlsVersion.TLSv1_2,
  tlsMaximumProtocolVersion: TlsVersion.TLSv1_3,
};

/** TLS to servers outside the mesh, with certificates from files or credentials. */
function originated(tls: ClientTls, input: UpstreamTlsInput): UpstreamTls {
  return { sockets: { transportSocket: originatedSocket(tls, input) }, http: autoServerName(tls) };
}

function originatedSocket(tls: ClientTls, input: UpstreamTlsInput): TransportSocket {
  const { cipherSuites, ecdhCurves } = input.mesh.tlsDefaults ?? {};
  const context: Init<typeof CommonTlsContextSchema> = {
    tlsParams: { ...TLS_VERSIONS, cipherSuites: knownCiphers(cipherSuites), ecdhCurves: knownCurves(ecdhCurves) },
    ...certificates(tls, input),
    ...(input.isHttp2 && { alpnProtocols: ["h2"] }),
  };
  return tlsSocket(tls.sni ?? "", input, context);
}

/** What is sent and checked by default comes from the `Host` header. */
function autoServerName(tls: ClientTls): UpstreamTls["http"] {
  if (tls.sni) return undefined;
  const checksName = (tls.subjectAltNames ?? []).length === 0 && tls.insecureSkipVerify !== true;
  return { autoSni: true, ...(checksName && { autoSanValidation: true }) };
}

/** Credentials of the control plane's namespace are not for every sidecar, only for those a rule selects. */
function canUseCredential(tls: ClientTls, { traits, ruleSelects }: UpstreamTlsInput): boolean {
  const isPrivate = (tls.credentialName ?? "") !== "" && !tls.credentialName?.startsWith("configmap://");
  if (isPrivate && traits.role === "sidecar" && !ruleSelects) return false;
  const hasKey = Boolean(tls.credentialName) || (Boolean(tls.clientCertificate) && Boolean(tls.privateKey));
  return tls.mode === "SIMPLE" || hasKey;
}

function certificates(tls: ClientTls, input: UpstreamTlsInput): Init<typeof CommonTlsContextSchema> {
  const isMutual = tls.mode === "MUTUAL";
  const skipsCheck = tls.insecureSkipVerify === true;
  const { traits } = input;
  const roots = tls.caCertificates || "system";
  const [certificate, rootSecret] = tls.credentialName
    ? [credentialSecret(tls.credentialName, traits), credentialSecret(`${tls.credentialName}-cacert`, traits)]
    : [
        fileSecret(`file-cert:${tls.clientCertificate}~${tls.privateKey}`, traits),
        fileSecret(`file-root:${roots}`, traits),
      ];
  const own = isMutual ? { tlsCertificateSdsSecretConfigs: [certificate] } : {};
  if (skipsCheck) {
    return tls.credentialName ? own : { ...own, validationContextType: { case: "validationContext", value: {} } };
  }
  return {
    ...own,
    validationContextType: {
      case: "combinedValidationContext",
      value: {
        defaultValidationContext: {
          matchSubjectAltNames: exactly(serverNames(tls, input)),
          ...(tls.caCrl && { crl: { specifier: { case: "filename", value: tls.caCrl } } }),
        },
        validationContextSdsSecretConfig: rootSecret,
      },
    },
  };
}

/** A ServiceEntry can name its servers itself, and its endpoints their accounts. */
function serverNames(tls: ClientTls, { service, identities }: UpstreamTlsInput): readonly string[] {
  const given = tls.subjectAltNames ?? [];
  return service.registry === "External" && given.length === 0 ? identities : given;
}

/** Envoy refuses server names that are too long. */
const LONGEST_NAME = 255;

function tlsSocket(
  serverName: string,
  { traits }: Pick<UpstreamTlsInput, "traits">,
  context: Init<typeof CommonTlsContextSchema>,
): TransportSocket {
  const commonTlsContext = compliant(context, traits.compliance);
  const sni = Buffer.byteLength(serverName) > LONGEST_NAME ? "" : serverName;
  return create(TransportSocketSchema, {
    name: "envoy.transport_sockets.tls",
    configType: { case: "typedConfig", value: pack(UpstreamTlsContextSchema, { sni, commonTlsContext }) },
  });
}
