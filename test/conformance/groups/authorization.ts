/** Authorization policies to the filters that Envoy checks. */
import { dirname, join } from "node:path";
import type { Message } from "@bufbuild/protobuf";
import { parseObject } from "#config/kinds/parse-object.ts";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { meshConfigSchema } from "#config/mesh/mesh-schema.ts";
import { parse } from "#config/schema/parse.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { readDocument, readDocuments } from "#lib/yaml/read.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import {
  type AuthorizationInput,
  customHttpFilters,
  customTcpFilters,
  httpAuthorization,
  tcpAuthorization,
} from "#translate/authorization/filters.ts";
import { authorizationInput, authorizationPoliciesOf } from "#translate/policies/authorization-policies.ts";
import { compareJson } from "../compare.ts";
import { type Case, type Group, type Outcome, readJson, readText } from "../harness.ts";
import { messageType, parseResource, throughBytes } from "../resources.ts";

interface AuthorizationCase {
  readonly name: string;
  readonly input: string;
  /** One file per filter, in order. */
  readonly expected: readonly string[];
  readonly protocol: "http" | "tcp";
  readonly customBuilder?: boolean;
  readonly meshConfig?: object;
  /** The mesh's own, then its aliases. */
  readonly trustDomains?: readonly string[];
}

interface CaseFile {
  readonly cases: readonly AuthorizationCase[];
  readonly proxy: { readonly configNamespace: string; readonly labels: Readonly<Record<string, string>> };
}

export const authorization: Group = {
  name: "authorization",
  cases: async (folder) => {
    const path = join(folder, "pilot/pkg/security/authz/builder/cases.json");
    const file = await readJson<CaseFile>(path);
    return (file?.cases ?? []).map(
      (one): Case => ({ name: one.name, check: () => checkFilters(dirname(path), one, file?.proxy) }),
    );
  },
};

/** The service that providers of the cases name; the data says only that there is one. */
const PROVIDER = {
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: "my-custom-ext-authz", namespace: "foo" },
  spec: { clusterIP: "None", ports: [{ name: "http", port: 9000 }] },
};

async function checkFilters(
  at: string,
  one: AuthorizationCase,
  proxy: CaseFile["proxy"] | undefined,
): Promise<Outcome> {
  const policies = readDocuments((await readText(at, one.input)) ?? "").map(({ value }) => value);
  const objects = [PROVIDER, ...policies].flatMap((raw) => parseObject(raw).object ?? []);
  const [trustDomain, ...trustDomainAliases] = one.trustDomains ?? ["cluster.local"];
  // Without the checks, which refuse some of these: what is wrong must deny even if it comes this far.
  const given = parse(meshConfigSchema, { ...one.meshConfig, trustDomain, trustDomainAliases }, "").value;
  const mesh = { ...DEFAULT_MESH_CONFIG, ...given } as MeshConfig;
  const snapshot = buildSnapshot({ objects, mesh, features: DEFAULT_FEATURES });
  const workload = { namespace: proxy?.configNamespace ?? "", labels: proxy?.labels ?? {} };
  const input = authorizationInput(snapshot, authorizationPoliciesOf(snapshot, workload));
  const filters = filtersOf(one, input);
  const expected = await Promise.all(one.expected.map((path) => readText(at, path)));
  const type = messageType(
    one.protocol === "http"
      ? "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter"
      : "envoy.config.listener.v3.Filter",
  );
  const wanted = expected.map((text) => throughBytes(type, parseResource(type, readDocument(text ?? "").value)));
  return compareJson(
    filters.map((filter) => throughBytes(type, filter)),
    wanted,
  );
}

function filtersOf({ protocol, customBuilder }: AuthorizationCase, input: AuthorizationInput): readonly Message[] {
  if (protocol === "http") return customBuilder ? customHttpFilters(input) : httpAuthorization(input);
  return customBuilder ? customTcpFilters(input) : tcpAuthorization(input);
}
