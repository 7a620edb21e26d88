/** Bootstraps that the user brings as a Go template. Loaded when there is one: few have any. */
import { readFile } from "node:fs/promises";
import { SPRIG_FUNCTIONS } from "#lib/go-template/sprig.ts";
import { compileTemplate } from "#lib/go-template/template.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { BootstrapInput } from "./input.ts";
import { templateParams } from "./template-params.ts";

/** The text that a template gives. Rejects with file and line when it cannot be read or executed. */
export async function renderBootstrap(file: string, input: BootstrapInput): Promise<string> {
  let source: string;
  try {
    source = await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError("BOOTSTRAP_TEMPLATE_INVALID", `Cannot read the bootstrap template ${file}`, { cause });
  }
  try {
    return compileTemplate(source, { name: file, functions: SPRIG_FUNCTIONS }).execute(templateParams(input));
  } catch (cause) {
    throw new MeshError("BOOTSTRAP_TEMPLATE_INVALID", "Cannot render the bootstrap template", { cause });
  }
}
