/** One YAML document of a configuration file, read and checked; lines are relative to the document's own text. */

import { parseObject } from "#config/kinds/parse-object.ts";
import type { ServiceEntry } from "#config/kinds/service-entry/schema.ts";
import {
  isSecurityKind,
  type UnreadablePolicy,
  unreadablePolicy,
  unreadableText,
} from "#config/kinds/unreadable-policy.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { parseField } from "#config/schema/field-path.ts";
import { asError, type Problem, warning } from "#config/schema/problem.ts";
import { finished, type Steps } from "#lib/async/steps.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { Places } from "#lib/yaml/places.ts";
import { readDocument } from "#lib/yaml/read.ts";

/** A problem at a line, counted from 1. */
export interface PlacedProblem extends Problem {
  readonly line: number;
}

/** An object as found in a document. */
export interface FoundObject {
  /** `kind/namespace/name` as far as it can be told; empty when it is no object at all. */
  readonly key: string;
  /** Undefined when it is broken, or of a kind that has no effect. */
  readonly object: ConfigObject | undefined;
  /** The kind, when it is known but has no effect yet. */
  readonly notYet: string | undefined;
  readonly problems: readonly PlacedProblem[];
  /** What stands in for a security object that cannot be read. */
  readonly unreadable: readonly ConfigObject<UnreadablePolicy>[];
  readonly line: number;
}

/** Reads a document: one object, or several in a `List`. */
export function readObjects(text: string): FoundObject[] {
  return finished(objectSteps(text));
}

/** The same in steps: a list can hold thousands. */
export function* objectSteps(text: string): Steps<FoundObject[]> {
  const { value, error, warning, line } = readDocument(text);
  if (error !== undefined) return [unreadable({ ...error, field: "", severity: "error" }, text)];
  if (value === undefined) return [];
  const repeats = warning !== undefined;
  const places = new Places(text);
  if (isList(value) && value.items !== null && !Array.isArray(value.items)) {
    const wrong: Problem = { field: "items", message: "must be a list of objects", severity: "error" };
    return [unreadable({ ...wrong, line: places.line(["items"]) }, text)];
  }
  const found: FoundObject[] = [];
  for (const [i, { raw, path }] of itemsOf(value).entries()) {
    const { object: parsed, problems, key, notYet } = parseObject(raw);
    const at = path.length === 0 ? line : places.line(path);
    const place = (problem: Problem): PlacedProblem => ({
      ...problem,
      line: problem.field === "" ? at : places.line([...path, ...parseField(problem.field)]),
    });
    const isNameless = parsed?.metadata.name === "";
    const isAmbiguous = repeats && isSecurityKind(parsed?.kind ?? "");
    const object = isNameless || isAmbiguous ? undefined : parsed;
    const more = isNameless ? [NAMELESS] : object === undefined ? [] : ineffective(object);
    const denials =
      object === undefined ? denialsOf({ raw, key, repeats, text, problems: [...problems, ...more] }) : [];
    // What is a warning about another kind keeps a security object out of the mesh.
    const grave = denials.length === 0 || problems.some(isError) ? problems : problems.map(asError);
    const severity = denials.length > 0 ? "error" : "warning";
    found.push({
      key,
      object,
      notYet: notYet ? key.split("/", 1)[0] : undefined,
      problems: [
        ...(repeats && (i === 0 || isAmbiguous) ? [{ ...warning, field: "", severity } as const] : []),
        ...[...grave, ...more].map(place),
      ],
      unreadable: denials,
      line: at,
    });
    yield;
  }
  return found;
}

/** What stands for a text that cannot be read; empty where not even the text is known. */
export function unreadable(problem: PlacedProblem, text = ""): FoundObject {
  const denials = unreadableText(text, problem.message);
  return {
    key: "",
    object: undefined,
    notYet: undefined,
    problems: [problem],
    unreadable: denials,
    line: problem.line,
  };
}

interface Broken {
  readonly raw: unknown;
  readonly key: string;
  /** Some key is given twice: the object may mean something else than what counts of it. */
  readonly repeats: boolean;
  readonly text: string;
  readonly problems: readonly Problem[];
}

/** What stands in for an object that has no effect, if it may be a security object, or hold some in a way that nobody reads. */
function denialsOf({ raw, key, repeats, text, problems }: Broken): readonly ConfigObject<UnreadablePolicy>[] {
  const reason = reasonOf(problems);
  const isListOfUnknown = isRecord(raw) && Array.isArray(raw.items);
  const denial = isListOfUnknown
    ? undefined
    : unreadablePolicy(repeats && isRecord(raw) ? { ...raw, spec: false } : raw, reason);
  if (denial !== undefined) return [denial];
  return key === "" || isListOfUnknown ? unreadableText(text, reason) : [];
}

function isError({ severity }: Problem): boolean {
  return severity === "error";
}

function reasonOf(problems: readonly Problem[]): string {
  const { field, message } = problems.find(isError) ?? problems[0] ?? NAMELESS;
  return `${field} ${message}`.trim();
}

const NAMELESS: Problem = { field: "metadata.name", message: "is required", severity: "error" };

/** What is right, but has no effect yet. */
function ineffective({ kind, spec }: ConfigObject): Problem[] {
  if (kind !== "ServiceEntry" || (spec as ServiceEntry).resolution !== "DYNAMIC_DNS") return [];
  return [
    warning(
      "spec.resolution",
      "DYNAMIC_DNS is for waypoints, which are not yet supported: proxies cannot reach the hosts",
    ),
  ];
}

/** The objects of a document and where in it they stand: `kubectl get -o yaml` writes them as a list. */
export function itemsOf(value: unknown): { readonly raw: unknown; readonly path: readonly (string | number)[] }[] {
  if (!isList(value)) return [{ raw: value, path: [] }];
  const items: readonly unknown[] = Array.isArray(value.items) ? value.items : [];
  return items.map((raw, i) => ({ raw, path: ["items", i] }));
}

function isList(value: unknown): value is { readonly items: unknown } {
  return isRecord(value) && value.kind === "List" && Object.hasOwn(value, "items");
}
