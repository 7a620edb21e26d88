/** The injector of the moment: made anew when the mesh config or the settings of injection changed, kept when they are wrong. */

import { type InjectionSettings, injectorFrom } from "#inject/injector/inject-settings.ts";
import { InjectionError } from "#inject/injector/injection-error.ts";
import type { Injector } from "#inject/injector/injector.ts";

/** Texts of the injection configuration; each is optional. Compared by identity. */
export type InjectionTexts = Pick<InjectionSettings, "injectConfig" | "values">;

export interface LiveInjectorOptions {
  /** The mesh config in effect, as JSON; compared by identity of `mesh`. */
  readonly mesh: () => object;
  readonly meshText: (mesh: object) => string;
  readonly texts: () => InjectionTexts;
  readonly revision: string;
  readonly compliancePolicy: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Told of settings that cannot be used. */
  readonly onProblem: (problem: string) => void;
}

export class LiveInjector {
  readonly #options: LiveInjectorOptions;
  #made: { readonly mesh: object; readonly texts: InjectionTexts; readonly injector: Injector } | undefined;

  constructor(options: LiveInjectorOptions) {
    this.#options = options;
  }

  /** Throws an `InjectionError` while there were never settings that work. */
  current(): Injector {
    const [mesh, texts] = [this.#options.mesh(), this.#options.texts()];
    const before = this.#made;
    if (before?.mesh === mesh && before.texts === texts) return before.injector;
    this.#made = { mesh, texts, injector: this.#make(mesh, texts) };
    return this.#made.injector;
  }

  #make(mesh: object, texts: InjectionTexts): Injector {
    const { meshText, revision, compliancePolicy, environment, onProblem } = this.#options;
    try {
      return injectorFrom({ ...texts, meshConfig: meshText(mesh), revision, compliancePolicy, environment });
    } catch (thrown) {
      if (!(thrown instanceof InjectionError) || this.#made === undefined) throw thrown;
      onProblem(thrown.message);
      return this.#made.injector;
    }
  }
}
