/** Changes that are made together: all of them, or none. */

/** A change, and how to take it back. */
export interface Step {
  /** Throws when the change cannot be made. */
  readonly run: () => Promise<void>;
  /** Also called after a run that failed half-way. Does not throw. */
  readonly undo: () => Promise<void>;
}

/** Runs the steps in order; when one fails, it and those before it are taken back, the last one first. */
export async function runSteps(steps: readonly Step[]): Promise<void> {
  const begun: Step[] = [];
  try {
    for (const step of steps) {
      begun.unshift(step);
      await step.run();
    }
  } catch (error) {
    for (const step of begun) await step.undo();
    throw error;
  }
}
