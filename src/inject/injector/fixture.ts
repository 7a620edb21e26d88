/** An injector with the stock templates and the values of a plain installation, for tests. */

import { injectionMesh } from "../mesh/injection-mesh.ts";
import { STOCK_TEMPLATES } from "../templates/templates.ts";
import { DEFAULT_VALUES } from "./default-values.ts";
import { type InjectionConfig, type Injector, injectorOf } from "./injector.ts";
import { injectionValues } from "./values.ts";

/** What a test changes. */
export interface FixtureInput {
  readonly mesh?: object;
  readonly values?: object;
  readonly config?: Partial<InjectionConfig>;
  readonly revision?: string;
}

/** The stock injector, changed where the test says so. */
export function testInjector({
  mesh = {},
  values = DEFAULT_VALUES,
  config = {},
  revision = "",
}: FixtureInput = {}): Injector {
  return injectorOf({
    config: { ...STOCK_CONFIG, ...config },
    mesh: injectionMesh(mesh),
    values: injectionValues(values),
    revision,
  });
}

const STOCK_CONFIG: InjectionConfig = {
  policy: "enabled",
  defaultTemplates: ["sidecar"],
  aliases: {},
  templates: STOCK_TEMPLATES,
  injectedAnnotations: {},
  neverInjectSelector: [],
  alwaysInjectSelector: [],
};
