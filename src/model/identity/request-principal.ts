/** `issuer/subject` of a policy: whose tokens are meant. */

/** What a text has to be; `any` is any but the empty one. */
export type TextPattern =
  | { readonly kind: "any" }
  | { readonly kind: "exact" | "prefix" | "suffix"; readonly text: string };

/** What issuer and subject of a token have to be. */
export interface RequestPrincipal {
  readonly issuer: TextPattern;
  readonly subject: TextPattern;
}

const ANY: TextPattern = { kind: "any" };

/**
 * Reads the value of a policy. The issuer may be a URL, so the last slash divides the two; without one it is all issuer. A
 * star counts in front of the whole or at its end only: `a/*b` is a subject that is called `*b`.
 */
export function parseRequestPrincipal(value: string): RequestPrincipal {
  const slash = value.lastIndexOf("/");
  const [issuer, subject] = slash < 0 ? [value, ""] : [value.slice(0, slash), value.slice(slash + 1)];
  if (value === "*") return { issuer: ANY, subject: ANY };
  if (value.startsWith("*")) {
    return slash < 0
      ? { issuer: ANY, subject: suffix(value.slice(1)) }
      : { issuer: issuer === "*" ? ANY : suffix(issuer.slice(1)), subject: exact(subject) };
  }
  if (value.endsWith("*")) {
    return slash < 0
      ? { issuer: prefix(value.slice(0, -1)), subject: ANY }
      : { issuer: exact(issuer), subject: subject === "*" ? ANY : prefix(subject.slice(0, -1)) };
  }
  return { issuer: exact(issuer), subject: exact(subject) };
}

function exact(text: string): TextPattern {
  return { kind: "exact", text };
}

function prefix(text: string): TextPattern {
  return { kind: "prefix", text };
}

function suffix(text: string): TextPattern {
  return { kind: "suffix", text };
}
