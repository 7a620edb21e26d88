/** Bootstraps that the user brings as a Go template. Loaded when there is one: few have any. */
import { readFile } from "node:fs/promises";
import { textArgument as text } from "@mizzen/go-template/functions";
import { SPRIG_FUNCTIONS } from "@mizzen/go-template/sprig";
import { compileTemplate } from "@mizzen/go-template/template";
import type { Callable } from "@mizzen/go-template/value";
import type { Env } from "#lib/env/env-table.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { BootstrapInput } from "./input.ts";
import { templateParams } from "./template-params.ts";

/** The text that a template gives. Rejects with file and line when it cannot be read or executed. */
export async function renderBootstrap(file: string, input: BootstrapInput, env: Env): Promise<string> {
  let source: string;
  try {
    source = await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError("BOOTSTRAP_TEMPLATE_INVALID", `Cannot read the bootstrap template ${file}`, { cause });
  }
  try {
    const functions = { ...SPRIG_FUNCTIONS, ...environmentFunctions(env) };
    return compileTemplate(source, { name: file, functions }).execute(templateParams(input));
  } catch (cause) {
    throw new MeshError("BOOTSTRAP_TEMPLATE_INVALID", "Cannot render the bootstrap template", { cause });
  }
}

/** To Go as to a shell one letter that is special is a name by itself. What is no name is left out with its brace. */
const REFERENCE = /\$(?:\{([^}]*)\}|\{|([*#$@!?\-\d])|(\w+))/g;

function namedIn([braced, special, plain]: readonly (string | undefined)[]): string {
  return braced ?? special ?? plain ?? "";
}

/** Those of Sprig that other templates do not have: here the environment is the agent's own. */
function environmentFunctions(env: Env): Readonly<Record<string, Callable>> {
  const variable = (name: string) => env[name] ?? "";
  return {
    env: (name) => variable(text(name)),
    expandenv: (value) => text(value).replace(REFERENCE, (_, ...names: string[]) => variable(namedIn(names))),
  };
}
