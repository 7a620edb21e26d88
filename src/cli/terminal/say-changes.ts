import type { ChangeSummary } from "#standalone/control/protocol.ts";
import type { Terminal } from "./terminal.ts";

/** Says that nothing had to be done; what was done has been said while it was. */
export function sayChanges(terminal: Terminal, { changes, status }: ChangeSummary): void {
  const unready = status.members.filter(({ ready, state }) => !ready && state === "running");
  if (changes.length === 0) terminal.say(`mesh "${status.name}" is up and as it should be: nothing to do`);
  for (const { name, reason } of unready) terminal.say(`${name} is not ready: ${reason}`);
}
