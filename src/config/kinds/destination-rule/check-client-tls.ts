import { error, type Problem } from "../../schema/problem.ts";
import type { ClientTls } from "./schema.ts";

const CONFIG_MAP = "configmap://";

/** TLS towards an upstream. */
export function* checkClientTls(tls: ClientTls | undefined, at: string, namespace: string): Iterable<Problem> {
  if (tls === undefined) return;
  const { mode = "DISABLE", credentialName = "", clientCertificate = "", privateKey = "", caCertificates = "" } = tls;
  if (credentialName.startsWith(CONFIG_MAP)) yield* checkConfigMap(credentialName, `${at}.credentialName`, namespace);
  yield* checkUnverified(tls, at);
  if (credentialName !== "" && (mode === "SIMPLE" || mode === "MUTUAL")) {
    if (`${clientCertificate}${privateKey}${caCertificates}${tls.caCrl ?? ""}` !== "") {
      yield error(at, "cannot have certificates in files together with credentialName");
    }
  } else if (mode === "MUTUAL") {
    if (clientCertificate === "") yield error(`${at}.clientCertificate`, "is required for mode MUTUAL");
    if (privateKey === "") yield error(`${at}.privateKey`, "is required for mode MUTUAL");
  }
}

/** Without verification, what one would verify against is a contradiction. */
function* checkUnverified(tls: ClientTls, at: string): Iterable<Problem> {
  const { mode, insecureSkipVerify, caCertificates = "", credentialName = "", subjectAltNames } = tls;
  if (insecureSkipVerify !== true || (mode !== "SIMPLE" && mode !== "MUTUAL")) return;
  // In mode MUTUAL the credential may hold the client's certificate only.
  const credential = mode === "SIMPLE" ? credentialName : "";
  if (caCertificates !== "" || credential !== "" || subjectAltNames !== undefined) {
    yield error(`${at}.insecureSkipVerify`, "cannot be set together with what certificates are verified against");
  }
}

function* checkConfigMap(reference: string, at: string, namespace: string): Iterable<Problem> {
  const [where = "", name = ""] = reference.slice(CONFIG_MAP.length).split("/");
  if (where !== namespace || name === "") {
    yield error(at, `must be ${CONFIG_MAP}${namespace}/NAME, in the namespace of the object, not "${reference}"`);
  }
}
