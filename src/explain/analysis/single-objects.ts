/** What one object shows by itself: problems of its checks, ServiceEntries without addresses, patches of EnvoyFilters. */

import { envoyFilterKind } from "#config/kinds/envoy-filter/kind.ts";
import type { ConfigPatch, EnvoyFilter } from "#config/kinds/envoy-filter/schema.ts";
import { serviceEntryKind } from "#config/kinds/service-entry/kind.ts";
import { sidecarKind } from "#config/kinds/sidecar/kind.ts";
import { virtualServiceKind } from "#config/kinds/virtual-service/kind.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { ObjectProblem } from "#model/ports.ts";
import type { MeshObjects } from "./mesh-objects.ts";
import type { Finding, Findings, MessageCode } from "./message.ts";

/** What the checks of an object say. */
export function checkFinding({ object, field, message, severity }: ObjectProblem): Finding {
  const text = `${field} ${message}`.trim();
  if (severity === "error") return { object, code: "IST0106", text };
  if (message.startsWith("is never reached")) return { object, code: "IST0130", text };
  return { object, code: message.startsWith("has no effect: ") ? "IST0131" : "IST0133", text };
}

/** ServiceEntries of TCP whose connections could be told apart by nothing. */
export function* addressFindings(mesh: MeshObjects): Findings {
  const { proxyMetadata = {} } = mesh.mesh.defaultConfig;
  const isAllocated = ["ISTIO_META_DNS_CAPTURE", "ISTIO_META_DNS_AUTO_ALLOCATE"].every(
    (name) => proxyMetadata[name] === "true",
  );
  if (isAllocated) return;
  for (const entry of mesh.ofKind(serviceEntryKind)) {
    yield undefined;
    if (entry.spec.addresses !== undefined || (entry.status?.addresses ?? []).length > 0) continue;
    if ((entry.spec.ports ?? []).some(({ protocol = "" }) => ["", "TCP"].includes(protocol.toUpperCase())))
      yield { object: objectKey(entry), code: "IST0134", text: "addresses are needed for TCP" };
  }
}

/** Fields that are there for old configurations only. */
export function* deprecatedFindings(mesh: MeshObjects): Findings {
  for (const routes of mesh.ofKind(virtualServiceKind)) {
    yield undefined;
    for (const { fault } of routes.spec.http ?? [])
      if ((fault?.delay?.percent ?? 0) > 0)
        yield { object: objectKey(routes), code: "IST0002", text: "fault.delay.percent: use percentage" };
  }
  for (const sidecar of mesh.ofKind(sidecarKind))
    if (sidecar.spec.outboundTrafficPolicy?.egressProxy !== undefined)
      yield { object: objectKey(sidecar), code: "IST0002", text: "outboundTrafficPolicy.egressProxy is ignored" };
}

/** Patches that are ignored, or whose place depends on the order of EnvoyFilters. */
export function* patchFindings(mesh: MeshObjects): Findings {
  /** What patches for some proxy versions are called: others that refer to them may miss them. */
  const ofVersions = new Set<string>();
  for (const filter of mesh.ofKind(envoyFilterKind)) {
    yield undefined;
    for (const [i, patch] of (filter.spec.configPatches ?? []).entries()) {
      const code = patchCode(patch, filter, ofVersions);
      if (code !== undefined)
        yield { object: objectKey(filter), code, text: `configPatches[${i}]: ${PATCH_TEXTS[code]}` };
      if ((patch.match?.proxy?.proxyVersion ?? "") !== "") ofVersions.add(nameOf(patch));
    }
  }
}

const PATCH_TEXTS = {
  IST0151: "without a priority, a relative operation may not be applied",
  IST0152: "REPLACE is for filters and virtual hosts only",
  IST0153: "ADD is ignored for routes",
  IST0154: "REMOVE is ignored for routes",
  IST0155: "without a priority, a relative operation for some proxy versions may not be applied during an upgrade",
} as const satisfies Partial<Record<MessageCode, string>>;

const ROUTES: ReadonlySet<string | undefined> = new Set(["ROUTE_CONFIGURATION", "HTTP_ROUTE"]);
const REPLACED: ReadonlySet<string | undefined> = new Set(["NETWORK_FILTER", "HTTP_FILTER", "VIRTUAL_HOST"]);

function patchCode(
  patch: ConfigPatch,
  { spec }: ConfigObject<EnvoyFilter>,
  ofVersions: ReadonlySet<string>,
): keyof typeof PATCH_TEXTS | undefined {
  const relative = () => {
    if ((spec.priority ?? 0) !== 0) return undefined;
    return ofVersions.has(nameOf(patch)) ? "IST0155" : "IST0151";
  };
  switch (patch.patch?.operation) {
    case "ADD":
      return ROUTES.has(patch.applyTo) ? "IST0153" : undefined;
    case "REMOVE":
      return ROUTES.has(patch.applyTo) ? "IST0154" : relative();
    case "REPLACE":
      return REPLACED.has(patch.applyTo) ? relative() : "IST0152";
    case "INSERT_BEFORE":
    case "INSERT_AFTER":
      return relative();
    default:
      return undefined;
  }
}

function nameOf({ patch, match }: ConfigPatch): string {
  const value = patch?.value;
  if (!isRecord(value)) return "";
  return "name" in value ? JSON.stringify(value.name) : (match?.listener?.filterChain?.filter?.name ?? "");
}
