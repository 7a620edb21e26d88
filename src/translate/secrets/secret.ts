/** Certificates, keys and roots as Envoy reads them. */

import type { ConfigMap } from "#config/kinds/config-map/schema.ts";
import { type Secret, secretValue } from "#config/kinds/secret/schema.ts";
import type { ProxyDefaults } from "#config/mesh/proxy-defaults.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { DataSourceSchema } from "#gen/envoy/config/core/v3/base_pb.ts";
import { CryptoMbPrivateKeyMethodConfigSchema } from "#gen/envoy/extensions/private_key_providers/cryptomb/v3alpha/cryptomb_pb.ts";
import { QatPrivateKeyMethodConfigSchema } from "#gen/envoy/extensions/private_key_providers/qat/v3alpha/qat_pb.ts";
import type {
  PrivateKeyProviderSchema,
  TlsCertificateSchema,
} from "#gen/envoy/extensions/transport_sockets/tls/v3/common_pb.ts";
import { SecretSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import { bytesOf, duration, type Init, pack } from "../wire/encode.ts";

/** The hardware that Envoy hands private keys to, as the proxy's settings have it. */
export type KeyProvider = NonNullable<ProxyDefaults["privateKeyProvider"]>;

/** What a secret depends on: the name it is asked for by, and where its content is. */
export interface SecretInput {
  readonly name: string;
  readonly secret: ConfigObject<Secret>;
}

/** What a certificate depends on beside. */
export interface CertificateInput extends SecretInput {
  readonly keyProvider: KeyProvider | undefined;
}

/** Roots from a ConfigMap, which are no secret. */
export interface ConfigMapInput {
  readonly name: string;
  readonly configMap: ConfigObject<ConfigMap>;
}

/** Canonical bytes of a certificate with its key. */
export function certificateSecret({ name, secret: { spec }, keyProvider }: CertificateInput): Uint8Array {
  const generic = hasCertificate(spec, "cert", "key");
  const [chain, key] = (generic ? ["cert", "key"] : ["tls.crt", "tls.key"]).map((field) => secretValue(spec, field));
  const staple = generic ? undefined : secretValue(spec, "tls.ocsp-staple");
  const value: Init<typeof TlsCertificateSchema> = {
    ...(chain && { certificateChain: inline(chain) }),
    ...(key && (keyProvider ? { privateKeyProvider: wrapped(key, keyProvider) } : { privateKey: inline(key) })),
    // As by Istio, which staples no answers to what hardware signs.
    ...(staple && !keyProvider && { ocspStaple: inline(staple) }),
  };
  return bytesOf(SecretSchema, { name, type: { case: "tlsCertificate", value } });
}

/** The key goes into the provider's own message. */
function wrapped(key: Buffer, { cryptomb, qat }: KeyProvider): Init<typeof PrivateKeyProviderSchema> {
  const { pollDelay = 0, fallback = false } = cryptomb ?? qat ?? {};
  const method = { privateKey: inline(key), pollDelay: duration(pollDelay) };
  const [providerName, value] = cryptomb
    ? ["cryptomb", pack(CryptoMbPrivateKeyMethodConfigSchema, method)]
    : ["qat", pack(QatPrivateKeyMethodConfigSchema, method)];
  return { providerName, configType: { case: "typedConfig", value }, fallback };
}

/** Whether a Secret has a certificate and its key, under either pair of names. */
export function holdsCertificate(spec: Secret): boolean {
  return hasCertificate(spec, "cert", "key") || hasCertificate(spec, "tls.crt", "tls.key");
}

function hasCertificate(spec: Secret, certificate: string, key: string): boolean {
  return secretValue(spec, certificate) !== undefined && secretValue(spec, key) !== undefined;
}

/** Canonical bytes of the roots in a Secret. */
export function rootsSecret({ name, secret: { spec } }: SecretInput): Uint8Array {
  const [root, revoked] = rootFields((field) => secretValue(spec, field));
  return rootsOf(name, root, revoked);
}

/** Whether a Secret has roots. */
export function holdsRoots(spec: Secret): boolean {
  return rootFields((field) => secretValue(spec, field))[0] !== undefined;
}

/** Canonical bytes of the roots in a ConfigMap. */
export function configMapRoots({ name, configMap: { spec } }: ConfigMapInput): Uint8Array {
  const [root, revoked] = rootFields((field) => configValue(spec, field));
  return rootsOf(name, root, revoked);
}

/** Whether a ConfigMap has roots. */
export function configMapHoldsRoots(spec: ConfigMap): boolean {
  return rootFields((field) => configValue(spec, field))[0] !== undefined;
}

type Value = Buffer | undefined;

/** Roots, and the list of revoked certificates that belongs to them. */
function rootFields(read: (field: string) => Value): readonly [Value, Value] {
  const generic = read("cacert");
  return generic === undefined ? [read("ca.crt"), read("ca.crl")] : [generic, read("crl")];
}

function configValue({ data = {} }: ConfigMap, field: string): Value {
  const text = Object.hasOwn(data, field) ? data[field] : undefined;
  return text ? Buffer.from(text) : undefined;
}

function rootsOf(name: string, root: Value, revoked: Value): Uint8Array {
  const value = { ...(root && { trustedCa: inline(root) }), ...(revoked && { crl: inline(revoked) }) };
  return bytesOf(SecretSchema, { name, type: { case: "validationContext", value } });
}

function inline(value: Buffer): Init<typeof DataSourceSchema> {
  return { specifier: { case: "inlineBytes", value: new Uint8Array(value) } };
}
