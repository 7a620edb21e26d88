/**
 * Meshes and proxies to Envoy resources. `in/*.yaml` holds the objects of a mesh, proxies of it (kind `GoldenProxy`, with
 * what to show of each) and perhaps its mesh config (kind `GoldenMesh`); `out/` what each proxy gets. UPDATE_GOLDEN=1
 * rewrites it. Envoy has to accept all of it, shown or not.
 */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { type DescMessage, fromBinary, type Registry, toJson } from "@bufbuild/protobuf";
import { dump } from "js-yaml";
import { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { ClusterLoadAssignmentSchema } from "#gen/envoy/config/endpoint/v3/endpoint_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { descriptorRegistry } from "#lib/descriptors.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import { type Generated, generate } from "../../conformance/generate.ts";
import { acceptedByEnvoy, type EnvoyResources, NO_ENVOY } from "../../support/envoy.ts";
import { meshOf, type ProxyOptions, proxyOf } from "../../support/mesh.ts";

const SCHEMAS = {
  clusters: ClusterSchema,
  endpoints: ClusterLoadAssignmentSchema,
  listeners: ListenerSchema,
  names: NameTableSchema,
  routes: RouteConfigurationSchema,
} as const satisfies Readonly<Record<string, DescMessage>>;
type Kind = keyof typeof SCHEMAS;

interface GoldenProxy {
  readonly metadata: { readonly name: string };
  readonly spec: ProxyOptions & {
    /** Names of resources by kind, as regular expressions. */
    readonly show: Readonly<Partial<Record<Kind, readonly string[]>>>;
  };
}

interface GoldenCase {
  readonly objects: string;
  readonly mesh: object;
  readonly proxies: readonly GoldenProxy[];
}

const inFolder = join(import.meta.dirname, "in");
const outFolder = join(import.meta.dirname, "out");
const isUpdate = process.env.UPDATE_GOLDEN !== undefined;
const registry: Registry = descriptorRegistry(readFileSync(join(import.meta.dirname, "../../../src/gen/all.binpb")));

const written = new Set<string>();
const accepted = new Map<string, EnvoyResources>();

for (const file of readdirSync(inFolder).sort()) {
  const name = basename(file, ".yaml");
  const golden = readCase(readFileSync(join(inFolder, file), "utf8"));
  const snapshot = meshOf(golden.objects, { mesh: golden.mesh });
  for (const { metadata, spec } of golden.proxies) {
    test(`${name}: ${metadata.name} gets what is written down`, () => {
      const generated = generate(snapshot, proxyOf({ name: metadata.name, ...spec }));
      // Filters of Istio's own build of Envoy are not in the one that is asked here.
      if (spec.extensions === undefined) accepted.set(`${name}/${metadata.name}`, forEnvoy(generated));
      for (const [kind, patterns] of Object.entries(spec.show) as [Kind, readonly string[]][]) {
        compare(`${name}.${metadata.name}.${kind}.yaml`, shown(generated, kind, patterns));
      }
    });
  }
}

test("Envoy accepts everything", { skip: NO_ENVOY }, async () => {
  await acceptedByEnvoy(accepted);
});

after(() => {
  const stale = readdirSync(outFolder).filter((file) => !written.has(file));
  if (isUpdate) for (const file of stale) rmSync(join(outFolder, file));
  else assert.deepEqual(stale, [], "files in out/ that no case writes");
});

/** Documents of kind GoldenProxy and GoldenMesh are ours, the others are the mesh's objects. */
function readCase(text: string): GoldenCase {
  const documents = readDocuments(text).map(({ value }) => value as { readonly kind: string });
  const ofKind = (kind: string) => documents.filter((document) => document.kind === kind);
  const [mesh] = ofKind("GoldenMesh") as unknown as { readonly spec: object }[];
  const objects = text.split(/^---$/m).filter((part) => !/^kind: Golden/m.test(part));
  return {
    objects: objects.join("---\n"),
    mesh: mesh?.spec ?? {},
    proxies: ofKind("GoldenProxy") as unknown as GoldenProxy[],
  };
}

function shown(generated: Generated, kind: Kind, patterns: readonly string[]): unknown {
  const wanted = patterns.map((pattern) => new RegExp(`^${pattern}$`));
  const schema = SCHEMAS[kind];
  const resources = [...resourcesOf(generated, kind)].filter(([name]) => wanted.some((pattern) => pattern.test(name)));
  assert.ok(resources.length > 0, `no ${kind} match ${patterns}`);
  return resources.map(([, bytes]) => toJson(schema, fromBinary(schema, bytes), { registry }));
}

function resourcesOf(generated: Generated, kind: Kind): ReadonlyMap<string, Uint8Array> {
  if (kind === "names") return generated.nameTables;
  return kind === "endpoints" ? endpointsOf(generated) : generated[kind];
}

function endpointsOf({ clusters, endpointsOf: answer }: Generated): ReadonlyMap<string, Uint8Array> {
  const all = [...clusters.keys()].map((name) => [name, answer(name)] as const);
  return new Map(all.flatMap(([name, bytes]) => (bytes === undefined ? [] : [[name, bytes]])));
}

function forEnvoy(generated: Generated): EnvoyResources {
  return {
    clusters: [...generated.clusters.values()],
    listeners: [...generated.listeners.values()],
    routes: [...generated.routes.values()],
    endpoints: [...endpointsOf(generated).values()],
  };
}

function compare(file: string, value: unknown): void {
  written.add(file);
  const text = dump(value, { lineWidth: 120, noRefs: true });
  const path = join(outFolder, file);
  if (isUpdate) writeFileSync(path, text);
  else assert.equal(text, readFileSync(path, "utf8"), `${file} differs: review, then UPDATE_GOLDEN=1`);
}
