/** An API server that may go away for a while: every request of an installation can be repeated. */
import { setTimeout as wait } from "node:timers/promises";
import { Backoff } from "#lib/async/backoff.ts";
import { type ApiCall, ApiError, type KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";

/** One line for each thing that was done. */
export type Say = (line: string) => void;

export interface PatientApiOptions {
  readonly api: KubernetesApi;
  readonly say: Say;
  /** How long the server may be away once it has answered. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 30_000;
const RETRY = { initialMs: 100, maxMs: 2_000 };

export class PatientApi {
  readonly #api: KubernetesApi;
  readonly #say: Say;
  readonly #patienceMs: number;
  #hasAnswered = false;

  constructor({ api, say, patienceMs = PATIENCE_MS }: PatientApiOptions) {
    this.#api = api;
    this.#say = say;
    this.#patienceMs = patienceMs;
  }

  /** As KubernetesApi has it. A server that never answered is not waited for: most likely the address is wrong. */
  async call<Answer = RawObject>(call: ApiCall): Promise<Answer> {
    const end = Date.now() + this.#patienceMs;
    const backoff = new Backoff(RETRY);
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await this.#api.call<Answer>(call);
        this.#hasAnswered = true;
        return answer;
      } catch (problem) {
        const pauseMs = pauseOf(problem) ?? backoff.next();
        if (!this.#hasAnswered || !mayPass(problem) || Date.now() + pauseMs > end) throw problem;
        if (attempt === 0) this.#say(`trying again: ${errorText(problem)}`);
        await wait(pauseMs);
      }
    }
  }
}

function mayPass(problem: unknown): boolean {
  if (problem instanceof ApiError) return problem.status === 429 || problem.status >= 500;
  return problem instanceof MeshError && problem.code === "KUBE_API_UNREACHABLE";
}

function pauseOf(problem: unknown): number | undefined {
  return problem instanceof ApiError ? problem.retryAfterMs : undefined;
}
