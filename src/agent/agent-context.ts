import type { EnvoyAdmin } from "./envoy/admin.ts";
import type { AgentMetrics } from "./metrics.ts";
import type { Prepared, PrepareInput } from "./prepare.ts";

export interface AgentInput extends PrepareInput {
  /** When the workload began to start, in milliseconds since 1970. */
  readonly startedAt: number;
  /** Sends `reload` when Envoy is to be replaced, with hot restart. */
  readonly reload: EventTarget;
  /** Asks for an end with draining. */
  readonly stop: AbortSignal;
  /** Asks for an end at once. */
  readonly hurry: AbortSignal;
}

/** What the parts of an agent have in common. */
export interface AgentContext extends AgentInput, Prepared {
  readonly localhost: string;
  readonly admin: EnvoyAdmin;
  readonly metrics: AgentMetrics;
  /** Aborted when Envoy is gone: the parts serve it while it drains. */
  readonly done: AbortSignal;
}
