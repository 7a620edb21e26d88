import type { DescField } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { checkSelector } from "../../checks/labels.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { checkRegex } from "../virtual-service/check-string-match.ts";
import { type PatchTarget, type PatchValue, parsePatchValue, parseWithUnknown } from "./check-value.ts";
import { brokenConstraints } from "./constraints.ts";
import { FORMER_FILTER_NAMES } from "./resource-names.ts";
import type { ConfigPatch, EnvoyFilter, ListenerMatch, PatchMatch } from "./schema.ts";

const HTTP_CONNECTION_MANAGERS = ["envoy.filters.network.http_connection_manager", "envoy.http_connection_manager"];

/** What a match has to look at, by what the patch applies to; a patch of other kinds may have any match. */
const MATCHES: Readonly<Partial<Record<PatchTarget, "listener" | "routeConfiguration" | "cluster">>> = {
  LISTENER: "listener",
  FILTER_CHAIN: "listener",
  NETWORK_FILTER: "listener",
  HTTP_FILTER: "listener",
  ROUTE_CONFIGURATION: "routeConfiguration",
  VIRTUAL_HOST: "routeConfiguration",
  HTTP_ROUTE: "routeConfiguration",
  CLUSTER: "cluster",
};

/** Checks an EnvoyFilter: that each patch fits what it applies to, and that its value is a message Envoy would read. */
export function* checkEnvoyFilter({ spec }: ConfigObject<EnvoyFilter>): Iterable<Problem> {
  yield warning(
    "",
    "depends on how Envoy's configuration is generated, which may change with any version: use another kind if one will do",
  );
  if (spec.workloadSelector !== undefined) {
    yield* checkSelector(spec.workloadSelector.labels, "spec.workloadSelector.labels");
  }
  if (spec.workloadSelector !== undefined && (spec.targetRefs ?? []).length > 0) {
    yield error("spec.targetRefs", "cannot be set together with workloadSelector");
  }
  for (const [i, patch] of (spec.configPatches ?? []).entries()) yield* checkPatch(patch, `spec.configPatches[${i}]`);
}

function* checkPatch({ applyTo = "INVALID", match, patch }: ConfigPatch, at: string): Iterable<Problem> {
  if (match?.context === "WAYPOINT") {
    return yield warning(`${at}.match.context`, "has no effect: there are no waypoints yet");
  }
  if (match?.waypoint !== undefined) return yield error(`${at}.match.waypoint`, "needs the context WAYPOINT");
  if (applyTo === "INVALID") return yield error(`${at}.applyTo`, "is required");
  if (patch === undefined) return yield error(`${at}.patch`, "is required");
  const { operation = "INVALID", value } = patch;
  if (operation === "INVALID") return yield error(`${at}.patch.operation`, "is required");
  if (operation !== "REMOVE" && value === undefined) {
    return yield error(`${at}.patch.value`, `is required for operation ${operation}`);
  }
  if (applyTo === "BOOTSTRAP")
    yield warning(`${at}.applyTo`, "has no effect: a proxy reads its bootstrap at its start");
  const regex = match?.proxy?.proxyVersion ?? "";
  if (regex !== "") yield* checkRegex(regex, `${at}.match.proxy.proxyVersion`);
  if (match !== undefined) yield* checkMatch(applyTo, match, `${at}.match`);
  if (value !== undefined) {
    yield* checkValue(applyTo, { value, operation }, `${at}.patch.value`);
  }
}

function* checkMatch(applyTo: PatchTarget, match: PatchMatch, at: string): Iterable<Problem> {
  const wanted = MATCHES[applyTo];
  const given = (["listener", "routeConfiguration", "cluster", "waypoint"] as const).find(
    (name) => match[name] !== undefined,
  );
  if (wanted === undefined || given === undefined) return;
  if (given !== wanted) yield error(`${at}.${given}`, `must be "${wanted}", since applyTo is ${applyTo}`);
  else if (match.listener !== undefined) yield* checkFilterMatch(applyTo, match.listener, `${at}.listener`);
}

function* checkFilterMatch(applyTo: PatchTarget, { filterChain }: ListenerMatch, at: string): Iterable<Problem> {
  const filter = filterChain?.filter;
  if (filter === undefined) return;
  const field = `${at}.filterChain.filter`;
  if (applyTo === "LISTENER" || applyTo === "FILTER_CHAIN") {
    yield warning(field, `has no effect when applyTo is ${applyTo}`);
  }
  const { name = "", subFilter } = filter;
  if (name === "") return yield error(`${field}.name`, "is required");
  if (subFilter !== undefined) {
    const inner = `${field}.subFilter`;
    if (applyTo !== "HTTP_FILTER") return yield error(inner, "can be used only when applyTo is HTTP_FILTER");
    if (!HTTP_CONNECTION_MANAGERS.includes(name)) {
      return yield error(inner, `needs a filter of name "${HTTP_CONNECTION_MANAGERS[0]}", not "${name}"`);
    }
    if ((subFilter.name ?? "") === "") return yield error(`${inner}.name`, "is required");
    yield* checkFilterName(subFilter.name ?? "", `${inner}.name`);
  }
  yield* checkFilterName(name, `${field}.name`);
}

function* checkFilterName(name: string, at: string): Iterable<Problem> {
  const today = FORMER_FILTER_NAMES.get(name);
  if (today !== undefined) yield warning(at, `is "${name}", which is called "${today}" today`);
}

/**
 * A patch that breaks a constraint does not keep the others of its object from having effect, but it is not sent. What is to
 * be removed is told by the match: a value beside it never gets to Envoy.
 */
function* checkValue(
  applyTo: PatchTarget,
  { value, operation }: { readonly value: object; readonly operation: string },
  at: string,
): Iterable<Problem> {
  const { parsed, unknown } = parseWithUnknown(applyTo, value);
  if (typeof parsed === "string") return yield error(at, parsed);
  if (unknown !== undefined) yield warning(at, unknown);
  for (const name of withoutTypedConfig(reflect(parsed.type, parsed.message))) {
    yield warning(at, `has no typed_config for "${name}": Envoy no longer finds a filter by its name`);
  }
  if (operation === "REMOVE") return;
  for (const { field, message } of brokenConstraints(parsed, at, { partial: operation === "MERGE" })) {
    yield warning(field, `${message}: the patch is not sent`);
  }
}

/** The message of a patch that can be sent; undefined when there is none, it cannot be read or it breaks a constraint. */
export function usableValue({ applyTo = "INVALID", patch }: ConfigPatch): PatchValue | undefined {
  if (applyTo === "INVALID" || patch?.value === undefined) return undefined;
  const parsed = parsePatchValue(applyTo, patch.value);
  if (typeof parsed === "string") return undefined;
  return brokenConstraints(parsed, "", { partial: patch.operation === "MERGE" }).length > 0 ? undefined : parsed;
}

/** Names of filters and other extensions that are told by their name alone. */
function withoutTypedConfig(message: ReflectMessage): readonly string[] {
  const { fields } = message.desc;
  const inner = fields.filter((field) => field.fieldKind === "message" && message.isSet(field));
  const found = inner.flatMap((field) => withoutTypedConfig(message.get(field) as ReflectMessage));
  const isConfig = ({ jsonName }: DescField) => jsonName === "typedConfig" || jsonName === "configDiscovery";
  const needsConfig = fields.some(({ jsonName }) => jsonName === "typedConfig");
  if (!needsConfig || inner.some(isConfig)) return found;
  const name = fields.find(({ jsonName }) => jsonName === "name");
  return [...found, name === undefined ? "" : String(message.get(name))];
}
