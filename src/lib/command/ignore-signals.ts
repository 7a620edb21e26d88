/**
 * Signals that mean nothing to these programs, as they mean nothing to Istio's. Node by itself opens a debugger on loopback
 * at SIGUSR1, through which everybody in the pod could run code in the program, and ends at the others.
 */
const MEANINGLESS = ["SIGUSR1", "SIGUSR2", "SIGALRM"] as const;

export function ignoreMeaninglessSignals(): void {
  for (const signal of MEANINGLESS) process.on(signal, () => undefined);
}
