/** Injection into the text of a file: documents that hold no pod keep every letter, comments included. */
import { isRecord } from "#lib/json/is-record.ts";
import { readDocument } from "#lib/yaml/read.ts";
import { injectObject, type ObjectOptions } from "./inject-object.ts";
import { InjectionError } from "./injector/injection-error.ts";
import { formatYaml } from "./yaml/yaml-output.ts";

/** The text after injection. */
export interface InjectedText {
  readonly text: string;
  readonly warnings: readonly string[];
}

/** Injects into every document of a YAML text. Throws an `InjectionError` that names the line of what it cannot read. */
export function injectDocuments(text: string, options: ObjectOptions): InjectedText {
  const parts: string[] = [];
  const warnings: string[] = [];
  for (const document of documentsOf(text)) {
    const { value, error } = readDocument(document.text);
    if (error !== undefined) throw new InjectionError(`line ${document.line + error.line - 1} ${error.message}`);
    if (value !== undefined && value !== null && !isRecord(value))
      throw new InjectionError(
        `the document from line ${document.line} is no object of Kubernetes, but ${nameOfType(value)}`,
      );
    const injected = injectObject(value, options);
    parts.push(injected === undefined ? document.text : formatYaml(injected.object));
    warnings.push(...(injected?.warnings ?? []));
  }
  return { text: parts.map((part) => `${part}---\n`).join(""), warnings };
}

function nameOfType(value: unknown): string {
  return Array.isArray(value) ? "a list" : `"${value}"`;
}

/**
 * The documents as Kubernetes' tools cut a text, line ends of Windows taken away: a line of dashes ends a document that has
 * begun, and else is a part of it.
 */
function documentsOf(text: string): { readonly text: string; readonly line: number }[] {
  const documents: { text: string; line: number }[] = [];
  let isOpen = false;
  for (const [i, line] of linesOf(text).entries()) {
    const behind = line.startsWith("---") ? line.slice(3).trim() : undefined;
    if (behind !== undefined && !/^(#|$)/.test(behind))
      throw new InjectionError(`line ${i + 1} is not YAML: "${behind}" stands behind the dashes between documents`);
    if (behind !== undefined && isOpen) isOpen = false;
    else if (isOpen) (documents.at(-1) ?? { text: "" }).text += `${line}\n`;
    else {
      documents.push({ text: `${line}\n`, line: i + 1 });
      isOpen = true;
    }
  }
  return documents;
}

function linesOf(text: string): string[] {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  return lines.at(-1) === "" ? lines.slice(0, -1) : lines;
}
