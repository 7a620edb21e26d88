/** From a folder and the description of a proxy to that proxy's resources. */
import { relative } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { FEATURE_ENVIRONMENT } from "#control-plane/settings/feature-environment.ts";
import { featuresOf } from "#control-plane/settings/features.ts";
import { allDescriptors } from "#lib/descriptors.ts";
import type { Env } from "#lib/env/env-table.ts";
import { readEnvironment } from "#lib/env/env-table.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { formatTable } from "#lib/print/table.ts";
import type { Features } from "#model/features.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { shortTypeName } from "#protocol/messages/type-urls.ts";
import { formatProblem } from "#sources/report.ts";
import { proxyLabels } from "#standalone/plan/proxy.ts";
import { translatedParts } from "#xds/parts/translated-parts.ts";
import { type ConfigFolder, readConfigFolder } from "./config-folder.ts";
import { originFinder } from "./origins.ts";
import { type TranslatedResource, translateAll } from "./resources.ts";
import { ISTIO_EXTENSIONS, type SimulatedProxy, simulatedProxy, UPSTREAM_ENVOY_VERSION } from "./simulated-proxy.ts";
import type { TranslateOptions } from "./translate-command.ts";

export interface TranslateInput extends Omit<TranslateOptions, "metadata"> {
  readonly metadata: JsonObject;
  /** What a file says of the proxy. */
  readonly node?: (Partial<SimulatedProxy> & Pick<SimulatedProxy, "nodeId">) | undefined;
  readonly env: Env;
}

export interface TranslatedFolder {
  readonly resources: readonly TranslatedResource[];
  /** For stderr, one line each. */
  readonly complaints: readonly string[];
  readonly hasErrors: boolean;
  /** The objects behind each resource. */
  readonly origins: () => { readonly text: string; readonly data: readonly object[] };
}

/** Reads the folder and translates it for the proxy. */
export async function translateFolder(input: TranslateInput, paths: readonly string[]): Promise<TranslatedFolder> {
  const { features, unread } = featuresIn(input);
  const { meshConfig: meshConfigFile, meshNetworks: networksFile, revision } = input;
  const folder = await readConfigFolder({ paths, meshConfigFile, networksFile, features, revision });
  const proxy = proxyOf(input, folder, features);
  const { snapshot } = folder;
  const { resources, broken } = translateAll({
    parts: translatedParts(snapshot, proxy),
    registry: allDescriptors(),
    listeners: proxy.metadata.GENERATOR === "grpc" ? grpcListeners(snapshot, proxy) : [],
  });
  const shown = resources.filter((resource) => isWanted(input, resource, proxy));
  const errors = folder.problems.filter(({ severity }) => severity === "error");
  return {
    resources: shown,
    complaints: [
      ...folder.problems.map((problem) => `${problem.severity}: ${formatProblem(near(problem))}`),
      ...broken.map((line) => `error: ${line}`),
      ...unread.map((name) => `warning: --set-feature ${name}: no switch of this name changes what proxies get`),
    ],
    hasErrors: errors.length + broken.length > 0,
    origins: () => originsOf(folder, { all: resources, shown }),
  };
}

interface ReadFeatures {
  readonly features: Features;
  /** Switches of the command line that nobody asked for. */
  readonly unread: readonly string[];
}

function featuresIn({ env, setFeature = {}, domain, clusterId }: TranslateInput): ReadFeatures {
  const { values, problems, warnings } = readEnvironment(FEATURE_ENVIRONMENT, { ...env, ...setFeature });
  const features = featuresOf(values, { domain, clusterId, unreadableDeny: true });
  const wrong = [...problems, ...warnings];
  if (wrong.length > 0) throw new MeshError("TRANSLATE_INVALID", wrong.join("; "));
  return { features, unread: Object.keys(setFeature).filter((name) => !Object.hasOwn(FEATURE_ENVIRONMENT, name)) };
}

/** The node as given, or as a file has it; or that of a member of the folder's mesh, by its name. */
function proxyOf(input: TranslateInput, folder: ConfigFolder, { domain, clusterId }: Features): MeshProxy {
  const { labels = {}, namespace, serviceAccount, metadata, node } = input;
  const given = { nodeId: node?.nodeId ?? input.proxy, labels, namespace, serviceAccount, metadata };
  const named = given.nodeId.includes("~") || node ? given : memberProxy(given, folder, domain);
  const { value, problems } = simulatedProxy({
    ...named,
    clusterId,
    metadata: { ...node?.metadata, ...named.metadata },
    extensions: input.extensions ?? node?.extensions ?? (input.proxyBuild === "istio" ? ISTIO_EXTENSIONS : []),
    locality: input.locality ?? node?.locality ?? "",
    envoyVersion: input.envoyVersion ?? node?.envoyVersion ?? UPSTREAM_ENVOY_VERSION,
  });
  if (value !== undefined) return value;
  const words = problems.map(({ field, message }) => `${field} ${message}`).join("; ");
  throw new MeshError("TRANSLATE_INVALID", `Cannot make a proxy of --proxy "${input.proxy}": ${words}`);
}

type Described = Pick<SimulatedProxy, "nodeId" | "labels" | "namespace" | "serviceAccount" | "metadata">;

/** Its proxy says of itself what `mizzen up` would have it say. */
function memberProxy(given: Described, { members, snapshot }: ConfigFolder, domain: string): Described {
  const wanted = given.nodeId;
  const found = members.find(({ member: { name, workload, namespace } }) =>
    [name, workload, `${name}.${namespace}`, `${workload}.${namespace}`].includes(wanted),
  );
  if (found === undefined || found.member.proxy === "none") {
    const known = members.filter(({ member }) => member.proxy !== "none").map(({ member }) => member.name);
    const names = known.length === 0 ? "no mesh.yaml names one" : `there are ${known.join(", ")}`;
    const wish = `write it as "sidecar~10.0.0.1~app-1.default~default.svc.cluster.local"`;
    throw new MeshError("MEMBER_UNKNOWN", `No workload "${wanted}" has a proxy (${names}); ${wish}`);
  }
  const { member, address } = found;
  const { name, namespace, proxy } = member;
  return {
    nodeId: `${proxy}~${address}~${name}.${namespace}~${namespace}.svc.${domain}`,
    labels: { ...proxyLabels(member), ...given.labels },
    namespace: given.namespace ?? namespace,
    serviceAccount: given.serviceAccount ?? member.serviceAccount,
    metadata: {
      ...(proxy === "sidecar" ? { INTERCEPTION_MODE: "REDIRECT", DNS_CAPTURE: "true" } : {}),
      MESH_ID: snapshot.mesh.trustDomain,
      ...given.metadata,
    },
  };
}

/** What a program that speaks xDS itself may ask for: the services that it may call, and the ports that it serves. */
function grpcListeners({ services, endpoints }: Snapshot, { addresses }: MeshProxy): readonly string[] {
  const served = [...endpoints.values()]
    .flatMap((set) => set.endpoints)
    .filter(({ address }) => addresses.includes(address))
    .flatMap(({ ports }) => Object.values(ports));
  return [
    ...services.flatMap(({ hostname, ports }) => ports.map(({ port }) => `${hostname}:${port}`)),
    ...new Set(served.map((port) => `xds.istio.io/grpc/lds/inbound/0.0.0.0:${port}`)),
  ];
}

/** A proxy asks for the table of names only when it answers DNS itself. */
function isWanted({ type, name }: TranslateInput, resource: TranslatedResource, { metadata }: MeshProxy): boolean {
  const short = shortTypeName(resource.typeUrl);
  const isAsked = short !== "nds" || metadata.DNS_CAPTURE === "true" || metadata.DNS_CAPTURE === true;
  const isOfType = type.some((one) => (one === "all" ? isAsked : one === short));
  return isOfType && (name === undefined || name.includes(resource.name));
}

function originsOf(
  { snapshot, objects }: ConfigFolder,
  { all, shown }: Readonly<Record<"all" | "shown", readonly TranslatedResource[]>>,
) {
  const find = originFinder(snapshot, objects, all);
  const data = shown.map((resource) => ({
    type: shortTypeName(resource.typeUrl),
    name: resource.name,
    from: find(resource).map(({ object, place }) => ({ object, ...(place && near({ origin: place }).origin) })),
  }));
  const rows = data.flatMap(({ type, name, from }) => {
    const lines = from.map(({ object, file, line }) => [object, file === undefined ? "" : `${file}:${line}`]);
    return (lines.length === 0 ? [["(the mesh itself)", ""]] : lines).map((line, i) =>
      i === 0 ? [type, name, ...line] : ["", "", ...line],
    );
  });
  return { data, text: formatTable([["TYPE", "NAME", "FROM", "AT"], ...rows]) };
}

/** Files as a person in this folder would write them. */
function near<T extends { readonly origin: ConfigFolder["problems"][number]["origin"] }>(value: T): T {
  if (value.origin === undefined) return value;
  const path = relative(process.cwd(), value.origin.file);
  return path.startsWith("..") ? value : { ...value, origin: { ...value.origin, file: path } };
}
