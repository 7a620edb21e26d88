/**
 * How plain scalars are read. Kubernetes tools read YAML 1.1 with Go's number syntax: `yes` and `on` are booleans, `0777`
 * is octal, but `12:30` and `2024-01-01` are text. Infinity and not-a-number stay text: JSON has neither.
 */
import { boolYaml11Tag, CORE_SCHEMA, defineScalarTag, mergeTag, NOT_RESOLVED } from "js-yaml";

const INTEGER = /^[-+]?(0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9]\d*)$/;
const FLOAT = /^[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?$/;
const NUMBER_START = [..."-+.0123456789"];

const intTag = defineScalarTag<number>("tag:yaml.org,2002:int", {
  implicit: true,
  implicitFirstChars: NUMBER_START,
  resolve: (source) => parseInteger(source.replaceAll("_", "")) ?? NOT_RESOLVED,
  identify: Number.isInteger,
});

const floatTag = defineScalarTag<number>("tag:yaml.org,2002:float", {
  implicit: true,
  implicitFirstChars: NUMBER_START,
  resolve: (source) => {
    const plain = source.replaceAll("_", "");
    const value = Number(plain);
    // Go does not look past an underscore for the first digit, except behind a sign.
    return !source.startsWith("._") && FLOAT.test(plain) && Number.isFinite(value) ? value : NOT_RESOLVED;
  },
  identify: (value) => typeof value === "number",
});

/** YAML as Kubernetes tools read it. */
export const KUBERNETES_SCHEMA = CORE_SCHEMA.withTags(boolYaml11Tag, intTag, floatTag, mergeTag);

function parseInteger(text: string): number | undefined {
  if (!INTEGER.test(text)) return undefined;
  const sign = text.startsWith("-") ? -1 : 1;
  const digits = text.replace(/^[-+]/, "");
  const octal = /^0[oO]?(?=[0-7])/.exec(digits);
  const value = octal === null ? Number(digits) : Number.parseInt(digits.slice(octal[0].length), 8);
  return value === 0 ? 0 : sign * value;
}
