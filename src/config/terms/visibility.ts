/** Who may see an object: `*` everybody, `.` its own namespace, `~` nobody, or namespaces by name. */
import type { Metadata } from "../schema/config-object.ts";

/** Whether `exportTo` of an object in `home` makes it visible to `namespace`; nothing set means `fallback`. */
export function isVisible(
  exportTo: readonly string[] | undefined,
  where: { readonly home: string; readonly namespace: string; readonly fallback: readonly string[] },
): boolean {
  const targets = exportTo === undefined || exportTo.length === 0 ? where.fallback : exportTo;
  if (targets.includes("*")) return true;
  if (targets.includes("~")) return false;
  return targets.includes(where.namespace) || (targets.includes(".") && where.home === where.namespace);
}

const PRIVATE: readonly string[] = ["."];
const PUBLIC: readonly string[] = ["*"];
const NOBODY: readonly string[] = ["~"];

/** Of what the mesh says of services and routes without `exportTo`, `.` counts, else `*`. Others mean that nobody sees them. */
export function defaultExportTo(given: readonly string[]): readonly string[] {
  if (given.includes(".")) return PRIVATE;
  return given.includes("*") || given.length === 0 ? PUBLIC : NOBODY;
}

/** Who may see an object, beside its own namespace. */
export interface Audience {
  readonly home: string;
  readonly isPublic: boolean;
}

/** The place of an object among those that a namespace sees: its own that are not for everybody, others that name it, public ones. */
export function audienceRank({ home, isPublic }: Audience, namespace: string): number {
  return isPublic ? 2 : home === namespace ? 0 : 1;
}

/** Objects that a namespace sees, in order of precedence. */
export function byAudience<T>(
  objects: readonly T[],
  namespace: string,
  audienceOf: (object: T) => Audience,
): readonly T[] {
  const rankOf = (object: T) => audienceRank(audienceOf(object), namespace);
  return [0, 1, 2].flatMap((rank) => objects.filter((object) => rankOf(object) === rank));
}

/** Whether everybody sees an object. */
export function isPublic(exportTo: readonly string[] | undefined, fallback: readonly string[]): boolean {
  return (exportTo === undefined || exportTo.length === 0 ? fallback : exportTo).includes("*");
}

/** The annotation by which a Kubernetes Service says who may see it. */
const SERVICE_EXPORT_TO = "networking.istio.io/exportTo";

/** What a Kubernetes Service says in the place of `exportTo`; undefined when it says nothing. */
export function serviceExportTo({ annotations }: Pick<Metadata, "annotations">): readonly string[] | undefined {
  const text = annotations[SERVICE_EXPORT_TO] ?? "";
  return text === "" ? undefined : text.split(",").map((target) => target.trim());
}
