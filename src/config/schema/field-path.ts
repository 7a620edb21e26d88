/** Paths of fields inside an object, as problems carry them: `spec.http[0].match[0].headers["x.y"]`. */

/** Longer names are cut in paths: a path stands in every problem below it. The key of a label has at most 317 letters. */
const MAX_NAME = 400;

/** The path of a child: `at.name`, `at[0]`, or `at["a.b"]` where the name would be misread. */
export function formatField(at: string, name: PropertyKey): string {
  if (typeof name === "number") return `${at}[${name}]`;
  const whole = String(name);
  const text = whole.length > MAX_NAME ? `${whole.slice(0, MAX_NAME)}...` : whole;
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

/** The paths of what holds a field, the nearest first: of `a.b[0]` those are `a.b` and `a`. */
export function parentsOf(field: string): string[] {
  const steps = [...field.matchAll(/\[\d+\]|\["(?:[^"\\]|\\.)*"\]|\.?[^.[\]]+/g)];
  return steps
    .slice(1)
    .map(({ index }) => field.slice(0, index))
    .reverse();
}
