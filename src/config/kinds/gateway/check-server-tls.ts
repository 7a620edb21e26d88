import { error, type Problem, warning } from "../../schema/problem.ts";
import type { ServerTls } from "./schema.ts";

/** Cipher suites of BoringSSL, which Envoy is built with. Those without forward secrecy have no ECDHE in front. */
const CIPHER_SUITES: ReadonlySet<string> = new Set([
  ...["ECDSA", "RSA"].flatMap((key) =>
    ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305", "AES128-SHA", "AES256-SHA"].map(
      (cipher) => `ECDHE-${key}-${cipher}`,
    ),
  ),
  "AES128-GCM-SHA256",
  "AES256-GCM-SHA384",
  "AES128-SHA",
  "AES256-SHA",
  "DES-CBC3-SHA",
]);

/** Curves of BoringSSL, by either of their names. */
const ECDH_CURVES: ReadonlySet<string> = new Set([
  "P-256",
  "P-384",
  "P-521",
  "X25519",
  "X25519MLKEM768",
  "MLKEM1024",
  "prime256v1",
  "secp384r1",
  "secp521r1",
  "x25519",
]);

/** TLS of a server. */
export function* checkServerTls(tls: ServerTls | undefined, at: string): Iterable<Problem> {
  if (tls === undefined) return;
  yield* checkVersions(tls, at);
  const { mode = "PASSTHROUGH" } = tls;
  if (mode === "ISTIO_MUTUAL") yield* checkNoCertificates(tls, at);
  else if (mode === "PASSTHROUGH" || mode === "AUTO_PASSTHROUGH") yield* checkPassthrough(tls, at, mode);
  else yield* checkTermination(tls, at, mode);
}

function* checkVersions({ minProtocolVersion, cipherSuites = [] }: ServerTls, at: string): Iterable<Problem> {
  if ((minProtocolVersion === "TLSV1_0" || minProtocolVersion === "TLSV1_1") && cipherSuites.length === 0) {
    yield warning(`${at}.minProtocolVersion`, "needs cipherSuites: the default ones do not work below TLSV1_2");
  }
  yield* checkKnown(cipherSuites, `${at}.cipherSuites`, isCipherSuite);
}

/** Curves for exchanging keys. */
export function* checkCurves(curves: readonly string[], at: string): Iterable<Problem> {
  yield* checkKnown(curves, at, isEcdhCurve);
}

/** Each of the names should be known, and there once: others are left out. */
function* checkKnown(names: readonly string[], at: string, isKnown: (name: string) => boolean): Iterable<Problem> {
  const seen = new Set<string>();
  for (const [i, name] of names.entries()) {
    if (!isKnown(name)) yield warning(`${at}[${i}]`, `is unknown: "${name}" is ignored`);
    else if (seen.has(name)) yield warning(`${at}[${i}]`, `is there twice: "${name}"`);
    seen.add(name);
  }
}

/** Whether Envoy knows the curve. */
export function isEcdhCurve(curve: string): boolean {
  return ECDH_CURVES.has(curve);
}

/** Whether Envoy knows the suite. Expressions such as `+AES` are left to it. */
export function isCipherSuite(suite: string): boolean {
  return suite === "" || suite === "ALL" || !/^[\p{L}\p{N}]/u.test(suite) || CIPHER_SUITES.has(suite);
}

/** The places a certificate may come from, by field. */
function certificates(tls: ServerTls): string[] {
  const {
    serverCertificate = "",
    privateKey = "",
    credentialName = "",
    credentialNames = [],
    tlsCertificates = [],
  } = tls;
  const sources = {
    "serverCertificate and privateKey": serverCertificate !== "" && privateKey !== "",
    credentialName: credentialName !== "",
    credentialNames: credentialNames.length > 0,
    tlsCertificates: tlsCertificates.length > 0,
  };
  return Object.entries(sources).flatMap(([name, isSet]) => (isSet ? name : []));
}

function* checkOneSource(tls: ServerTls, at: string): Iterable<Problem> {
  const sources = certificates(tls);
  if (sources.length > 1) yield error(at, `can have only one of ${sources.join(", ")}`);
}

function* checkNoCertificates(tls: ServerTls, at: string): Iterable<Problem> {
  for (const name of ["serverCertificate", "privateKey", "caCertificates", "credentialName"] as const) {
    if ((tls[name] ?? "") !== "") yield error(`${at}.${name}`, "cannot be set in mode ISTIO_MUTUAL");
  }
  for (const name of ["tlsCertificates", "credentialNames"] as const) {
    if ((tls[name] ?? []).length > 0) yield error(`${at}.${name}`, "cannot be set in mode ISTIO_MUTUAL");
  }
}

function* checkPassthrough(tls: ServerTls, at: string, mode: string): Iterable<Problem> {
  const { serverCertificate = "", privateKey = "", caCertificates = "", caCrl = "", credentialName = "" } = tls;
  const files = `${serverCertificate}${privateKey}${caCertificates}${caCrl}`;
  if (files !== "" || certificates(tls).length > 0) yield warning(at, `has certificates, which mode ${mode} ignores`);
  yield* checkOneSource(tls, at);
  if (caCrl !== "" && credentialName !== "") yield* crlInCredential(at);
}

function* checkTermination(tls: ServerTls, at: string, mode: string): Iterable<Problem> {
  yield* checkOneSource(tls, at);
  const { credentialName = "", credentialNames = [], caCertificates = "", caCrl = "", tlsCertificates = [] } = tls;
  if (credentialName !== "" || credentialNames.length > 0) return;
  if (mode !== "SIMPLE" && caCertificates === "") yield error(`${at}.caCertificates`, `is required for mode ${mode}`);
  if (tlsCertificates.length > 2) yield warning(`${at}.tlsCertificates`, "can be two at most");
  const pairs = tlsCertificates.length > 0 ? tlsCertificates : [tls];
  for (const [i, { serverCertificate = "", privateKey = "" }] of pairs.entries()) {
    const field = tlsCertificates.length > 0 ? `${at}.tlsCertificates[${i}]` : at;
    if (serverCertificate === "") yield error(`${field}.serverCertificate`, `is required for mode ${mode}`);
    if (privateKey === "") yield error(`${field}.privateKey`, `is required for mode ${mode}`);
  }
  if (caCrl !== "" && mode === "SIMPLE") yield error(`${at}.caCrl`, "cannot be set in mode SIMPLE");
}

function* crlInCredential(at: string): Iterable<Problem> {
  yield error(`${at}.caCrl`, "cannot be set together with credentialName: put it into the credential");
}
