/**
 * The functions of the Sprig library, and `toYaml`, `toJSON` and `fromJSON` of Istio. Those that read the environment, the clock, files, the network or random numbers are left out on purpose: what a
 * template gives depends on its value alone.
 */

import type { Callable } from "../value.ts";
import { CODE_FUNCTIONS } from "./codes.ts";
import { DATA_FUNCTIONS } from "./data.ts";
import { DATE_FUNCTIONS } from "./dates.ts";
import { LIST_FUNCTIONS } from "./lists.ts";
import { MAP_FUNCTIONS } from "./maps.ts";
import { NUMBER_FUNCTIONS } from "./numbers.ts";
import { PATH_FUNCTIONS } from "./paths.ts";
import { REGEX_FUNCTIONS } from "./regex.ts";
import { TEXT_FUNCTIONS } from "./text.ts";
import { VERSION_FUNCTIONS } from "./versions.ts";
import { WORD_FUNCTIONS } from "./words.ts";

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
