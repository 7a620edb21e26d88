/** Whose state a page may show: one namespace, or undefined for all. */
export type Scope = string | undefined;

export function inScope(scope: Scope, namespace: string): boolean {
  return scope === undefined || scope === namespace;
}
