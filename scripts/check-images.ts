/**
 * Requires a digest for every container image of others that a Dockerfile, a manifest, an injection template or a document
 * names: a tag can be moved to other contents. Our own images (`mizzen/`) have the version of this checkout.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const IMAGE_LINE = /^(?:[ \t]*(?:-[ \t]+)?image:[ \t]*|FROM[ \t]+(?:--\S+[ \t]+)?)["']?([^\s"'{}]+)/gm;
const PINNED = /@sha256:[0-9a-f]{64}$/;
/** Stages of our own, what injection fills in, and images of this project. */
const OURS = /^(scratch|debug|distroless|files|auto|\$|(docker\.io\/)?(mizzen|istio)\/)/;

const root = join(import.meta.dirname, "..");
const files = globSync(
  ["images/*", "manifests/**/*.{yaml,tpl}", "samples/**/*.yaml", "src/inject/templates/*.ts", "docs/**/*.md", "*.md"],
  { cwd: root },
);
const problems = files.flatMap((file) => {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(IMAGE_LINE)].flatMap(([, image = ""]) =>
    OURS.test(image) || PINNED.test(image) || !/[:/]/.test(image) ? [] : `${file}: image "${image}" has no digest`,
  );
});
for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);
