/**
 * Which accounts may read Secrets of their namespace: the API server of their cluster is asked (SubjectAccessReview), and its answers are
 * remembered for a while, as Istio does. Who asks does not wait: he is told what is known, and called when that changes.
 */
import { isRecord } from "#lib/json/is-record.ts";
import type { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { troubleText } from "#lib/kubernetes/missing-right.ts";
import type { Logger } from "#lib/log/log.ts";

/** A service account of one of the clusters. */
export interface ReviewedAccount {
  readonly clusterId: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

export interface SecretAccessOptions {
  /** The API server of a cluster; undefined for one that is not of the mesh, whose accounts have no rights. */
  readonly apiOf: (clusterId: string) => Pick<KubernetesApi, "call"> | undefined;
  /** Called when somebody has gained or lost the right. */
  readonly onChange: () => void;
  readonly now: () => number;
  readonly log: Logger;
}

interface Answer {
  readonly isAllowed: boolean;
  /** From then on it is asked for again, and holds until the next one. */
  readonly until: number;
}

/** Nobody needs to lose a right within seconds, but who was just given one waits for it. */
const ALLOWED_MS = 300_000;
const DENIED_MS = 60_000;
const TIME_LIMIT_MS = 10_000;
/** Accounts that are remembered; those that are not asked for any more make room. */
const MOST = 10_000;
const REVIEWS = {
  group: "authorization.k8s.io",
  version: "v1",
  kind: "SubjectAccessReview",
  plural: "subjectaccessreviews",
  namespaced: false,
};

export class SecretAccess {
  readonly #options: SecretAccessOptions;
  readonly #answers = new Map<string, Answer>();
  readonly #asked = new Set<string>();

  constructor(options: SecretAccessOptions) {
    this.#options = options;
  }

  /** What is known; nobody has a right that is not known. */
  mayRead(account: ReviewedAccount): boolean {
    return this.#answers.get(keyOf(account))?.isAllowed ?? false;
  }

  /** Asks if nothing is known, or something old. */
  ask(account: ReviewedAccount): void {
    const key = keyOf(account);
    const answer = this.#answers.get(key);
    if (this.#asked.has(key) || (answer !== undefined && this.#options.now() < answer.until)) return;
    const api = this.#options.apiOf(account.clusterId);
    if (api === undefined) return;
    this.#asked.add(key);
    void this.#find(account, api).finally(() => this.#asked.delete(key));
  }

  async #find(account: ReviewedAccount, api: Pick<KubernetesApi, "call">): Promise<void> {
    const { now, onChange, log } = this.#options;
    const { namespace, clusterId: cluster } = account;
    const [key, user] = [keyOf(account), userOf(account)];
    const before = this.#answers.get(key);
    try {
      const { isAllowed, reason } = await review(api, user, namespace);
      this.#remember(key, { isAllowed, until: now() + (isAllowed ? ALLOWED_MS : DENIED_MS) });
      if (!isAllowed) log.warn("an account may not read the secrets it asks for", { user, namespace, cluster, reason });
      if (isAllowed !== (before?.isAllowed ?? false)) onChange();
    } catch (problem) {
      // A server that is away takes nobody's right.
      const isAllowed = before?.isAllowed ?? false;
      this.#remember(key, { isAllowed, until: now() + DENIED_MS });
      const reason = troubleText(problem, REVIEWS, ["create"]);
      log.error("it cannot be found out who may read secrets: what was known holds", { user, cluster, reason });
    }
  }

  #remember(key: string, answer: Answer): void {
    this.#answers.delete(key);
    this.#answers.set(key, answer);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MOST && oldest !== undefined) this.#answers.delete(oldest);
  }
}

function userOf({ namespace, serviceAccount }: ReviewedAccount): string {
  return `system:serviceaccount:${namespace}:${serviceAccount}`;
}

function keyOf(account: ReviewedAccount): string {
  return `${account.clusterId} ${userOf(account)}`;
}

async function review(
  api: Pick<KubernetesApi, "call">,
  user: string,
  namespace: string,
): Promise<{ readonly isAllowed: boolean; readonly reason: string }> {
  const resourceAttributes = { namespace, verb: "list", resource: "secrets" };
  const { status } = await api.call({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    body: {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      spec: { user, resourceAttributes },
    },
    signal: AbortSignal.timeout(TIME_LIMIT_MS),
  });
  const { allowed, reason } = isRecord(status) ? status : {};
  return { isAllowed: allowed === true, reason: String(reason ?? "") };
}
