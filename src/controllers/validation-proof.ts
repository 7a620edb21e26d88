/** Whether the API server heeds our validation, seen by its answer to an object that validation always refuses. */
import { Backoff } from "#lib/async/backoff.ts";
import { ApiError, type KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import type { Logger } from "#lib/log/log.ts";

export interface ValidationProofOptions {
  readonly api: KubernetesApi;
  /** Validation of this revision is looked at. */
  readonly revision: string;
  /** Of the control plane. */
  readonly namespace: string;
  readonly log: Logger;
}

const RETRY = { initialMs: 200, maxMs: 30_000 };
/** What an API server says that a webhook has told not to store an object. */
const DENIED = "denied the request";
/** What it says where some webhook would do more than answer: nothing can be tried out there. */
const NO_DRY_RUN = "does not support dry run";

export class ValidationProof {
  readonly #options: ValidationProofOptions;
  readonly #backoff = new Backoff(RETRY);
  #isGiven = false;
  #toldReason = "";

  constructor(options: ValidationProofOptions) {
    this.#options = options;
  }

  /** Once it was seen to work it is taken to work: a replica that is gone for a moment must not let in what is wrong. */
  get isGiven(): boolean {
    return this.#isGiven;
  }

  /** When to look again. */
  pauseMs(): number {
    return this.#backoff.next();
  }

  /** Looks; nothing is stored. */
  async look(): Promise<boolean> {
    const { log } = this.#options;
    const reason = await this.#ask().then(
      () => "it stored what validation refuses",
      (problem: unknown) => (isProof(problem) ? undefined : refusalText(problem)),
    );
    this.#isGiven = reason === undefined;
    if (reason === undefined) log.info("validation works: from now on nothing is stored without it");
    else if (reason !== this.#toldReason) {
      log.warn("the API server does not heed validation yet: until then objects are stored without it", { reason });
    }
    this.#toldReason = reason ?? "";
    return this.#isGiven;
  }

  async #ask(): Promise<unknown> {
    const { api, revision, namespace } = this.#options;
    const path = `/apis/networking.istio.io/v1/namespaces/${namespace}/gateways`;
    return api.call({ method: "POST", path, query: { dryRun: "All" }, body: refusedGateway(revision, namespace) });
  }
}

/** Right in all but the annotation: definitions of kinds must not refuse it before validation does. */
function refusedGateway(revision: string, namespace: string): object {
  return {
    apiVersion: "networking.istio.io/v1",
    kind: "Gateway",
    metadata: {
      generateName: "invalid-gateway-",
      namespace,
      labels: { "istio.io/rev": revision },
      annotations: { "internal.istio.io/webhook-always-reject": "true" },
    },
    spec: { servers: [{ port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["*"] }] },
  };
}

/** Also where it cannot be tried: without the kind there is nothing to validate. */
export function isProof(problem: unknown): boolean {
  if (!(problem instanceof ApiError)) return false;
  const { message, status } = problem;
  return message.includes(DENIED) || message.includes(NO_DRY_RUN) || status === 404;
}
