/** Amounts of resources, such as `100m` and `1.5Gi`, in the one spelling that Kubernetes gives each of them. */

/** Exact: numbers reach down to a billionth. */
const NANOS_PER_UNIT = 1_000_000_000n;
const DECIMAL: readonly string[] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: readonly string[] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const QUANTITY = /^([+-]?)(\d*)(?:\.(\d*))?(?:([EPTGMK]i|[numkMGTPE])|[eE]([+-]?\d+))?$/;
/** More digits than any machine counts to; what is longer is not worth the arithmetic. */
const MOST_DIGITS = 64;

type Format = "decimal" | "binary" | "exponent";

interface Quantity {
  readonly nanos: bigint;
  readonly format: Format;
}

/** The usual spelling of a quantity; undefined when the text is none. */
export function canonicalQuantity(text: string): string | undefined {
  const quantity = parseQuantity(text);
  return quantity === undefined ? undefined : formatQuantity(quantity);
}

function parseQuantity(text: string): Quantity | undefined {
  const match = QUANTITY.exec(text);
  if (match === null || text.length > MOST_DIGITS) return undefined;
  const [, sign = "", whole = "", fraction = "", suffix, exponent] = match;
  if (whole === "" && fraction === "") return undefined;
  const power = Number(exponent ?? 0);
  if (Math.abs(power) > MOST_DIGITS) return undefined;
  const scale = suffix === undefined ? { base: 10n, power } : scaleOf(suffix);
  const digits = BigInt(whole + fraction) * NANOS_PER_UNIT;
  const unit = 10n ** BigInt(fraction.length);
  const nanos =
    scale.power < 0
      ? roundedUp(digits, unit * scale.base ** BigInt(-scale.power))
      : roundedUp(digits * scale.base ** BigInt(scale.power), unit);
  const format = exponent !== undefined ? "exponent" : suffix?.endsWith("i") ? "binary" : "decimal";
  return { nanos: sign === "-" ? -nanos : nanos, format };
}

function scaleOf(suffix: string): { readonly base: bigint; readonly power: number } {
  if (suffix.endsWith("i")) return { base: 1024n, power: BINARY.indexOf(suffix) };
  return { base: 1000n, power: DECIMAL.indexOf(suffix) - DECIMAL.indexOf("") };
}

/** Away from zero, so that nobody gets less than was asked for. */
function roundedUp(amount: bigint, unit: bigint): bigint {
  return (amount + unit - 1n) / unit;
}

function formatQuantity({ nanos, format }: Quantity): string {
  if (nanos === 0n) return "0";
  const size = nanos < 0n ? -nanos : nanos;
  const isWhole = size % NANOS_PER_UNIT === 0n;
  if (format === "binary" && isWhole && size >= 1024n * NANOS_PER_UNIT) {
    const { amount, power } = withoutFactor(nanos / NANOS_PER_UNIT, 1024n, BINARY.length - 1);
    return `${amount}${BINARY[power]}`;
  }
  const { amount, power } = withoutFactor(nanos, 1000n, DECIMAL.length - 1);
  const thousands = power - DECIMAL.indexOf("");
  if (format === "exponent") return thousands === 0 ? `${amount}` : `${amount}e${thousands * 3}`;
  return `${amount}${DECIMAL[power]}`;
}

function withoutFactor(
  value: bigint,
  factor: bigint,
  most: number,
): { readonly amount: bigint; readonly power: number } {
  let amount = value;
  let power = 0;
  for (; power < most && amount % factor === 0n; power++) amount /= factor;
  return { amount, power };
}
