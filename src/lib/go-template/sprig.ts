/**
 * The functions of the Sprig library that templates of Istio and its users call, and `toYaml`, `toJSON` and `fromJSON` of
 * Istio. Those that read the environment, the clock, files, the network or random numbers are left out on purpose: what a
 * template gives depends on its value alone.
 */

import { DATA_FUNCTIONS } from "./sprig-data.ts";
import { LIST_FUNCTIONS } from "./sprig-lists.ts";
import { MAP_FUNCTIONS } from "./sprig-maps.ts";
import { NUMBER_FUNCTIONS } from "./sprig-numbers.ts";
import { TEXT_FUNCTIONS } from "./sprig-text.ts";
import type { Callable } from "./value.ts";

export const SPRIG_FUNCTIONS: Readonly<Record<string, Callable>> = {
  ...TEXT_FUNCTIONS,
  ...NUMBER_FUNCTIONS,
  ...LIST_FUNCTIONS,
  ...MAP_FUNCTIONS,
  ...DATA_FUNCTIONS,
};
