/**
 * The functions of the Sprig library, and `toYaml`, `toJSON` and `fromJSON` of Istio. Those that read the environment, the clock, files, the network or random numbers are left out on purpose: what a
 * template gives depends on its value alone.
 */

import { CODE_FUNCTIONS } from "./sprig-codes.ts";
import { DATA_FUNCTIONS } from "./sprig-data.ts";
import { DATE_FUNCTIONS } from "./sprig-dates.ts";
import { LIST_FUNCTIONS } from "./sprig-lists.ts";
import { MAP_FUNCTIONS } from "./sprig-maps.ts";
import { NUMBER_FUNCTIONS } from "./sprig-numbers.ts";
import { PATH_FUNCTIONS } from "./sprig-paths.ts";
import { REGEX_FUNCTIONS } from "./sprig-regex.ts";
import { TEXT_FUNCTIONS } from "./sprig-text.ts";
import { VERSION_FUNCTIONS } from "./sprig-versions.ts";
import { WORD_FUNCTIONS } from "./sprig-words.ts";
import type { Callable } from "./value.ts";

export const SPRIG_FUNCTIONS: Readonly<Record<string, Callable>> = {
  ...TEXT_FUNCTIONS,
  ...WORD_FUNCTIONS,
  ...REGEX_FUNCTIONS,
  ...CODE_FUNCTIONS,
  ...PATH_FUNCTIONS,
  ...DATE_FUNCTIONS,
  ...VERSION_FUNCTIONS,
  ...NUMBER_FUNCTIONS,
  ...LIST_FUNCTIONS,
  ...MAP_FUNCTIONS,
  ...DATA_FUNCTIONS,
};
