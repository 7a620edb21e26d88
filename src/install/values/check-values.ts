/** Finds settings that cannot be meant: of the wrong type, or that the chart does not know. */
import { meshConfigOf } from "#config/mesh/mesh-config.ts";
import { error, type Problem, warning } from "#config/schema/problem.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { Values } from "./values.ts";

/** Objects whose names anybody may choose, though the values of the chart or of a profile have some. */
const FREE_FORM = ["env", "labels", "resources"];

/** Problems of what somebody asks for, against the values of the chart: these show what there is, and of which type. */
export function checkValues(asked: Values, chart: Values): readonly Problem[] {
  const { meshConfig, ...rest } = asked;
  return [...checkMesh(meshConfig), ...checkObject(rest, chart, "")];
}

function checkMesh(meshConfig: unknown): readonly Problem[] {
  return meshConfigOf(meshConfig).problems.map((problem) => ({
    ...problem,
    field: problem.field === "" ? "meshConfig" : `meshConfig.${problem.field}`,
  }));
}

function checkObject(asked: Values, known: Values, path: string): readonly Problem[] {
  const isFree = Object.keys(known).length === 0;
  if (isFree) return [];
  return Object.entries(asked).flatMap(([name, value]) => {
    const field = path === "" ? name : `${path}.${name}`;
    if (Object.hasOwn(known, name)) return checkValue(value, known[name], field);
    return [warning(field, "is no setting of this chart: it has no effect")];
  });
}

function checkValue(value: unknown, known: unknown, field: string): readonly Problem[] {
  // Taken away.
  if (value === null || value === undefined) return [];
  if (isRecord(known)) {
    if (!isRecord(value)) return [error(field, `an object is wanted, this is ${shown(value)}`)];
    return FREE_FORM.includes(field.split(".").at(-1) ?? "") ? [] : checkObject(value, known, field);
  }
  if (Array.isArray(known)) {
    return Array.isArray(value) ? [] : [error(field, `a list is wanted, this is ${shown(value)}`)];
  }
  const isText = typeof known === "string";
  const fits = isText ? typeof value !== "object" : typeof value === typeof known || isDecimal(value, known);
  return fits ? [] : [error(field, `a ${isText ? "text" : typeof known} is wanted, this is ${shown(value)}`)];
}

/** `--set` gives text for what is no whole number: a version may look the same. */
function isDecimal(value: unknown, known: unknown): boolean {
  return typeof known === "number" && typeof value === "string" && /^-?\d+\.\d+$/.test(value);
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  return isRecord(value) ? "an object" : JSON.stringify(value);
}
