/** Routes that lead to what the configuration does not have: valid by themselves, and every request there fails. */

import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { meshObjects } from "#explain/analysis/mesh-objects.ts";
import type { Finding, Findings } from "#explain/analysis/message.ts";
import { destinationFindings, gatewayFindings } from "#explain/analysis/virtual-services.ts";

/** One line for each. */
export function routeHints(objects: readonly ConfigObject[]): readonly string[] {
  const mesh = meshObjects(objects, DEFAULT_MESH_CONFIG);
  const places = new Map(objects.map((object) => [objectKey(object), object.origin]));
  const hints = (findings: Findings, meaning: string) =>
    [...findings].filter(isMissing).map(({ object, text }) => {
      const origin = places.get(object);
      return `${origin === undefined ? "" : `${origin.file}:${origin.line}: `}${object}: ${text}: ${meaning}`;
    });
  const lines = [
    ...hints(destinationFindings(mesh), "requests that are sent there fail"),
    ...hints(gatewayFindings(mesh), "no request comes by it"),
  ];
  return [...new Set(lines)];
}

/** Something that an object names does not exist. */
function isMissing(finding: Finding | undefined): finding is Finding {
  return finding?.code === "IST0101";
}
