/** Injection into the text of a file: documents that hold no pod keep every letter, comments included. */
import { readDocument, splitDocuments } from "#lib/yaml/read.ts";
import { injectObject, type ObjectOptions } from "./inject-object.ts";
import { InjectionError } from "./injection-error.ts";
import { formatYaml } from "./yaml-output.ts";

/** The text after injection. */
export interface InjectedText {
  readonly text: string;
  readonly warnings: readonly string[];
}

/** Injects into every document of a YAML text. Throws an `InjectionError` that names the line of what it cannot read. */
export function injectDocuments(text: string, options: ObjectOptions): InjectedText {
  const parts: string[] = [];
  const warnings: string[] = [];
  for (const document of splitDocuments(text)) {
    const body = document.text.replace(/^[ \t]*\r?\n/, "");
    if (body.trim() === "") continue;
    const { value, error } = readDocument(document.text);
    if (error !== undefined) throw new InjectionError(`line ${document.line + error.line - 1} ${error.message}`);
    const injected = injectObject(value, options);
    parts.push(injected === undefined ? withLineEnd(body) : formatYaml(injected.object));
    warnings.push(...(injected?.warnings ?? []));
  }
  return { text: parts.map((part) => `${part}---\n`).join(""), warnings };
}

function withLineEnd(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}
