/** What a proxy still needs before it can serve, by name. */

export interface Waiting {
  /** What is waited for, such as `workload certificate`. */
  readonly name: string;
  readonly reason: string;
}

/** One thing that must be there; undefined when it is. */
export interface Need {
  readonly name: string;
  readonly problem: () => string | undefined | Promise<string | undefined>;
}

/** All that is missing, in the order of the needs. */
export async function waitingFor(needs: readonly Need[]): Promise<readonly Waiting[]> {
  const problems = await Promise.all(needs.map(({ problem }) => problem()));
  return needs.flatMap(({ name }, index) => {
    const reason = problems[index];
    return reason === undefined ? [] : [{ name, reason }];
  });
}

/** For the caller of `/healthz/ready`: one line for each. */
export function formatWaiting(waiting: readonly Waiting[]): string {
  return waiting.map(({ name, reason }) => `waiting for ${name}: ${reason}\n`).join("");
}
