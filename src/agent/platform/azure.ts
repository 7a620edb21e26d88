import { isRecord } from "#lib/json/is-record.ts";
import { askOrNothing } from "./metadata-client.ts";
import { given, NO_PLATFORM, type PlatformFacts } from "./platform.ts";

const PREFIX = "azure_";
/** Asked for when the server does not tell a newer one. */
const OLDEST_VERSION = "2019-08-15";
const TIMEOUT_MS = 5_000;

/** Of a virtual machine of Azure. */
export async function azure(baseUrl: string): Promise<PlatformFacts> {
  const ask = (query: string) =>
    askOrNothing({
      url: `${baseUrl.replace(/\/$/, "")}/metadata/instance?${query}`,
      headers: { Metadata: "True" },
      timeoutMs: TIMEOUT_MS,
      anyStatus: true, // a request without a version is refused, with the list of versions
    });
  return azureFacts((await ask(`api-version=${newestVersion(await ask(""))}`)) ?? "");
}

/** What an answer of the metadata server says. */
export function azureFacts(response: string): PlatformFacts {
  const { compute } = jsonObject(response);
  if (!isRecord(compute)) return NO_PLATFORM;
  const text = (key: string) => (typeof compute[key] === "string" ? compute[key] : undefined);
  const named = given({
    [`${PREFIX}name`]: text("name"),
    [`${PREFIX}location`]: text("location"),
    [`${PREFIX}vmId`]: text("vmId"),
  });
  return {
    metadata: { ...named, ...tagsOf(compute.tagsList, text("tags") ?? "") },
    locality: given({ region: text("location"), zone: text("zone") }),
    labels: {},
  };
}

/** A list of tags comes before their form in one text, which cannot hold a `;`. */
function tagsOf(list: unknown, text: string): Readonly<Record<string, string>> {
  const pairs: readonly (readonly [name: string, value: string])[] = Array.isArray(list)
    ? list.filter(isRecord).map(({ name, value }) => [String(name ?? ""), String(value ?? "")] as const)
    : text.split(";").flatMap((tag) => {
        const [name = "", value = ""] = tag.split(/:(.*)/s);
        return tag === "" ? [] : [[name, value] as const];
      });
  return Object.fromEntries(pairs.map(([name, value]) => [`${PREFIX}${name}`, value]));
}

function newestVersion(answer: string | undefined): string {
  const versions = jsonObject(answer ?? "")["newest-versions"];
  const known = Array.isArray(versions) ? versions.filter((one): one is string => typeof one === "string") : [];
  return [OLDEST_VERSION, ...known].sort().at(-1) ?? OLDEST_VERSION;
}

function jsonObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {}; // a server that answers with something else is no metadata server
  }
}
