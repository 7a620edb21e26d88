/** What the process that a person started and the runner inside the fabric tell each other. */
import type { Desired } from "../plan/plan.ts";
import type { MeshStatus, PublishedPort } from "../status/status.ts";

/** To the runner. The listening socket of a port travels beside its message. */
export type ToRunner =
  | { readonly kind: "port"; readonly port: PublishedPort }
  /** A socket of the machine's network, to ask its name servers through: the mesh has a way out. */
  | { readonly kind: "resolver" }
  | StartMessage;

export interface StartMessage {
  readonly kind: "start";
  readonly desired: Desired;
  /** Stays when whoever started it goes away. */
  readonly detached: boolean;
  readonly startTimeoutMs: number;
}

/** From the runner. */
export type FromRunner =
  | { readonly kind: "progress"; readonly line: string }
  | { readonly kind: "ready"; readonly status: MeshStatus }
  /** The mesh has ended by itself, with its jobs. */
  | { readonly kind: "finished"; readonly code: number }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };
