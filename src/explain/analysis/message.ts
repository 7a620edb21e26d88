/** Messages of Istio's analysers: what is wrong with objects that are valid by themselves. */

/** How much a message weighs. */
export type Level = "ERROR" | "WARNING" | "INFO";

/** Something about one object. */
export interface Finding {
  /** `kind/namespace/name` */
  readonly object: string;
  readonly code: MessageCode;
  /** In our words. */
  readonly text: string;
}

/** Findings as they are made; undefined where the search may be interrupted. */
export type Findings = Iterable<Finding | undefined>;

const LEVELS = {
  IST0002: "WARNING",
  IST0101: "ERROR",
  IST0106: "ERROR",
  IST0109: "ERROR",
  IST0110: "ERROR",
  IST0111: "ERROR",
  IST0112: "ERROR",
  IST0127: "WARNING",
  IST0128: "WARNING",
  IST0129: "WARNING",
  IST0130: "WARNING",
  IST0131: "INFO",
  IST0132: "WARNING",
  IST0133: "WARNING",
  IST0134: "WARNING",
  IST0138: "WARNING",
  IST0140: "WARNING",
  IST0145: "ERROR",
  IST0149: "ERROR",
  IST0151: "WARNING",
  IST0152: "ERROR",
  IST0153: "ERROR",
  IST0154: "ERROR",
  IST0155: "WARNING",
  IST0161: "ERROR",
  IST0162: "WARNING",
  IST0173: "ERROR",
  IST0174: "WARNING",
} as const satisfies Readonly<Record<string, Level>>;

/** A code of Istio's list of messages. */
export type MessageCode = keyof typeof LEVELS;

/** The level that messages of a code have. */
export function levelOf(code: MessageCode): Level {
  return LEVELS[code];
}

/** Where Istio explains a code. */
export function documentationUrl(code: MessageCode): string {
  return `https://istio.io/v1.29/docs/reference/config/analysis/${code.toLowerCase()}/`;
}

const WEIGHT: readonly Level[] = ["ERROR", "WARNING", "INFO"];

/** What weighs more comes first; then by code and text. */
export function byWeight(a: Finding, b: Finding): number {
  const weight = WEIGHT.indexOf(levelOf(a.code)) - WEIGHT.indexOf(levelOf(b.code));
  return weight || (`${a.code} ${a.text}` < `${b.code} ${b.text}` ? -1 : 1);
}
