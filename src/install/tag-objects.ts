/**
 * The objects of a revision tag, a second name for a control plane: a webhook for those who name it, a Service by which it is
 * found, and for the tag `default` also the webhook that checks what names no revision.
 */
import { isRecord } from "#lib/json/is-record.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { type Chart, renderChart } from "./chart.ts";
import { OWNER_LABEL } from "./manifest.ts";
import { overlaid, type Values } from "./values/values.ts";

export const DEFAULT_TAG = "default";
export const TAG_LABEL = "istio.io/tag";
export const REVISION_LABEL = "istio.io/rev";
export const DEFAULT_VALIDATOR = "istiod-default-validator";
/** Of objects that later installations leave alone, though they are not among those that the chart gives. */
export const NOT_PRUNED_LABEL = "install.operator.istio.io/owning-resource-not-pruned";

export interface TagRequest {
  readonly tag: string;
  /** `default`, or the name of another. */
  readonly revision: string;
  /** Of the control plane. */
  readonly namespace: string;
  /** Instead of the usual name of the webhook's configuration. */
  readonly webhookName?: string | undefined;
  /** Whether pods of namespaces without any label are injected too. */
  readonly allNamespaces?: boolean;
  /** The installation that the tag goes with; a tag that a person sets belongs to none, and stays when one goes. */
  readonly owner?: string;
}

/** What the cluster has already. */
export interface TagSurroundings {
  readonly chart: Chart;
  /** The webhook configuration that was installed with the revision: the tag's leads to the same place. */
  readonly injection: RawObject;
  /** The one that checks what names no revision, if there is one. */
  readonly validation?: RawObject | undefined;
}

/** The webhooks, then the Service. */
export function tagObjects(request: TagRequest, surroundings: TagSurroundings): readonly RawObject[] {
  const { tag, namespace } = request;
  const injector = injectorOf(surroundings.injection);
  const revision = request.revision === DEFAULT_TAG ? "" : request.revision;
  const values: readonly Values[] = [
    { revision, revisionTags: [tag], pilot: { enabled: true }, global: { istioNamespace: namespace } },
    {
      istiodRemote: { injectionURL: injector.url },
      base: { validationURL: validationUrl(injector.url) },
      defaultRevision: tag === DEFAULT_TAG ? revision : "",
      sidecarInjectorWebhook: {
        enableNamespacesByDefault: request.allNamespaces === true,
        ...(injector.reinvocationPolicy !== "" && { reinvocationPolicy: injector.reinvocationPolicy }),
      },
    },
  ];
  const rendered = renderChart(surroundings.chart, values.reduce(overlaid, surroundings.chart.values), {
    name: "istio",
    namespace,
  });
  const isService = ({ kind }: RawObject) => kind === "Service";
  const inOrder = [...rendered.filter((object) => !isService(object)), ...rendered.filter(isService)];
  return inOrder.flatMap((object) => {
    const { kind = "", metadata } = object;
    if (kind === "ValidatingWebhookConfiguration")
      return tag === DEFAULT_TAG && metadata.name === DEFAULT_VALIDATOR
        ? [validationOf(object, request, surroundings)]
        : [];
    if (metadata.labels?.[TAG_LABEL] !== tag) return [];
    return [kind === "Service" ? labelled(object, {}, request) : injectionOf(object, request, surroundings)];
  });
}

/** A configuration whose webhooks match nothing, as Istio marks one that a tag took the place of. */
export function deactivated(configuration: RawObject): RawObject {
  const selector = { matchLabels: { "istio.io/deactivated": "never-match" } };
  const webhooks = webhooksOf(configuration).map((webhook) => ({
    ...webhook,
    namespaceSelector: selector,
    objectSelector: selector,
  }));
  return { ...configuration, webhooks };
}

/** A validation without the policies that the control plane has decided on since the last installation: these stay. */
export function withoutPolicies(configuration: RawObject, live: RawObject | undefined): RawObject {
  const decided = live === undefined ? [] : webhooksOf(live).filter(({ failurePolicy }) => failurePolicy === "Fail");
  const names = new Set(decided.map(({ name }) => name));
  const webhooks = webhooksOf(configuration).map(({ failurePolicy, ...webhook }) =>
    names.has(webhook.name) && failurePolicy !== "Fail" ? webhook : { ...webhook, failurePolicy },
  );
  return { ...configuration, webhooks };
}

/** Whether it is the webhook configuration that comes with the default revision. */
export function isDefaultInjection({ kind, metadata: { labels = {} } }: RawObject): boolean {
  const isDefault = labels[REVISION_LABEL] === DEFAULT_TAG && labels[TAG_LABEL] === undefined;
  return kind === "MutatingWebhookConfiguration" && isDefault;
}

/** The webhooks of a configuration, as data. */
export function webhooksOf({ webhooks }: RawObject): readonly Values[] {
  return Array.isArray(webhooks) ? webhooks.filter(isRecord) : [];
}

/** Where the injection webhook of a revision leads. Undefined in a configuration that has none. */
export function injectionClient(configuration: RawObject): Values | undefined {
  const webhook = webhooksOf(configuration).find(({ name }) => String(name).endsWith("sidecar-injector.istio.io"));
  return webhook === undefined ? undefined : recordAt(webhook, "clientConfig");
}

interface Injector {
  readonly client: Values;
  readonly url: string;
  readonly reinvocationPolicy: string;
}

function injectorOf(configuration: RawObject): Injector {
  const client = injectionClient(configuration) ?? {};
  const [first = {}] = webhooksOf(configuration);
  return { client, url: String(client.url ?? ""), reinvocationPolicy: String(first.reinvocationPolicy ?? "") };
}

function injectionOf(object: RawObject, request: TagRequest, { injection }: TagSurroundings): RawObject {
  const { client } = injectorOf(injection);
  const { path, name } = recordAt(client, "service");
  const webhooks = webhooksOf(object).map((webhook) => {
    const own = recordAt(webhook, "clientConfig");
    const service = isRecord(own.service) ? { service: { ...own.service, path, name } } : {};
    return { ...webhook, clientConfig: { ...own, ...service, ...bundleOf(client) } };
  });
  const named = { ...object, metadata: { ...object.metadata, name: request.webhookName || object.metadata.name } };
  return labelled({ ...named, webhooks }, injection.metadata, request);
}

/** A policy that the control plane has set already stays; where it says `Fail`, that is what holds without a word. */
function validationOf(object: RawObject, request: TagRequest, surroundings: TagSurroundings): RawObject {
  const { injection, validation } = surroundings;
  const before = new Map(
    validation === undefined ? [] : webhooksOf(validation).map(({ name, failurePolicy }) => [name, failurePolicy]),
  );
  const webhooks = webhooksOf(object).map(({ failurePolicy, ...webhook }) => {
    const policy = before.has(webhook.name) ? before.get(webhook.name) : failurePolicy;
    const client = { ...recordAt(webhook, "clientConfig"), ...bundleOf(injectorOf(injection).client) };
    return { ...webhook, clientConfig: client, ...(policy !== "Fail" && { failurePolicy: policy }) };
  });
  const { labels } = object.metadata;
  const tagged = { ...object, metadata: { ...object.metadata, labels: { ...labels, [TAG_LABEL]: request.tag } } };
  return labelled({ ...tagged, webhooks }, injection.metadata, request);
}

/** Labels of the revision's own webhook, but for what says whose it is: a tag that a person sets is that person's. */
function labelled(object: RawObject, from: Partial<RawObject["metadata"]>, { owner }: TagRequest): RawObject {
  const { app: _, ...common } = from.labels ?? {};
  const labels = Object.entries({ ...object.metadata.labels, ...common }).filter(
    ([name]) => name !== OWNER_LABEL && (owner !== undefined || !name.includes("operator.istio.io")),
  );
  const owned = owner === undefined ? {} : { [OWNER_LABEL]: owner, [NOT_PRUNED_LABEL]: "true" };
  const annotations = { ...object.metadata.annotations, ...from.annotations };
  return {
    ...object,
    metadata: {
      ...object.metadata,
      labels: { ...Object.fromEntries(labels), ...owned },
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
  };
}

function bundleOf({ caBundle }: Values): Values {
  return typeof caBundle === "string" && caBundle !== "" ? { caBundle } : {};
}

function validationUrl(url: string): string {
  if (!URL.canParse(url)) return "";
  const address = new URL(url);
  address.pathname = "/validate";
  return address.href;
}

function recordAt(values: Values, name: string): Values {
  const value = values[name];
  return isRecord(value) ? value : {};
}
