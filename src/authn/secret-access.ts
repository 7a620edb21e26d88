/**
 * Which accounts may read Secrets of their namespace: the API server is asked (SubjectAccessReview), and its answers are
 * remembered for a while, as Istio does. Who asks does not wait: he is told what is known, and called when that changes.
 */
import { isRecord } from "#lib/is-record.ts";
import type { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { troubleText } from "#lib/kubernetes/missing-right.ts";
import type { Logger } from "#lib/log.ts";

/** A service account. */
export interface ReviewedAccount {
  readonly namespace: string;
  readonly serviceAccount: string;
}

export interface SecretAccessOptions {
  readonly api: Pick<KubernetesApi, "call">;
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
    return this.#answers.get(userOf(account))?.isAllowed ?? false;
  }

  /** Asks if nothing is known, or something old. */
  ask(account: ReviewedAccount): void {
    const user = userOf(account);
    const answer = this.#answers.get(user);
    if (this.#asked.has(user) || (answer !== undefined && this.#options.now() < answer.until)) return;
    this.#asked.add(user);
    void this.#find(user, account.namespace).finally(() => this.#asked.delete(user));
  }

  async #find(user: string, namespace: string): Promise<void> {
    const { now, onChange, log } = this.#options;
    const before = this.#answers.get(user);
    try {
      const { isAllowed, reason } = await this.#review(user, namespace);
      this.#remember(user, { isAllowed, until: now() + (isAllowed ? ALLOWED_MS : DENIED_MS) });
      if (!isAllowed) log.warn("an account may not read the secrets it asks for", { user, namespace, reason });
      if (isAllowed !== (before?.isAllowed ?? false)) onChange();
    } catch (problem) {
      // A server that is away takes nobody's right.
      const isAllowed = before?.isAllowed ?? false;
      this.#remember(user, { isAllowed, until: now() + DENIED_MS });
      const reason = troubleText(problem, REVIEWS, ["create"]);
      log.error("it cannot be found out who may read secrets: what was known holds", { user, reason });
    }
  }

  async #review(user: string, namespace: string): Promise<{ readonly isAllowed: boolean; readonly reason: string }> {
    const resourceAttributes = { namespace, verb: "list", resource: "secrets" };
    const { status } = await this.#options.api.call({
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

  #remember(user: string, answer: Answer): void {
    this.#answers.delete(user);
    this.#answers.set(user, answer);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MOST && oldest !== undefined) this.#answers.delete(oldest);
  }
}

function userOf({ namespace, serviceAccount }: ReviewedAccount): string {
  return `system:serviceaccount:${namespace}:${serviceAccount}`;
}
