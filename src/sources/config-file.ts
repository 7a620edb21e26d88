/**
 * The state of one configuration file, as a value. A new text costs only the documents in it that differ from before, and
 * a broken document leaves its object at the last good version.
 */

import { isSecurityKind, type UnreadablePolicy } from "#config/kinds/unreadable-policy.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Origin } from "#config/schema/problem.ts";
import { splitDocuments } from "#lib/yaml/read.ts";
import type { ObjectProblem } from "#model/ports.ts";
import { type FoundObject, readObjects, unreadable } from "./document.ts";

/** Documents that were read already, by their text. */
export type ReadDocuments = ReadonlyMap<string, readonly FoundObject[]>;

/** An object with its `kind/namespace/name`. */
export interface KeyedObject {
  readonly key: string;
  readonly object: ConfigObject;
}

/** What a file holds. */
export interface ConfigFile {
  readonly file: string;
  /** Undefined when the file could not be read. */
  readonly text: string | undefined;
  /** In the order of the file; those that are broken now as they last were. */
  readonly objects: readonly KeyedObject[];
  readonly problems: readonly ObjectProblem[];
  /** What stands in for security objects that cannot be read and have no last good version. */
  readonly unreadable: readonly ConfigObject<UnreadablePolicy>[];
  /** Objects of kinds that have no effect yet, with their kind. */
  readonly notYet: readonly { readonly kind: string; readonly line: number }[];
  readonly documents: ReadDocuments;
}

/** Reads the text of a file over what the file held before. */
export function readConfigFile(input: {
  readonly file: string;
  readonly text: string;
  readonly previous: ConfigFile | undefined;
  /** Read already: what is in here is not read again. */
  readonly known?: ReadDocuments;
}): ConfigFile {
  const { file, text, previous, known = previous?.documents } = input;
  const documents = new Map<string, readonly FoundObject[]>();
  const found = splitDocuments(text).flatMap((part) => {
    const objects = known?.get(part.text) ?? readObjects(part.text);
    documents.set(part.text, objects);
    return objects.map((object) => moved(object, part.line - 1));
  });
  return { ...contentOf(file, found, previous), text, documents };
}

/** A file that cannot be read: what it held stays as it was. */
export function unreadableConfigFile(file: string, message: string, previous: ConfigFile | undefined): ConfigFile {
  const found = unreadable({ field: "", message, severity: "error", line: 1 });
  return { ...contentOf(file, [found], previous), text: undefined, documents: previous?.documents ?? new Map() };
}

/** Whether the file breaks or gives up something, which also happens for a moment while it is being written. */
export function losesObjects(previous: ConfigFile | undefined, next: ConfigFile | undefined): boolean {
  if (next?.problems.some(isError) === true) return true;
  const kept = new Set(next?.objects.map(({ key }) => key));
  return (previous?.objects ?? []).some(({ key }) => !kept.has(key));
}

function contentOf(
  file: string,
  found: readonly FoundObject[],
  previous: ConfigFile | undefined,
): Pick<ConfigFile, "file" | "objects" | "problems" | "unreadable" | "notYet"> {
  const before = new Map((previous?.objects ?? []).map(({ key, object }) => [key, object]));
  const mentioned = new Set(found.map(({ key }) => key));
  const objects = found.flatMap(({ object, problems, key, line }): KeyedObject[] => {
    const last = before.get(key);
    if (object !== undefined) return [{ key, object: inPlace(object, { file, line }, last) }];
    return last !== undefined && problems.some(isError) ? [{ key, object: last }] : [];
  });
  // A document that cannot be read does not say which objects it held: any that is missing now may be one of them.
  const perhapsUnread = mentioned.has("") ? (previous?.objects ?? []).filter(({ key }) => !mentioned.has(key)) : [];
  const isLastGood = (key: string) =>
    key === "" ? perhapsUnread.some(({ object }) => isSecurityKind(object.kind)) : before.has(key);
  return {
    file,
    objects: [...objects, ...perhapsUnread],
    unreadable: found.flatMap(({ key, unreadable, line }) =>
      isLastGood(key) ? [] : unreadable.map((object) => ({ ...object, origin: { file, line } })),
    ),
    problems: found.flatMap(({ problems, key }) =>
      problems.map(({ line, ...problem }) => ({ ...problem, object: key, origin: { file, line } })),
    ),
    notYet: found.flatMap(({ notYet, line }) => (notYet === undefined ? [] : { kind: notYet, line })),
  };
}

/** The object with its origin; the last one itself when it came from the same document at the same place. */
function inPlace(object: ConfigObject, origin: Origin, last: ConfigObject | undefined): ConfigObject {
  const same = last !== undefined && last.spec === object.spec && last.origin?.line === origin.line;
  return same ? last : { ...object, origin };
}

function isError({ severity }: { readonly severity: string }): boolean {
  return severity === "error";
}

function moved(found: FoundObject, lines: number): FoundObject {
  const problems = found.problems.map((problem) => ({ ...problem, line: problem.line + lines }));
  return { ...found, problems, line: found.line + lines };
}
