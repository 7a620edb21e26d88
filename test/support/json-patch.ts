/** Applies JSON patches (RFC 6902) as an API server does, for the operations that webhooks answer with. */

export interface Operation {
  readonly op: string;
  readonly path: string;
  readonly value?: unknown;
}

/** A changed copy; throws where the patch does not fit. */
export function applyPatch(document: unknown, operations: readonly Operation[]): unknown {
  const holder: { root: unknown } = { root: structuredClone(document) };
  for (const operation of operations) applyOne(holder, operation);
  return holder.root;
}

function applyOne(holder: { root: unknown }, { op, path, value }: Operation): void {
  const steps = [
    "root",
    ...path
      .split("/")
      .slice(1)
      .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~")),
  ];
  const key = steps.pop() ?? "";
  const parent = steps.reduce<unknown>((inner, step) => Reflect.get(inner as object, step), holder);
  if (typeof parent !== "object" || parent === null) throw new Error(`nothing at ${path}`);
  if (Array.isArray(parent)) {
    const at = key === "-" ? parent.length : Number(key);
    if (at > parent.length - (op === "add" ? 0 : 1)) throw new Error(`no item at ${path}`);
    parent.splice(at, op === "add" ? 0 : 1, ...(op === "remove" ? [] : [structuredClone(value)]));
    return;
  }
  if (op !== "add" && !Object.hasOwn(parent, key)) throw new Error(`nothing at ${path}`);
  if (op === "remove") Reflect.deleteProperty(parent, key);
  else
    Object.defineProperty(parent, key, {
      value: structuredClone(value),
      enumerable: true,
      configurable: true,
      writable: true,
    });
}
