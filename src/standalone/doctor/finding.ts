/** What was looked at on this machine, and what came out of it. */
export interface Finding {
  readonly check: string;
  /** `bad` keeps meshes from starting; `poor` takes something away that not every mesh needs. */
  readonly verdict: "good" | "poor" | "bad";
  /** What is there, or missing. */
  readonly found: string;
  /** What to do about it; empty when there is nothing to do. */
  readonly remedy: string;
}

export function good(check: string, found: string): Finding {
  return { check, verdict: "good", found, remedy: "" };
}
