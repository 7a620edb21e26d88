/** Amounts of memory and of processors as Kubernetes writes them. */

const BYTES: Readonly<Record<string, number>> = {
  "": 1,
  ...Object.fromEntries(["k", "M", "G", "T"].map((unit, i) => [unit, 1000 ** (i + 1)])),
  ...Object.fromEntries(["Ki", "Mi", "Gi", "Ti"].map((unit, i) => [unit, 1024 ** (i + 1)])),
};

/** Bytes of `256Mi`, `1G` or a plain number; undefined when it is none of them. */
export function parseMemory(text: string | number): number | undefined {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)([A-Za-z]*)$/.exec(String(text)) ?? [];
  const factor = BYTES[unit];
  const bytes = digits === undefined || factor === undefined ? 0 : Math.floor(Number(digits) * factor);
  return bytes > 0 ? bytes : undefined;
}

/** Bytes as a person would have written them. */
export function formatMemory(bytes = 0): string {
  const units = Object.entries(BYTES).toSorted(([, one], [, other]) => other - one);
  const [unit, factor] = units.find(([, size]) => bytes > 0 && bytes % size === 0) ?? ["", 1];
  return `${bytes / factor}${unit}`;
}

/** Thousandths of a processor of `500m`, `"0.5"` or `2`; undefined when it is none of them. */
export function parseCpu(value: unknown): number | undefined {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)(m?)$/.exec(String(value)) ?? [];
  const millis = Math.round(Number(digits ?? 0) * (unit === "m" ? 1 : 1000));
  return millis > 0 ? millis : undefined;
}
