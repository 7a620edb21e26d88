/** The objects by which an API server knows our webhooks, as they should be; whoever may write them keeps them so. */

/** What decides them. */
export interface WebhookConfigurationInput {
  /** Empty is the default revision. */
  readonly revision: string;
  /** Of the control plane. */
  readonly namespace: string;
  /** Roots of our certificate in PEM; undefined while there is none yet. */
  readonly caBundle: string | undefined;
  /** Whether pods of namespaces without any label are injected too. */
  readonly allNamespaces?: boolean;
  /** `/inject`, or a path that names cluster and network. */
  readonly injectionPath?: string;
  readonly reinvocationPolicy?: string;
}

type Expression = { readonly key: string; readonly operator: string; readonly values?: readonly string[] };
interface Selectors {
  readonly prefix: string;
  readonly namespace: readonly Expression[];
  readonly object: readonly Expression[];
}

const INJECT = "sidecar.istio.io/inject";
const REVISION = "istio.io/rev";
const LEGACY = "istio-injection";
const SYSTEM_NAMESPACES = ["kube-system", "kube-public", "kube-node-lease", "local-path-storage"];
const VALIDATED_GROUPS = ["security.istio.io", "networking.istio.io", "telemetry.istio.io", "extensions.istio.io"];

/**
 * The MutatingWebhookConfiguration of injection. Its selectors leave out pods that ask for no injection, as the control
 * plane's own do: a webhook that is down never holds up the pods it needs to come back.
 */
export function injectionWebhook(input: WebhookConfigurationInput): object {
  const { revision, namespace, injectionPath = "/inject", reinvocationPolicy = "Never" } = input;
  const service = { name: serviceName(revision), namespace, path: injectionPath, port: 443 };
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "MutatingWebhookConfiguration",
    metadata: {
      name: `istio-sidecar-injector${suffix(revision)}${namespace === "istio-system" ? "" : `-${namespace}`}`,
      labels: { app: "sidecar-injector", [REVISION]: revision || "default", "operator.istio.io/component": "Pilot" },
    },
    webhooks: selectorsOf(input).map(({ prefix, namespace: namespaces, object }) => ({
      name: `${prefix}sidecar-injector.istio.io`,
      clientConfig: { service, ...bundle(input) },
      sideEffects: "None",
      rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
      failurePolicy: "Fail",
      reinvocationPolicy,
      admissionReviewVersions: ["v1"],
      namespaceSelector: { matchExpressions: namespaces },
      objectSelector: { matchExpressions: object },
    })),
  };
}

/** The ValidatingWebhookConfiguration. Until there is a certificate nothing is held up. */
export function validationWebhook(input: WebhookConfigurationInput): object {
  const { revision, namespace, caBundle } = input;
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: {
      name: `istio-validator${suffix(revision)}-${namespace}`,
      labels: { app: "istiod", istio: "istiod", [REVISION]: revision || "default" },
    },
    webhooks: [
      {
        name: "rev.validation.istio.io",
        clientConfig: { service: { name: serviceName(revision), namespace, path: "/validate" }, ...bundle(input) },
        rules: [
          { operations: ["CREATE", "UPDATE"], apiGroups: VALIDATED_GROUPS, apiVersions: ["*"], resources: ["*"] },
        ],
        failurePolicy: caBundle === undefined ? "Ignore" : "Fail",
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
        objectSelector: { matchExpressions: [has(REVISION, revision || "default")] },
      },
    ],
  };
}

/** A revision is named by namespaces or pods; the default one also by the older label, or by none at all. */
function selectorsOf({ revision, allNamespaces = false }: WebhookConfigurationInput): readonly Selectors[] {
  const own = has(REVISION, revision || "default");
  const notRefused = { key: INJECT, operator: "NotIn", values: ["false"] };
  const unlabelled = [lacks(REVISION), lacks(LEGACY)];
  const byRevision: readonly Selectors[] = [
    { prefix: "rev.namespace.", namespace: [own, lacks(LEGACY)], object: [notRefused] },
    { prefix: "rev.object.", namespace: unlabelled, object: [notRefused, own] },
  ];
  if (revision !== "") return byRevision;
  const elsewhere = { key: "kubernetes.io/metadata.name", operator: "NotIn", values: SYSTEM_NAMESPACES };
  return [
    ...byRevision,
    { prefix: "namespace.", namespace: [has(LEGACY, "enabled")], object: [notRefused] },
    { prefix: "object.", namespace: unlabelled, object: [has(INJECT, "true"), lacks(REVISION)] },
    ...(allNamespaces
      ? [{ prefix: "auto.", namespace: [...unlabelled, elsewhere], object: [lacks(INJECT), lacks(REVISION)] }]
      : []),
  ];
}

function has(key: string, value: string): Expression {
  return { key, operator: "In", values: [value] };
}

function lacks(key: string): Expression {
  return { key, operator: "DoesNotExist" };
}

function serviceName(revision: string): string {
  return `istiod${suffix(revision)}`;
}

function suffix(revision: string): string {
  return revision === "" ? "" : `-${revision}`;
}

function bundle({ caBundle }: WebhookConfigurationInput): object {
  return caBundle === undefined ? {} : { caBundle: Buffer.from(caBundle).toString("base64") };
}
