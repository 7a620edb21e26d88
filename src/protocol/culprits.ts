import type { Versioned } from "./resource.ts";

/** Characters that may stand inside a resource name; a name inside a longer word is not that name. */
const NAME_CHARACTER = /[\w|*~/-]/;

/**
 * The resources that Envoy's rejection speaks of, as in `Error adding/updating listener(s) 10.0.0.1_80: ...`. Empty when it
 * names none of them.
 */
export function culprits<R extends Versioned>(message: string, resources: readonly R[]): readonly R[] {
  let text = message;
  const found = new Set<R>();
  // Longest first, and each one taken out once found: `8000` is not meant where `outbound|8000||a` stands.
  for (const resource of resources.toSorted((a, b) => b.name.length - a.name.length)) {
    const rest = withoutName(text, resource.name);
    if (rest !== text) found.add(resource);
    text = rest;
  }
  return resources.filter((resource) => found.has(resource));
}

function withoutName(text: string, name: string): string {
  if (name === "") return text;
  let rest = text;
  for (let at = rest.indexOf(name); at >= 0; at = rest.indexOf(name, at + 1)) {
    const end = at + name.length;
    const before = rest[at - 1] ?? " ";
    const after = rest[end] ?? " ";
    // A dot or colon ends a name unless the word goes on behind it.
    const goesOn = (after === "." || after === ":") && NAME_CHARACTER.test(rest[end + 1] ?? " ");
    if (NAME_CHARACTER.test(before) || before === "." || NAME_CHARACTER.test(after) || goesOn) continue;
    rest = `${rest.slice(0, at)} ${rest.slice(end)}`;
  }
  return rest;
}
