/** Checks of Secrets. Messages never quote a value. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem } from "../../schema/problem.ts";
import { type Secret, secretValue } from "./schema.ts";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** Names of a certificate and its key. */
const PAIRS = [
  ["tls.crt", "tls.key"],
  ["cert", "key"],
] as const;

/** A key that does not belong to its certificate would be refused by Envoy, so the last good pair stays in use. */
export function* checkSecret({ spec }: ConfigObject<Secret>): Iterable<Problem> {
  for (const [key, value] of Object.entries(spec.data ?? {})) {
    if (!BASE64.test(value.replaceAll(/\s/g, ""))) yield error(`spec.data.${key}`, "is not base64");
  }
  for (const names of PAIRS) {
    const [certificateName, keyName] = names;
    const [certificate, privateKey] = names.map((name) => secretValue(spec, name));
    if (certificate !== undefined && privateKey !== undefined) yield* checkPair(certificate, privateKey, names);
    else if (spec.type === "kubernetes.io/tls" && certificateName === "tls.crt") {
      yield error("spec.data", `needs "${certificateName}" and "${keyName}", as its type says`);
    }
  }
}

function* checkPair(chain: Buffer, key: Buffer, [chainName, keyName]: readonly [string, string]): Iterable<Problem> {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(chain);
  } catch {
    // The library's message may quote what it read.
    yield error(`spec.data["${chainName}"]`, "is no certificate in PEM");
    return;
  }
  try {
    if (!certificate.checkPrivateKey(createPrivateKey(key))) {
      yield error(`spec.data["${keyName}"]`, `is not the key of the certificate in "${chainName}"`);
    }
  } catch {
    yield error(`spec.data["${keyName}"]`, "is no private key in PEM");
  }
}
