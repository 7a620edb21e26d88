/** Parts of TLS settings: where Envoy gets certificates, which names and ciphers it takes. */
import { create } from "@bufbuild/protobuf";
import { isCipherSuite } from "#config/checks/server-tls.ts";
import { ApiConfigSource_ApiType, ApiVersion } from "#gen/envoy/config/core/v3/config_source_pb.ts";
import {
  type SdsSecretConfig,
  SdsSecretConfigSchema,
} from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import type { StringMatcherSchema } from "#gen/envoy/type/matcher/v3/string_pb.ts";
import { duration, type Init } from "../encode.ts";

/** A secret that the agent serves: one of files, or a workload's own. */
export function agentSecret(name: string): SdsSecretConfig {
  return secretOf(name, false);
}

/** Envoy waits for what is not optional; files may not be there. */
function secretOf(name: string, isWaitedFor: boolean): SdsSecretConfig {
  return create(SdsSecretConfigSchema, {
    name,
    sdsConfig: {
      configSourceSpecifier: {
        case: "apiConfigSource",
        value: {
          apiType: ApiConfigSource_ApiType.GRPC,
          grpcServices: [{ targetSpecifier: { case: "envoyGrpc", value: { clusterName: "sds-grpc" } } }],
          setNodeOnFirstMessageOnly: true,
          transportApiVersion: ApiVersion.V3,
        },
      },
      ...(isWaitedFor && { initialFetchTimeout: duration(0) }),
      resourceApiVersion: ApiVersion.V3,
    },
  });
}

/** A secret of the control plane, which it gives to those who may have it. The listener or cluster does not wait for it. */
export function adsSecret(credential: string): SdsSecretConfig {
  const name = credential.includes("://") ? credential : `kubernetes://${credential}`;
  return create(SdsSecretConfigSchema, {
    name,
    sdsConfig: { configSourceSpecifier: { case: "ads", value: {} }, resourceApiVersion: ApiVersion.V3 },
  });
}

/** The workload's own certificate. */
export const WORKLOAD_CERTIFICATE = secretOf("default", true);
/** The roots that the mesh trusts. */
export const TRUSTED_ROOTS = secretOf("ROOTCA", true);

/** The cipher suites that Envoy knows, each once: one that it does not would leave it without TLS. */
export function knownCiphers(suites: readonly string[] | undefined): string[] {
  return [...new Set(suites)].filter(isCipherSuite);
}

/** Names that have to be met exactly. */
export function exactly(names: readonly string[]): Init<typeof StringMatcherSchema>[] {
  return names.map((value) => ({ matchPattern: { case: "exact", value } }));
}

/** Names that have to begin so. */
export function beginningWith(prefixes: readonly string[]): Init<typeof StringMatcherSchema>[] {
  return prefixes.map((value) => ({ matchPattern: { case: "prefix", value } }));
}
