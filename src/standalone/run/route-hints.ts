/** Routes that lead to what the configuration does not have: valid by themselves, and every request there fails. */
import { type ConfigObject, objectKey } from "#config/config-object.ts";
import { DEFAULT_MESH_CONFIG } from "#config/mesh-config.ts";
import { meshObjects } from "#explain/analysis/mesh-objects.ts";
import type { Finding } from "#explain/analysis/message.ts";
import { destinationFindings, gatewayFindings } from "#explain/analysis/virtual-services.ts";

/** One line for each. */
export function routeHints(objects: readonly ConfigObject[]): readonly string[] {
  const mesh = meshObjects(objects, DEFAULT_MESH_CONFIG);
  const places = new Map(objects.map((object) => [objectKey(object), object.origin]));
  const nowhere = [
    ...missing(destinationFindings(mesh), "requests that are sent there fail"),
    ...missing(gatewayFindings(mesh), "no request comes by it"),
  ];
  return nowhere.map(({ object, text }) => {
    const origin = places.get(object);
    return `${origin === undefined ? "" : `${origin.file}:${origin.line}: `}${object}: ${text}`;
  });
}

/** What does not exist, said once of each object, and what that means. */
function missing(
  findings: Iterable<Finding | undefined>,
  meaning: string,
): readonly Pick<Finding, "object" | "text">[] {
  const found = [...findings].filter((finding) => finding?.code === "IST0101");
  const lines = new Map(found.map((finding) => [`${finding?.object} ${finding?.text}`, finding]));
  return [...lines.values()].flatMap((finding) =>
    finding === undefined ? [] : [{ object: finding.object, text: `${finding.text}: ${meaning}` }],
  );
}
