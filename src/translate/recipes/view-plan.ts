import type { Recipe } from "./recipe.ts";

/** The resources of one view, each once by name. */
export interface Plan {
  readonly clusters: readonly Recipe[];
  readonly listeners: readonly Recipe[];
  readonly routes: readonly Recipe[];
  /** Settings of extensions that listeners fetch by name. */
  readonly extensions: readonly Recipe[];
}
