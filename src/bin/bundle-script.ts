/**
 * Bundles with the code that V8 made of them when they were built: compiling them is most of the CPU time of a short
 * command, and a third of an agent's start. Code of another Node, of other flags or of another bundle V8 refuses by
 * itself, and compiles as usual.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { constants, Script } from "node:vm";

/** The file beside a bundle that has its code. */
export function codeFile(bundle: string): string {
  return `${bundle}.code`;
}

/** A bundle, a CommonJS module, ready to run. */
export function bundleScript(bundle: string): Script {
  // Bundles are ASCII: what is beyond is written by escapes.
  const text = readFileSync(bundle, "latin1");
  return new Script(`(function (exports, require, module, __filename, __dirname) {${text}\n})`, {
    filename: bundle,
    cachedData: codeOf(bundle),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
}

/** Runs it as Node would, with files beside it that it requires as bundles; what it exports. `scriptOf` makes them ready. */
export function runBundle(bundle: string, scriptOf: (bundle: string) => Script = bundleScript): unknown {
  const module = { exports: {} };
  const outside = createRequire(bundle);
  const require = (name: string): unknown =>
    name.startsWith("./") ? runBundle(join(dirname(bundle), name), scriptOf) : outside(name);
  scriptOf(bundle).runInThisContext()(module.exports, require, module, bundle, dirname(bundle));
  return module.exports;
}

function codeOf(bundle: string): Buffer | undefined {
  try {
    return readFileSync(codeFile(bundle));
  } catch {
    return undefined; // it was not built with any
  }
}
