/** Who may see an object: `*` everybody, `.` its own namespace, `~` nobody, or namespaces by name. */

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

/** Whether an object is seen by its own namespace or by named ones only; such objects come before public ones. */
export function isPublic(exportTo: readonly string[] | undefined, fallback: readonly string[]): boolean {
  return (exportTo === undefined || exportTo.length === 0 ? fallback : exportTo).includes("*");
}
