/** Tracing in the HTTP connection manager: how much is sampled, and what each span is tagged with. */

import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { HttpConnectionManager_TracingSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import type { CustomTagSchema } from "#gen/envoy/type/tracing/v3/custom_tag_pb.ts";
import { compareText } from "#lib/text/compare-text.ts";
import type { HttpTraits, TracedWorkload } from "../traits/traits.ts";
import type { Init } from "../wire/encode.ts";

type Tracing = Init<typeof HttpConnectionManager_TracingSchema>;
type Tag = Init<typeof CustomTagSchema> & { readonly tag: string };

/** The tracer itself is in the bootstrap; without one nothing is sent, and no headers are added. */
export function tracing(mesh: MeshConfig, traits: HttpTraits): Tracing | undefined {
  if (!mesh.enableTracing) return undefined;
  const { maxPathTagLength } = traits.tracing;
  return {
    clientSampling: { value: 100 },
    randomSampling: { value: sampling(traits) },
    overallSampling: { value: 100 },
    customTags: tags(traits).sort((a, b) => compareText(a.tag, b.tag)),
    ...(maxPathTagLength && { maxPathTagLength }),
  };
}

/** Percent that are kept where what was said is no share of a hundred. */
const FALLBACK_SAMPLING = 1;

function sampling({ tracing, defaultSampling }: HttpTraits): number {
  const wanted = tracing.sampling || defaultSampling;
  return wanted >= 0 && wanted <= 100 ? wanted : FALLBACK_SAMPLING;
}

function tags(traits: HttpTraits): Tag[] {
  const own = traits.workload === undefined ? [] : [...workloadTags(traits.workload), ...DRY_RUN_TAGS];
  return [...own, ...customTags(traits)];
}

function workloadTags(workload: TracedWorkload): Tag[] {
  return [
    literal("istio.canonical_revision", workload.canonicalRevision),
    literal("istio.canonical_service", workload.canonicalService),
    literal("istio.mesh_id", workload.meshId),
    literal("istio.namespace", workload.namespace),
    literal("istio.cluster_id", workload.clusterId),
  ];
}

/** Outcomes of authorization policies that are only tried out. */
const DRY_RUN_TAGS: readonly Tag[] = ["allow", "deny"].flatMap((action) => [
  policyTag(`istio.authorization.dry_run.${action}_policy.name`, `istio_dry_run_${action}_shadow_effective_policy_id`),
  policyTag(`istio.authorization.dry_run.${action}_policy.result`, `istio_dry_run_${action}_shadow_engine_result`),
]);

/** Envoy refuses tags without a name, a value or a source. */
function customTags({ tracing }: HttpTraits): Tag[] {
  const given = Object.entries(tracing.customTags ?? {}).filter(([tag]) => tag !== "");
  return given.flatMap(([tag, { literal: text, environment, header }]): Tag[] => {
    if (text?.value) return [literal(tag, text.value)];
    if (environment?.name) {
      return [{ tag, type: { case: "environment", value: { name: environment.name, ...fallback(environment) } } }];
    }
    if (!header?.name) return [];
    return [{ tag, type: { case: "requestHeader", value: { name: header.name, ...fallback(header) } } }];
  });
}

function fallback({ defaultValue }: { readonly defaultValue?: string | undefined }): { defaultValue?: string } {
  return defaultValue === undefined ? {} : { defaultValue };
}

function literal(tag: string, value: string): Tag {
  return { tag, type: { case: "literal", value: { value } } };
}

function policyTag(tag: string, key: string): Tag {
  const path = [{ segment: { case: "key" as const, value: key } }];
  return {
    tag,
    type: {
      case: "metadata",
      value: {
        kind: { kind: { case: "request", value: {} } },
        metadataKey: { key: "envoy.filters.http.rbac", path },
      },
    },
  };
}
