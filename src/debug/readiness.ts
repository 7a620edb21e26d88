/** What the control plane still waits for. Each part that is starting holds a handle. */
export class Readiness {
  readonly #pending = new Set<string>();

  /** Not ready until the handle is disposed of. */
  block(task: string): Disposable {
    this.#pending.add(task);
    return { [Symbol.dispose]: () => void this.#pending.delete(task) };
  }

  /** GET /ready */
  answer(): { readonly status: number; readonly body: string } {
    const waiting = [...this.#pending].join(", ");
    return waiting === "" ? { status: 200, body: "ok\n" } : { status: 503, body: `waiting for ${waiting}\n` };
  }
}
