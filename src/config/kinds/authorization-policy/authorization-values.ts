/** How keys and values of authorization policies are read; patterns mean the same to RE2 and to JavaScript. */

/** What values mean beside themselves. */
export interface Meaning {
  /** Of the policy: service accounts without a namespace are of this one. */
  readonly namespace: string;
  /** The mesh's own, then its aliases: a principal of one of them stands for all. */
  readonly trustDomains: readonly string[];
}

/** Begins an identity; principals are written without it. */
export const SPIFFE = "spiffe://";

/** The key of a condition as `name[part]`; both are empty where it has no part. */
export function parseConditionKey(key: string): { readonly name: string; readonly part: string } {
  const [, name = "", part = ""] = /^([^[]*)\[(.*)\]$/s.exec(key) ?? [];
  return { name, part };
}

/** `a][b` are claims inside one another; brackets in other places belong to the name of one claim. */
export function claimPath(inBrackets: string): readonly string[] {
  return /^[^[\]]+(\]\[[^[\]]+)*$/.test(inBrackets) ? inBrackets.split("][") : [inBrackets];
}

/** Whether a path has `{*}` or `{**}` in the place of segments. */
export function isPathTemplate(path: string): boolean {
  return /\{\*\*?\}/.test(path);
}

/** Identities of a namespace. */
export function namespacePattern(namespace: string): string {
  return `.*/ns/${namespace.split("*").map(quote).join(".*")}/.*`;
}

/** Identities of a service account. What is between `/ns/` and `/sa/`, or follows, is up to whoever made the identity. */
export function accountPattern(account: string, home: string): string {
  const [first = "", second] = account.split("/");
  const [namespace, name] = second === undefined ? [home, first] : [first, second];
  return `${SPIFFE}.+/ns/${quote(namespace)}/(.+/|)sa/${quote(name)}(/.+)?`;
}

/** The text as a regular expression that fits it alone. */
export function quote(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, "\\$&");
}
