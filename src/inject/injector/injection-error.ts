/** A pod, or a configuration, that injection cannot work with. The message is for whoever wrote it. */
export class InjectionError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "InjectionError";
  }
}
