/** Revision tags of a cluster: which there are, and what setting or removing one does. */

import type { WebhookConfiguration } from "#inject/webhook/webhook-match.ts";
import { overlappingWebhooks } from "#inject/webhook/webhook-overlap.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { ApiError, type RawObject } from "#lib/kubernetes/api-client.ts";
import { pathOf } from "#lib/kubernetes/resource-types.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { Chart } from "./chart.ts";
import type { PatientApi } from "./patient-api.ts";
import {
  DEFAULT_TAG,
  DEFAULT_VALIDATOR,
  deactivated,
  injectionClient,
  REVISION_LABEL,
  TAG_LABEL,
  type TagRequest,
  tagObjects,
} from "./tag-objects.ts";

const WEBHOOKS = { group: "admissionregistration.k8s.io", version: "v1", namespaced: false };
const INJECTION = { ...WEBHOOKS, kind: "MutatingWebhookConfiguration", plural: "mutatingwebhookconfigurations" };
const VALIDATION = { ...WEBHOOKS, kind: "ValidatingWebhookConfiguration", plural: "validatingwebhookconfigurations" };
const CORE = { group: "", version: "v1" };
const SERVICE = { ...CORE, kind: "Service", plural: "services", namespaced: true };
const NAMESPACE = { ...CORE, kind: "Namespace", plural: "namespaces", namespaced: false };

/** A tag, or with an empty name a revision that has none. */
export interface TagDescription {
  readonly tag: string;
  readonly revision: string;
  /** Namespaces that name it. */
  readonly namespaces: readonly string[];
}

export interface TagCheck {
  /** A tag of that name may be there already. */
  readonly overwrite: boolean;
  /** Nothing will be written: a revision may have the name. */
  readonly onlyPrint: boolean;
}

export class RevisionTags {
  readonly #api: Pick<PatientApi, "call">;
  readonly #namespace: string;

  /** `namespace` is that of the control planes. */
  constructor(api: Pick<PatientApi, "call">, namespace: string) {
    this.#api = api;
    this.#namespace = namespace;
  }

  /** The objects of a tag. Throws a MeshError when it cannot be set. */
  async objects(request: TagRequest, chart: Chart, check: TagCheck): Promise<readonly RawObject[]> {
    const { tag } = request;
    if (!check.onlyPrint && !check.overwrite && tag !== DEFAULT_TAG) await this.#refuseNameOfRevision(tag);
    const injection = await this.#injectionOf(request.revision);
    const isThere = !check.overwrite && (await this.#objectsOf(tag)).length > 0;
    if (isThere) throw refused(`revision tag "${tag}" already exists, and --overwrite is false`);
    if (injectionClient(injection) === undefined)
      throw refused(`cannot modify tag: ${injection.metadata.name} has no webhook of injection`);
    const validator = pathOf(VALIDATION, { name: DEFAULT_VALIDATOR });
    const validation = tag === DEFAULT_TAG ? await this.#unlessMissing(validator) : undefined;
    return tagObjects(request, { chart, injection, validation });
  }

  /** What an API server would do twice, or could not do, if the objects of a tag were there; one line each. */
  async conflicts(objects: readonly RawObject[], request: TagRequest, check: TagCheck): Promise<readonly string[]> {
    const injection = objects.find(({ kind }) => kind === INJECTION.kind);
    if (injection === undefined) return [];
    const { name } = injection.metadata;
    const takesOver = request.tag === DEFAULT_TAG && !check.onlyPrint;
    const running = (await this.#list(INJECTION)).filter(({ metadata: { name: other, labels = {} } }) => {
      const isTakenOver = takesOver && labels[REVISION_LABEL] === DEFAULT_TAG && labels[TAG_LABEL] === undefined;
      return other !== name && !isTakenOver && [undefined, request.revision].includes(labels[REVISION_LABEL]);
    });
    const configurations = [...running, injection] as readonly (RawObject & WebhookConfiguration)[];
    const overlaps = overlappingWebhooks(configurations.filter(isOfIstio), name).map(
      (others) => `Webhook overlaps with others: [${others.join(" ")}]. This may cause injection to occur twice.`,
    );
    const lines = [...(await this.#missingService(injection)), ...overlaps];
    return lines.map((line) => `Error [IST0139] (MutatingWebhookConfiguration ${name} ) ${line}`);
  }

  /** Makes the webhook of the default revision match nothing: a tag takes its place. */
  async deactivateDefault(): Promise<void> {
    const [configuration, ...others] = await this.#withRevision(INJECTION, DEFAULT_TAG);
    if (configuration === undefined) return;
    if (others.length > 0) throw refused("expected a single webhook for default revision");
    const path = pathOf(INJECTION, { name: configuration.metadata.name });
    await this.#api.call({ method: "PUT", path, body: deactivated(configuration) });
  }

  /** The revision for those who name none: by a tag, or because it has no name itself. Undefined when there is none. */
  async defaultRevision(): Promise<string | undefined> {
    const [tagged] = await this.#list(INJECTION, `app=sidecar-injector,${TAG_LABEL}=${DEFAULT_TAG}`);
    if (tagged !== undefined) return tagged.metadata.labels?.[REVISION_LABEL] ?? DEFAULT_TAG;
    return (await this.#withRevision(INJECTION, DEFAULT_TAG)).length > 0 ? DEFAULT_TAG : undefined;
  }

  /** By revision, then by name. */
  async list(): Promise<readonly TagDescription[]> {
    const objects = [
      ...(await this.#list(INJECTION, REVISION_LABEL)),
      ...(await this.#list(SERVICE, REVISION_LABEL)),
    ].map(({ metadata: { labels = {} } }) => ({
      tag: labels[TAG_LABEL] ?? "",
      revision: labels[REVISION_LABEL] ?? "",
    }));
    const tagged = new Set(objects.filter(({ tag }) => tag !== "").map(({ revision }) => revision));
    const unique = new Map(objects.map((one) => [`${one.revision}\n${one.tag}`, one]));
    const shown = [...unique]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, one]) => one)
      .filter(({ tag, revision }) => tag !== "" || !tagged.has(revision));
    return Promise.all(shown.map(async (one) => ({ ...one, namespaces: await this.namespaces(one.tag) })));
  }

  /** Names of namespaces that name a tag. */
  async namespaces(tag: string): Promise<readonly string[]> {
    const namespaces = await this.#list(NAMESPACE, `${REVISION_LABEL}=${tag}`);
    return namespaces.map(({ metadata }) => metadata.name);
  }

  /** Whether there is such a tag. */
  async isThere(tag: string): Promise<boolean> {
    return (await this.#objectsOf(tag)).length > 0;
  }

  /** Takes a tag away. What it checked goes on being checked. */
  async remove(tag: string): Promise<void> {
    for (const [type, object] of await this.#objectsOf(tag)) {
      const { name, namespace } = object.metadata;
      await this.#api.call({ method: "DELETE", path: pathOf(type, { name, namespace }) });
    }
  }

  async #missingService(injection: RawObject): Promise<readonly string[]> {
    const { service } = injectionClient(injection) ?? {};
    if (!isRecord(service)) return [];
    const [namespace, name] = [String(service.namespace), String(service.name)];
    const isThere = (await this.#unlessMissing(pathOf(SERVICE, { namespace, name }))) !== undefined;
    return isThere ? [] : [`Injector refers to a control plane service that does not exist: ${namespace}/${name}.`];
  }

  async #refuseNameOfRevision(tag: string): Promise<void> {
    const found = [...(await this.#services(tag)), ...(await this.#withRevision(INJECTION, tag))];
    if (found.length === 0) return;
    throw refused(`cannot create revision tag "${tag}": found existing control plane revision with same name`);
  }

  /** The webhook configuration that came with a revision. */
  async #injectionOf(revision: string): Promise<RawObject> {
    const services = await this.#services(revision);
    const [first, ...others] = await this.#withRevision(INJECTION, revision);
    if (others.length > 0 || services.length > 1)
      throw refused(`cannot modify tag: found multiple canonical webhooks or services with revision "${revision}"`);
    if (first !== undefined) return first;
    const missing = services.length === 0 ? "MutatingWebhookConfiguration or Service" : "MutatingWebhookConfiguration";
    throw refused(`cannot modify tag: cannot find ${missing} with revision "${revision}"`);
  }

  #services(revision: string): Promise<readonly RawObject[]> {
    return this.#list(SERVICE, `${REVISION_LABEL}=${revision},!${TAG_LABEL},app=istiod`);
  }

  #withRevision(type: typeof INJECTION, revision: string): Promise<readonly RawObject[]> {
    return this.#list(type, `${REVISION_LABEL}=${revision},!${TAG_LABEL}`);
  }

  async #objectsOf(tag: string): Promise<readonly (readonly [typeof INJECTION, RawObject])[]> {
    const lists = [INJECTION, SERVICE].map(async (type) =>
      (await this.#list(type, `${TAG_LABEL}=${tag}`)).map((object) => [type, object] as const),
    );
    return (await Promise.all(lists)).flat();
  }

  async #unlessMissing(path: string): Promise<RawObject | undefined> {
    try {
      return await this.#api.call({ path });
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 404) return undefined;
      throw problem;
    }
  }

  async #list(type: typeof INJECTION, labelSelector?: string): Promise<readonly RawObject[]> {
    const path = pathOf(type, type.namespaced ? { namespace: this.#namespace } : {});
    const query = labelSelector === undefined ? {} : { labelSelector };
    const { items = [] } = await this.#api.call<{ readonly items?: readonly RawObject[] }>({ path, query });
    return items;
  }
}

function isOfIstio({ webhooks = [] }: WebhookConfiguration): boolean {
  return webhooks.some(({ name }) => name.endsWith("istio.io"));
}

function refused(message: string): MeshError {
  return new MeshError("TAG_REFUSED", message);
}
