/** Credentials for image registries, in Docker's format: of a pull secret or of the machine. */
import { readFile } from "node:fs/promises";
import { withoutTrailing } from "@mizzen/go-text/trim";
import { MeshError } from "#lib/mesh-error.ts";

export interface Credentials {
  readonly username: string;
  readonly password: string;
  /** Exchanged for tokens in place of a password. */
  readonly identityToken: string;
  /** Sent as it is. */
  readonly registryToken: string;
}

const DOCKER_REGISTRY = "index.docker.io";
const DOCKER_REGISTRY_KEY = "https://index.docker.io/v1/";

/** The credentials of a registry; undefined when the text has none for it. Throws when it is no such text. */
export function credentialsFor(registry: string, dockerConfig: string): Credentials | undefined {
  const auths = authsOf(dockerConfig);
  const key = registry === DOCKER_REGISTRY ? DOCKER_REGISTRY_KEY : registry;
  const exact = Object.hasOwn(auths, key) ? auths[key] : undefined;
  const found = exact ?? Object.entries(auths).find(([name]) => hostOf(name) === hostOf(key))?.[1];
  if (found === undefined) return undefined;
  const field = (name: string) => (typeof found[name] === "string" ? found[name] : "");
  const [user = "", ...rest] = Buffer.from(field("auth"), "base64").toString().split(":");
  return {
    username: field("username") || user,
    // Docker pads what it stores with zeros.
    password: field("password") || withoutTrailing(rest.join(":"), "\0"),
    identityToken: field("identitytoken"),
    registryToken: field("registrytoken"),
  };
}

/** Docker's configuration of this machine; empty when there is none. */
export async function machineCredentials(folder: string): Promise<string> {
  try {
    return await readFile(`${folder}/config.json`, "utf8");
  } catch {
    return "{}"; // most machines have none, and most images need none
  }
}

type Auths = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

function authsOf(text: string): Auths {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // Without the cause: it quotes the text, which is a secret.
    throw new MeshError("WASM_PULL_SECRET_INVALID", "the pull secret is not Docker's configuration in JSON");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new MeshError("WASM_PULL_SECRET_INVALID", "the pull secret is not an object with auths");
  const auths = "auths" in parsed ? parsed.auths : {};
  return Object.fromEntries(
    Object.entries(Object(auths)).filter(([, value]) => typeof value === "object" && value !== null),
  ) as Auths;
}

/** Keys may be URLs of old APIs. */
function hostOf(key: string): string {
  return key.replace(/^https?:\/\//, "").split("/")[0] ?? "";
}
