/** An xDS server on a free port whose resources a test writes by hand. */
import { create, toBinary } from "@bufbuild/protobuf";
import { Cluster_DiscoveryType, ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import type { Admission } from "#lib/admission/admission.ts";
import { atOnce } from "#lib/async/steps.ts";
import { SILENT } from "#lib/log/log.ts";
import type { Source } from "#model/ports.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "#protocol/messages/type-urls.ts";
import { type Recipe, recipe } from "#translate/recipes/recipe.ts";
import { AdsServer, type AdsServerOptions } from "#xds/ads-server.ts";
import type { ProxyParts } from "#xds/parts/parts.ts";
import type { Authenticate } from "#xds/stream/introduction.ts";
import { serveMethods } from "./grpc-server.ts";
import { meshOf } from "./mesh.ts";

/** Encoded messages, or texts that stand for them, by type URL and name. */
export type Resources = Readonly<Record<string, Readonly<Record<string, string | Uint8Array>>>>;
/** What each part holds; proxies have the part `all` and the one named after their id. */
export type PlanByPart = Readonly<Record<string, Resources>>;

export interface AdsFixture extends AsyncDisposable {
  readonly server: AdsServer;
  readonly address: string;
  /** A new snapshot with these resources. */
  set(parts: PlanByPart, changed?: { readonly endpointsOnly: boolean }): void;
  /** How often a recipe was built. */
  readonly builds: number;
}

export interface AdsFixtureOptions extends Partial<Omit<AdsServerOptions, "source" | "partsOf">> {
  readonly authenticate?: Authenticate;
  /** Of requests. */
  readonly maxMessageBytes?: number;
  readonly admission?: Admission;
  /** Tests of failures may throw here. */
  readonly onPlan?: (part: string) => void;
}

export async function startAds(parts: PlanByPart, options: AdsFixtureOptions = {}): Promise<AdsFixture> {
  const plans = new WeakMap<Snapshot, PlanByPart>();
  const listeners = new Set<(snapshot: Snapshot) => void>();
  let current: Snapshot = meshOf("");
  let builds = 0;
  plans.set(current, parts);
  // One function for all recipes, as recipes demand.
  const build = ({ typeUrl, name, content }: Piece) => {
    builds++;
    return encode(typeUrl, name, content);
  };
  const source: Source = {
    current: () => current,
    objects: () => [],
    problems: () => [],
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const partsOf = (snapshot: Snapshot, proxy: MeshProxy) => {
    const onPlan = options.onPlan ?? (() => undefined);
    return handMadeParts(plans.get(snapshot) ?? {}, { proxy, build, onPlan });
  };
  const server = new AdsServer({ log: SILENT, ...options, source, partsOf, initial: current });
  const grpc = await serveMethods(server.service(options.authenticate ?? (async () => undefined)), options);
  const stop = new AbortController();
  const running = server.run(stop.signal);
  return {
    server,
    address: grpc.address,
    set: (next, changed = { endpointsOnly: false }) => {
      const services = changed.endpointsOnly ? current.services : [...current.services];
      current = { ...current, version: current.version + 1, services, endpoints: new Map() };
      plans.set(current, next);
      for (const listener of listeners) listener(current);
    },
    get builds() {
      return builds;
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running;
      await grpc.stop();
    },
  };
}

interface Piece {
  readonly typeUrl: string;
  readonly name: string;
  readonly content: string | Uint8Array;
}

interface Maker {
  readonly proxy: MeshProxy;
  readonly build: (piece: Piece) => Uint8Array;
  readonly onPlan: (part: string) => void;
}

function handMadeParts(plan: PlanByPart, { proxy, build, onPlan }: Maker): ProxyParts {
  const recipeOf = (typeUrl: string, name: string, content: string | Uint8Array): Recipe =>
    recipe({ name, input: { typeUrl, name, content }, build });
  const parts = ["all", proxy.id].map((key) => ({
    key,
    plan: () => {
      onPlan(key);
      const types = Object.entries(plan[key] ?? {});
      const recipes = types.map(([typeUrl, byName]) => {
        return [typeUrl, Object.entries(byName).map(([name, content]) => recipeOf(typeUrl, name, content))] as const;
      });
      return atOnce(new Map(recipes));
    },
  }));
  const endpoints = {
    key: "endpoints",
    plan: (name: string) => {
      const content = plan.all?.[ENDPOINT_TYPE]?.[name];
      return content === undefined ? undefined : recipeOf(ENDPOINT_TYPE, name, content);
    },
  };
  const types = new Set(Object.values(plan).flatMap((resources) => Object.keys(resources)));
  return {
    types: new Map([...types].filter((typeUrl) => typeUrl !== ENDPOINT_TYPE).map((typeUrl) => [typeUrl, parts])),
    asked: new Map([[ENDPOINT_TYPE, endpoints]]),
    omittedListeners: new Set(),
  };
}

/** Texts become a cluster with endpoints of its own, so that the server sees what Envoy would ask for. */
function encode(typeUrl: string, name: string, content: string | Uint8Array): Uint8Array {
  if (typeof content !== "string") return content;
  if (typeUrl !== CLUSTER_TYPE) return Buffer.from(content);
  const clusterDiscoveryType = { case: "type", value: Cluster_DiscoveryType.EDS } as const;
  return toBinary(ClusterSchema, create(ClusterSchema, { name, altStatName: content, clusterDiscoveryType }));
}
