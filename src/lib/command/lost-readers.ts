/**
 * Whoever reads what a program prints may stop early, as `head` does. That is no fault to tell of: what is left goes nowhere,
 * and the program does the rest of its work. Node by itself would end it with a stack.
 */
export function ignoreLostReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
}
