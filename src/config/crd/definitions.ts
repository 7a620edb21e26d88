/** CustomResourceDefinitions of the kinds of the mesh, made from the schemas it reads them by. */
import { isRecord } from "#lib/json/is-record.ts";
import { knownKinds } from "../kinds/kinds.ts";
import { CONSTRAINTS } from "./constraints.ts";
import { fieldDescription, KIND_DESCRIPTIONS } from "./descriptions.ts";
import { type JsonSchema, jsonSchemaOf } from "./json-schema.ts";
import { LATER_KINDS } from "./later-kinds.ts";
import { structuralOf } from "./structural.ts";

/** How a kind is called on the command line, and what `kubectl get` shows of it. */
interface Presentation {
  readonly plural: string;
  readonly short?: string;
  /** The newest first, which is also the one that is stored. */
  readonly versions: readonly string[];
  readonly columns?: readonly Column[];
  /** An object without a spec makes no sense. */
  readonly needsSpec?: true;
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly description: string;
}

const AGE: Column = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "Time since the object was created",
};
const NETWORKING = ["v1", "v1beta1", "v1alpha3"];
const SECURITY = ["v1", "v1beta1"];

const PRESENTATIONS: Readonly<Record<string, Presentation>> = {
  AuthorizationPolicy: {
    plural: "authorizationpolicies",
    short: "ap",
    versions: SECURITY,
    columns: [column("Action", ".spec.action", "What happens to requests that match")],
  },
  DestinationRule: {
    plural: "destinationrules",
    short: "dr",
    versions: NETWORKING,
    columns: [column("Host", ".spec.host", "The service that the rule is about")],
  },
  EnvoyFilter: { plural: "envoyfilters", versions: ["v1alpha3"] },
  Gateway: { plural: "gateways", short: "gw", versions: NETWORKING },
  PeerAuthentication: {
    plural: "peerauthentications",
    short: "pa",
    versions: SECURITY,
    columns: [column("Mode", ".spec.mtls.mode", "Whether mutual TLS is asked of callers")],
  },
  ProxyConfig: { plural: "proxyconfigs", versions: ["v1beta1"] },
  RequestAuthentication: { plural: "requestauthentications", short: "ra", versions: SECURITY },
  ServiceEntry: {
    plural: "serviceentries",
    short: "se",
    versions: NETWORKING,
    needsSpec: true,
    columns: [
      column("Hosts", ".spec.hosts", "Names of the service"),
      column("Location", ".spec.location", "Whether it is part of the mesh"),
      column("Resolution", ".spec.resolution", "How its addresses are found"),
    ],
  },
  Sidecar: { plural: "sidecars", versions: NETWORKING },
  Telemetry: { plural: "telemetries", short: "telemetry", versions: ["v1", "v1alpha1"] },
  VirtualService: {
    plural: "virtualservices",
    short: "vs",
    versions: NETWORKING,
    columns: [
      column("Gateways", ".spec.gateways", "Where the routes apply"),
      column("Hosts", ".spec.hosts", "Whom requests are addressed to"),
    ],
  },
  WasmPlugin: {
    plural: "wasmplugins",
    versions: ["v1alpha1"],
    needsSpec: true,
    columns: [column("URL", ".spec.url", "Where the plugin is"), column("Phase", ".spec.phase", "When it is asked")],
  },
  WorkloadEntry: {
    plural: "workloadentries",
    short: "we",
    versions: NETWORKING,
    needsSpec: true,
    columns: [column("Address", ".spec.address", "Where the workload is")],
  },
  WorkloadGroup: { plural: "workloadgroups", short: "wg", versions: NETWORKING, needsSpec: true },
};

/** One definition for each custom kind, by name. */
export function customResourceDefinitions(): readonly JsonSchema[] {
  return [...knownKinds(), ...LATER_KINDS].flatMap((kind) => {
    const presentation = kind.group.endsWith("istio.io") ? PRESENTATIONS[kind.name] : undefined;
    return presentation === undefined ? [] : [definitionOf(kind, presentation)];
  });
}

function definitionOf(
  kind: (typeof LATER_KINDS)[number],
  { plural, short, versions, columns = [], needsSpec }: Presentation,
): JsonSchema {
  const spec = constrained(structuralOf(jsonSchemaOf(kind.schema)), `${kind.name}.spec`);
  const schema = {
    openAPIV3Schema: {
      type: "object",
      description: KIND_DESCRIPTIONS[kind.name],
      properties: { spec: { description: "What is wanted", ...spec }, status: STATUS },
      ...(needsSpec === true && { required: ["spec"] }),
    },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${kind.group}`, labels: { app: "istio-pilot", release: "istio" } },
    spec: {
      group: kind.group,
      scope: "Namespaced",
      names: {
        kind: kind.name,
        listKind: `${kind.name}List`,
        plural,
        singular: kind.name.toLowerCase(),
        ...(short !== undefined && { shortNames: [short] }),
        categories: ["istio-io", kind.group.replaceAll(".", "-")],
      },
      versions: versions.map((name, i) => ({
        name,
        served: true,
        storage: i === 0,
        additionalPrinterColumns: [...columns, AGE],
        schema,
        subresources: { status: {} },
      })),
    },
  };
}

/** What the control plane writes about an object, and whatever others do. */
const STATUS: JsonSchema = {
  type: "object",
  description: "What became of it",
  "x-kubernetes-preserve-unknown-fields": true,
  properties: {
    conditions: {
      type: "array",
      items: {
        type: "object",
        properties: {
          type: { type: "string" },
          status: { type: "string" },
          reason: { type: "string" },
          message: { type: "string" },
          lastProbeTime: { type: "string", format: "date-time" },
          lastTransitionTime: { type: "string", format: "date-time" },
          observedGeneration: { "x-kubernetes-int-or-string": true },
        },
      },
    },
    observedGeneration: { "x-kubernetes-int-or-string": true },
  },
};

function column(name: string, jsonPath: string, description: string): Column {
  return { name, type: "string", jsonPath, description };
}

/** The schema with the constraints that hold at its path and below. */
function constrained(schema: JsonSchema, path: string): JsonSchema {
  const { properties, items, additionalProperties } = schema;
  const own = CONSTRAINTS.filter(({ at }) => at.some((end) => path === end || path.endsWith(`.${end}`)));
  return Object.assign(
    {},
    schema,
    isRecord(properties) && { properties: fieldsWith(properties, path) },
    isRecord(items) && { items: constrained(items, `${path}[]`) },
    isRecord(additionalProperties) && { additionalProperties: constrained(additionalProperties, `${path}{}`) },
    ...own.map(({ schema: more }) => more),
    joinedRules(own.map(({ schema: more }) => more)),
  );
}

/** Names that the API has kept from earlier times. The API server knows no other spelling than those it is told. */
const FORMER_NAMES: Readonly<Record<string, string>> = { jwksUri: "jwks_uri", mirrorPercent: "mirror_percent" };

function fieldsWith(properties: JsonSchema, path: string): JsonSchema {
  const fields = Object.entries(properties).flatMap(([name, field]): [string, unknown][] => {
    const former = FORMER_NAMES[name];
    return former === undefined
      ? [[name, field]]
      : [
          [name, field],
          [former, field],
        ];
  });
  return Object.fromEntries(
    fields.map(([name, field]) => [name, isRecord(field) ? described(field, `${path}.${name}`) : field]),
  );
}

function described(field: JsonSchema, path: string): JsonSchema {
  const description = fieldDescription(path);
  const schema = constrained(field, path);
  return description === undefined ? schema : { description, ...schema };
}

/** Rules of several constraints hold together. */
function joinedRules(schemas: readonly JsonSchema[]): JsonSchema {
  const rules = schemas.flatMap((schema) => schema["x-kubernetes-validations"] ?? []);
  return rules.length === 0 ? {} : { "x-kubernetes-validations": rules };
}
