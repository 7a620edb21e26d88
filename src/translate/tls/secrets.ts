/** Parts of TLS settings: where Envoy gets certificates, which names and ciphers it takes. */
import { create } from "@bufbuild/protobuf";
import { isCipherSuite, isEcdhCurve } from "#config/kinds/gateway/check-server-tls.ts";
import { ApiConfigSource_ApiType, ApiVersion } from "#gen/envoy/config/core/v3/config_source_pb.ts";
import {
  type SdsSecretConfig,
  SdsSecretConfigSchema,
} from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import type { StringMatcherSchema } from "#gen/envoy/type/matcher/v3/string_pb.ts";
import type { SecretSockets } from "../traits/traits.ts";
import { duration, type Init } from "../wire/encode.ts";

/** The cluster of the program that serves credentials beside the proxy. */
export const CREDENTIAL_CLUSTER = "sds-external";

/** A secret of files, which the agent serves, or the program that is there for it. */
export function fileSecret(name: string, { fileSocket }: SecretSockets): SdsSecretConfig {
  return secretFrom(fileSocket ? "sds-files-grpc" : "sds-grpc", name);
}

/** Envoy waits for what is not optional; files may not be there. */
function secretFrom(clusterName: string, name: string, isWaitedFor = false): SdsSecretConfig {
  return create(SdsSecretConfigSchema, {
    name,
    sdsConfig: {
      configSourceSpecifier: {
        case: "apiConfigSource",
        value: {
          apiType: ApiConfigSource_ApiType.GRPC,
          grpcServices: [{ targetSpecifier: { case: "envoyGrpc", value: { clusterName } } }],
          setNodeOnFirstMessageOnly: true,
          transportApiVersion: ApiVersion.V3,
        },
      },
      ...(isWaitedFor && { initialFetchTimeout: duration(0) }),
      resourceApiVersion: ApiVersion.V3,
    },
  });
}

const BUILTIN = "builtin://";
const EXTERNAL = "sds://";

/**
 * The secret behind a `credentialName`: the workload's own (`builtin://`), one of a provider of the mesh or of a program beside
 * the proxy (`sds://NAME`), or else one of the control plane. It has none for a provider that does not exist, and says so.
 */
export function credentialSecret(
  credential: string,
  { credentialSocket }: SecretSockets,
  /** `NAME CLUSTER` of each provider. */
  providers: readonly string[] = [],
): SdsSecretConfig {
  if (credential === BUILTIN) return WORKLOAD_CERTIFICATE;
  if (credential === `${BUILTIN}-cacert`) return TRUSTED_ROOTS;
  if (!credential.startsWith(EXTERNAL)) return adsSecret(credential);
  const own = `${credential.slice(EXTERNAL.length)} `;
  const provider = providers.find((one) => one.startsWith(own));
  if (provider !== undefined) return secretFrom(provider.slice(own.length), credential);
  return credentialSocket ? secretFrom(CREDENTIAL_CLUSTER, credential) : adsSecret(credential);
}

/** A secret of the control plane, which it gives to those who may have it. The listener or cluster does not wait for it. */
function adsSecret(credential: string): SdsSecretConfig {
  const isComplete = credential.includes("://") && !credential.startsWith(EXTERNAL);
  const name = isComplete ? credential : `kubernetes://${credential}`;
  return create(SdsSecretConfigSchema, {
    name,
    sdsConfig: { configSourceSpecifier: { case: "ads", value: {} }, resourceApiVersion: ApiVersion.V3 },
  });
}

/** The workload's own certificate. */
export const WORKLOAD_CERTIFICATE = secretFrom("sds-grpc", "default", true);
/** The roots that the mesh trusts. */
export const TRUSTED_ROOTS = secretFrom("sds-grpc", "ROOTCA", true);

/** The cipher suites that Envoy knows, each once: one that it does not would leave it without TLS. */
export function knownCiphers(suites: readonly string[] | undefined): string[] {
  return [...new Set(suites)].filter(isCipherSuite);
}

/** The same of curves. */
export function knownCurves(curves: readonly string[] | undefined): string[] {
  return [...new Set(curves)].filter(isEcdhCurve);
}

/** Names that have to be met exactly. */
export function exactly(names: readonly string[]): Init<typeof StringMatcherSchema>[] {
  return names.map((value) => ({ matchPattern: { case: "exact", value } }));
}

/** Names that have to begin so. */
export function beginningWith(prefixes: readonly string[]): Init<typeof StringMatcherSchema>[] {
  return prefixes.map((value) => ({ matchPattern: { case: "prefix", value } }));
}
