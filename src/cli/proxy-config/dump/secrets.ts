/** `proxy-config secret`. */
import { X509Certificate } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { formatGoTable } from "#lib/print/go-table.ts";
import type { ConfigDump } from "./dump.ts";
import { at, listAt, objectAt, textAt } from "./json.ts";

/** What is told of a certificate, or of the roots under a name. */
export interface SecretItem {
  readonly name: string;
  readonly state: string;
  readonly type: string;
  readonly valid: boolean;
  readonly serialNumber: string;
  readonly notAfter: string;
  readonly notBefore: string;
  /** Empty when nothing tells it. */
  readonly trustDomain: string;
}

const SPIFFE_VALIDATOR = "SPIFFECertValidatorConfig";

/** The secrets of a dump, those that are still awaited first. */
export function secretsOf(dump: ConfigDump, now: Date): readonly SecretItem[] {
  const section = dump.section("SecretsConfigDump");
  return [
    ...listAt(section, "dynamicWarmingSecrets").flatMap((entry) => itemsOf(entry, "WARMING", now)),
    ...listAt(section, "dynamicActiveSecrets").flatMap((entry) => itemsOf(entry, "ACTIVE", now)),
  ];
}

/** The table, with trust domains where all of them are known. */
export function formatSecrets(items: readonly SecretItem[], withType = false): string {
  if (items.length === 0) return "No active or warming secrets found.\n";
  const hasDomains = items.every(({ trustDomain }) => trustDomain !== "");
  const head = ["RESOURCE NAME", "TYPE", "STATUS", "VALID CERT", "SERIAL NUMBER", "NOT AFTER", "NOT BEFORE"];
  const rows = items.map(({ name, type, state, valid, serialNumber, notAfter, notBefore, trustDomain }) => [
    `${withType ? "secret/" : ""}${name}`,
    ...[type, state, String(valid), serialNumber, notAfter, notBefore],
    ...(hasDomains ? [trustDomain] : []),
  ]);
  return formatGoTable([hasDomains ? [...head, "TRUST DOMAIN"] : head, ...rows], 5);
}

function itemsOf(entry: JsonObject, state: string, now: Date): readonly SecretItem[] {
  const secret = at(entry, "secret");
  const name = textAt(entry, "name");
  const pem = pemAt(secret, "tlsCertificate", "certificateChain") || pemAt(secret, "validationContext", "trustedCa");
  const [validator] = objectAt(secret, "validationContext", "customValidatorConfig", "typedConfig");
  if (pem === "" && validator !== undefined && textAt(validator, "@type").endsWith(SPIFFE_VALIDATOR)) {
    return listAt(validator, "trustDomains").map((domain) =>
      itemOf({ name, state, pem: pemAt(domain, "trustBundle"), trustDomain: textAt(domain, "name"), now }),
    );
  }
  return [itemOf({ name, state, pem, trustDomain: "", now })];
}

function pemAt(value: ReturnType<typeof at>, ...path: readonly string[]): string {
  return Buffer.from(textAt(value, ...path, "inlineBytes"), "base64").toString("utf8");
}

interface ItemInput extends Pick<SecretItem, "name" | "state" | "trustDomain"> {
  readonly pem: string;
  readonly now: Date;
}

/** The first certificate speaks for those that follow it. */
function itemOf({ name, state, pem, trustDomain, now }: ItemInput): SecretItem {
  const unknown = {
    name,
    state,
    type: "",
    valid: false,
    serialNumber: "",
    notAfter: "",
    notBefore: "",
    trustDomain: "",
  };
  const certificate = certificateIn(pem);
  if (certificate === undefined) return unknown;
  const { ca, serialNumber, validFromDate, validToDate, subjectAltName = "" } = certificate;
  return {
    ...unknown,
    type: ca ? "CA" : "Cert Chain",
    valid: validFromDate < now && now < validToDate,
    serialNumber: serialNumber.toLowerCase().padStart(32, "0"),
    notAfter: timeText(validToDate),
    notBefore: timeText(validFromDate),
    trustDomain: trustDomain || (/URI:spiffe:\/\/([^/,"]+)/.exec(subjectAltName)?.[1] ?? ""),
  };
}

function certificateIn(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined; // There is none, or it is redacted: its name is shown all the same.
  }
}

function timeText(time: Date): string {
  return time.toISOString().replace(".000Z", "Z");
}
