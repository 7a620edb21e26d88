/** Paths of fields inside an object, as problems carry them: `spec.http[0].match[0].headers["x.y"]`. */

/** The path of a child: `at.name`, `at[0]`, or `at["a.b"]` where the name would be misread. */
export function formatField(at: string, name: PropertyKey): string {
  if (typeof name === "number") return `${at}[${name}]`;
  const text = String(name);
  if (!/^[\w$-]+$/.test(text)) return `${at}[${JSON.stringify(text)}]`;
  return at === "" ? text : `${at}.${text}`;
}

/** The steps of a path: names and indexes. */
export function parseField(field: string): (string | number)[] {
  return [...field.matchAll(/\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]|[^.[\]]+/g)].map(([name, index, quoted]) => {
    if (index !== undefined) return Number(index);
    return quoted === undefined ? name : String(JSON.parse(quoted));
  });
}
