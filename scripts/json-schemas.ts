/**
 * Writes docs/reference/schema, the JSON Schemas for editors, src/config/authoring/api.ts, the types of `mizzen/config`, and the
 * definitions of kinds for Helm, from the schemas that configuration is read by; and the templates of injection for Helm.
 *
 *   node scripts/json-schemas.ts
 */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { dump } from "js-yaml";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { apiVersionsOf, jsonSchemaOf, jsonSchemaOfAll, jsonSchemaOfKind } from "#config/crd/json-schema.ts";
import type { Kind } from "#config/kinds/kind.ts";
import { knownKinds } from "#config/kinds/kinds.ts";
import { meshConfigSchema } from "#config/mesh/mesh-schema.ts";
import { STOCK_TEMPLATES } from "#inject/templates/templates.ts";
import { meshSchema } from "#standalone/mesh/mesh-schema.ts";
import { kindTypes } from "./kind-types.ts";

const ROOT = join(import.meta.dirname, "..");
const FOLDER = "docs/reference/schema";
const TYPES = "src/config/authoring/api.ts";
const DEFINITIONS = "manifests/chart/crds/crds.yaml";
const TEMPLATES = "manifests/chart/files";

/** All files by path, as they should be. */
function schemaFiles(): ReadonlyMap<string, string> {
  const kinds = knownKinds();
  const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`;
  const draft = { $schema: "http://json-schema.org/draft-07/schema#" };
  return new Map([
    ...kinds.map((kind) => [`${FOLDER}/${placeOf(kind)}`, json(jsonSchemaOfKind(kind))] as const),
    [`${FOLDER}/all.json`, json(jsonSchemaOfAll(kinds, placeOf))],
    [`${FOLDER}/mesh-config.json`, json({ ...draft, title: "MeshConfig", ...jsonSchemaOf(meshConfigSchema) })],
    [`${FOLDER}/mesh.json`, json({ ...draft, title: "mesh.yaml", ...jsonSchemaOf(meshSchema) })],
    [`${FOLDER}/README.md`, page(kinds)],
    [TYPES, kindTypes(kinds)],
    [
      DEFINITIONS,
      customResourceDefinitions()
        .map((definition) => `---\n${dump(definition, { noRefs: true })}`)
        .join(""),
    ],
    ...Object.entries(STOCK_TEMPLATES).map(
      ([name, text]) => [`${TEMPLATES}/${name}.yaml`, `${text.trim()}\n`] as const,
    ),
  ]);
}

function placeOf({ group, name }: Kind): string {
  return `${group === "" ? "core" : group}/${name}.json`;
}

function page(kinds: readonly Kind[]): string {
  const rows = kinds.map(
    (kind) => `| ${kind.name} | ${apiVersionsOf(kind).join(", ")} | [${placeOf(kind)}](${placeOf(kind)}) |`,
  );
  return `# JSON Schemas

Made by \`node scripts/json-schemas.ts\` from the schemas that configuration is read by: change them there.

They tell editors which fields there are, of which type, and which exclude each other; \`mizzen translate\` and the control plane check more. A line
at the top of a YAML file gives it to every editor with yaml-language-server:

\`\`\`yaml
# yaml-language-server: $schema=PATH/docs/reference/schema/networking.istio.io/VirtualService.json
\`\`\`

For files with several kinds, [all.json](all.json) chooses by \`apiVersion\` and \`kind\`; for whole folders it goes into the editor's settings:

\`\`\`json
{ "yaml.schemas": { "PATH/docs/reference/schema/all.json": ["config/**/*.yaml"], "PATH/docs/reference/schema/mesh.json": ["mesh.yaml"] } }
\`\`\`

Fields are in camelCase, as Istio's documents write them; the snake_case names that are read as well are not in the schemas, and \`null\`, which
means unset, neither. To write configuration in TypeScript there is [mizzen/config](../config-module.md).

| kind | apiVersion | schema |
| --- | --- | --- |
${rows.join("\n")}
| the mesh config | | [mesh-config.json](mesh-config.json) |
| mesh.yaml | mizzen.dev/v1alpha1 | [mesh.json](mesh.json) |
`;
}

/** The files that are not what the schemas give. */
export function outdatedSchemaFiles(): readonly string[] {
  const files = schemaFiles();
  const wrong = [...files].filter(([path, text]) => {
    const file = join(ROOT, path);
    return !existsSync(file) || readFileSync(file, "utf8") !== text;
  });
  const extra = globSync(`${FOLDER}/**/*.json`, { cwd: ROOT }).filter((path) => !files.has(path));
  return [...wrong.map(([path]) => path), ...extra];
}

if (import.meta.main) {
  rmSync(join(ROOT, FOLDER), { recursive: true, force: true });
  for (const [path, text] of schemaFiles()) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), text);
  }
}
