/** Reads kubeconfig files as kubectl does. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { isRecord } from "../json/is-record.ts";
import { MeshError } from "../mesh-error.ts";
import { environmentProxy } from "../net/environment-proxy.ts";
import { readDocument } from "../yaml/read.ts";
import type { ClusterAccess, Credentials } from "./cluster-access.ts";
import { credentialProgram, type Environment } from "./credential-program.ts";

/** The files of a kubeconfig, whose first mention of a name counts. */
export interface KubeConfigSource {
  readonly files: readonly string[];
  /** Instead of the current one. */
  readonly context?: string | undefined;
  /** For programs that give credentials, and for proxies. */
  readonly environment?: Environment | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

interface Section {
  readonly file: string;
  readonly fields: Fields;
}

/** The access that a context of kubeconfig files gives. Throws a MeshError that names file and field. */
export async function readKubeConfig({ files, context, environment = {} }: KubeConfigSource): Promise<ClusterAccess> {
  const { user, cluster, ...access } = chosenBy(await Promise.all(files.map(readConfig)), context);
  return {
    ...access,
    proxy: access.proxy ?? environmentProxy(access.server, environment),
    ca: await dataOrFile(cluster, "certificate-authority"),
    credentials: user === undefined ? async () => ({}) : credentialsOf(user, environment),
  };
}

/** Fields by which a kubeconfig would make us read files or run programs, and send what they give; and what allows them. */
const UNSAFE = new Map([
  ["client-key", "clientKey"],
  ["client-certificate", "clientCertificate"],
  ["tokenFile", "tokenFile"],
  ["exec", "exec"],
]);
/** The only provider that needs neither files nor programs. */
const SAFE_PROVIDER = "oidc";

/** What a kubeconfig of somebody else may do. */
export interface KubeConfigRules {
  /** Istio's words for what is unsafe: `exec`, `tokenFile`, `clientKey`, `clientCertificate`. */
  readonly allowed?: ReadonlySet<string> | undefined;
  /** For programs that give credentials, where these are allowed, and for proxies. */
  readonly environment?: Environment | undefined;
}

/**
 * The access that a kubeconfig of somebody else gives: it must hold all it needs itself, but for what the rules allow. `name`
 * is for messages. Throws a MeshError that says what is not allowed.
 */
export function untrustedKubeConfig(content: string, name: string, rules: KubeConfigRules = {}): ClusterAccess {
  const config = parseConfig(content, name);
  const { user, cluster, ...access } = chosenBy([config], undefined);
  const users = Array.isArray(config.fields.users) ? config.fields.users.filter(isRecord) : [];
  for (const { user: fields } of users) if (isRecord(fields)) assertSafe(fields, name, rules);
  if (text(cluster.fields, "certificate-authority") !== "")
    throw invalid(name, "certificate-authority is not allowed in the kubeconfig of a Secret");
  const data = text(cluster.fields, "certificate-authority-data");
  return {
    ...access,
    proxy: access.proxy ?? environmentProxy(access.server, rules.environment ?? {}),
    ca: data === "" ? undefined : Buffer.from(data, "base64").toString(),
    credentials: user === undefined ? async () => ({}) : credentialsOf(user, rules.environment ?? {}),
  };
}

function assertSafe(fields: Fields, name: string, { allowed = new Set() }: KubeConfigRules): void {
  for (const [field, word] of UNSAFE)
    if (Object.hasOwn(fields, field) && !allowed.has(word))
      throw invalid(name, `${field} is not allowed in the kubeconfig of a Secret`);
  const provider = fields["auth-provider"];
  if (!isRecord(provider) || provider.name === SAFE_PROVIDER) return;
  const reason = allowed.has(String(provider.name))
    ? "is not known any more"
    : "is not allowed in the kubeconfig of a Secret";
  throw invalid(name, `auth-provider ${String(provider.name)} ${reason}`);
}

type Chosen = Omit<ClusterAccess, "ca" | "credentials"> & {
  readonly cluster: Section;
  readonly user: Section | undefined;
};

function chosenBy(configs: readonly Section[], context: string | undefined): Chosen {
  const named = context ?? configs.map(({ fields }) => text(fields, "current-context")).find((name) => name !== "");
  if (named === undefined) {
    throw invalid(configs.map(({ file }) => file).join(", "), "has no current-context: name one by --context");
  }
  const chosen = find(configs, "contexts", "context", named);
  const cluster = find(configs, "clusters", "cluster", text(chosen.fields, "cluster"));
  const userName = text(chosen.fields, "user");
  const server = text(cluster.fields, "server");
  if (!URL.canParse(server))
    throw invalid(cluster.file, `server of cluster "${text(chosen.fields, "cluster")}" is no URL`);
  const user = userName === "" ? undefined : find(configs, "users", "user", userName);
  return {
    server,
    serverName: text(cluster.fields, "tls-server-name") || undefined,
    insecure: cluster.fields["insecure-skip-tls-verify"] === true,
    proxy: proxyOf(cluster),
    impersonation: user && impersonationOf(user),
    namespace: text(chosen.fields, "namespace") || "default",
    cluster,
    user,
  };
}

function proxyOf({ file, fields }: Section): string | undefined {
  const url = text(fields, "proxy-url");
  if (url === "") return undefined;
  if (URL.canParse(url) && ["http:", "https:"].includes(new URL(url).protocol)) return url;
  throw invalid(file, `proxy-url "${url}" is no URL of http:// or https://`);
}

/** The fields `as`, `as-uid`, `as-groups` and `as-user-extra`, as headers. */
function impersonationOf({ file, fields }: Section): ClusterAccess["impersonation"] {
  const [user, uid] = [text(fields, "as"), text(fields, "as-uid")];
  const [groups, extra] = [texts(fields["as-groups"]), fields["as-user-extra"]];
  const extras = isRecord(extra) ? Object.entries(extra) : [];
  if (user === "" && (uid !== "" || groups.length > 0 || extras.length > 0))
    throw invalid(file, "as-uid, as-groups and as-user-extra need a user: as");
  if (user === "") return undefined;
  return {
    "Impersonate-User": user,
    ...(uid !== "" && { "Impersonate-Uid": uid }),
    ...(groups.length > 0 && { "Impersonate-Group": groups }),
    ...Object.fromEntries(
      extras.map(([key, values]) => [`Impersonate-Extra-${encodeURIComponent(key)}`, texts(values)]),
    ),
  };
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

async function readConfig(file: string): Promise<Section> {
  let content: string;
  try {
    content = await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError("KUBE_CONFIG_INVALID", `kubeconfig ${file} cannot be read`, { cause });
  }
  return parseConfig(content, file);
}

function parseConfig(content: string, file: string): Section {
  const { value, error } = readDocument(content);
  if (error !== undefined) throw invalid(`${file}:${error.line}`, error.message);
  if (!isRecord(value)) throw invalid(file, "holds no kubeconfig");
  return { file, fields: value };
}

/** The part of a named entry, in the first file that has it. */
function find(configs: readonly Section[], list: string, part: string, name: string): Section {
  for (const { file, fields } of configs) {
    const entries = Array.isArray(fields[list]) ? fields[list] : [];
    const entry = entries.find((candidate) => isRecord(candidate) && candidate.name === name);
    if (isRecord(entry) && isRecord(entry[part])) return { file, fields: entry[part] };
  }
  throw invalid(configs.map(({ file }) => file).join(", "), `has no ${part} "${name}"`);
}

function credentialsOf(user: Section, environment: Environment): () => Promise<Credentials> {
  const { file, fields } = user;
  if (isRecord(fields.exec)) return credentialProgram({ exec: fields.exec, folder: dirname(file), environment });
  const [name, password] = [text(fields, "username"), text(fields, "password")];
  return async () => {
    const certificate = await dataOrFile(user, "client-certificate");
    const key = await dataOrFile(user, "client-key");
    const token = text(fields, "tokenFile") === "" ? tokenOf(fields) : (await fileOf(user, "tokenFile")).trim();
    const basic = name === "" ? undefined : `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`;
    return { certificate, key, authorization: token === "" ? basic : `Bearer ${token}` };
  };
}

/** That of the provider as it is in the file: it is not renewed. */
function tokenOf(fields: Fields): string {
  const provider = fields["auth-provider"];
  const config = isRecord(provider) && provider.name === SAFE_PROVIDER ? provider.config : undefined;
  return text(fields, "token") || (isRecord(config) ? text(config, "id-token") : "");
}

/** `x-data` in base64 goes before the file `x`, which is relative to the kubeconfig. */
async function dataOrFile(section: Section, name: string): Promise<string | undefined> {
  const data = text(section.fields, `${name}-data`);
  if (data !== "") return Buffer.from(data, "base64").toString();
  return text(section.fields, name) === "" ? undefined : fileOf(section, name);
}

async function fileOf({ file, fields }: Section, name: string): Promise<string> {
  const path = resolve(dirname(file), text(fields, name));
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new MeshError("KUBE_CONFIG_INVALID", `kubeconfig ${file}: ${name} ${path} cannot be read`, { cause });
  }
}

function text(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === "string" ? value : "";
}

function invalid(where: string, what: string): MeshError {
  return new MeshError("KUBE_CONFIG_INVALID", `kubeconfig ${where}: ${what}`);
}
