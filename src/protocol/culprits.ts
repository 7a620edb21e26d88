import type { Versioned } from "./resource.ts";

/** Characters that may stand inside a resource name; a name inside a longer word is not that name. */
const NAME_CHARACTER = /[\w|*~/-]/;

/**
 * The resources that Envoy's rejection speaks of, as in `Error adding/updating listener(s) 10.0.0.1_80: ...`. Empty when it
 * names none of them. The text comes from a stranger and the names are many: the text is read once, from left to right, and each
 * place where a name may begin is looked up in the sorted names.
 */
export function culprits<R extends Versioned>(message: string, resources: readonly R[]): readonly R[] {
  const names = sortedNames(resources);
  const longest = resources.reduce((most, { name }) => Math.max(most, name.length), 0);
  const found = new Set<string>();
  for (let at = 0; at < message.length; ) {
    const name = isStart(message, at) ? longestName(names, message, { at, longest }) : undefined;
    if (name !== undefined) found.add(name);
    at += name?.length ?? 1;
  }
  return resources.filter(({ name }) => found.has(name));
}

/** A name, and the longest other one that it begins with. */
interface SortedName {
  readonly name: string;
  readonly shorter: SortedName | undefined;
}

/** In the order of `<`, in which the names that begin with a name follow it directly. */
function sortedNames(resources: readonly Versioned[]): readonly SortedName[] {
  const names = [...new Set(resources.map(({ name }) => name))].filter((name) => name !== "").sort();
  let last: SortedName | undefined;
  return names.map((name) => {
    let shorter = last;
    while (shorter !== undefined && !name.startsWith(shorter.name)) shorter = shorter.shorter;
    last = { name, shorter };
    return last;
  });
}

/** The longest name that stands at a place of the text. */
function longestName(
  names: readonly SortedName[],
  text: string,
  { at, longest }: { readonly at: number; readonly longest: number },
): string | undefined {
  // All names that the text goes on with are this one and those that it begins with.
  let candidate = lastUpTo(names, text.slice(at, at + longest));
  while (candidate !== undefined) {
    const { name, shorter } = candidate;
    if (text.startsWith(name, at) && isEnd(text, at + name.length)) return name;
    candidate = shorter;
  }
  return undefined;
}

/** The last name that does not come after the text. */
function lastUpTo(names: readonly SortedName[], text: string): SortedName | undefined {
  let [low, high] = [0, names.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((names[middle]?.name ?? "") <= text) low = middle + 1;
    else high = middle;
  }
  return names[low - 1];
}

function isStart(text: string, at: number): boolean {
  const before = text[at - 1] ?? " ";
  return before !== "." && !NAME_CHARACTER.test(before);
}

/** A dot or colon ends a name unless the word goes on behind it. */
function isEnd(text: string, end: number): boolean {
  const after = text[end] ?? " ";
  const goesOn = (after === "." || after === ":") && NAME_CHARACTER.test(text[end + 1] ?? " ");
  return !NAME_CHARACTER.test(after) && !goesOn;
}
