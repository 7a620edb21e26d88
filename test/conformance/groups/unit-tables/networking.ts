/** Tables about services, routes and what belongs to whom. */

import {
  type HttpMatch,
  type HttpRoute,
  type VirtualService,
  virtualServiceSchema,
} from "#config/kinds/virtual-service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { parse } from "#config/schema/parse.ts";
import { contradicts, joinDelegates, joinMatches, joinRoutes } from "#convert/routes/delegates.ts";
import { compareJson } from "../../compare.ts";
import { byRow, unitTables } from "../../unit-tables.ts";
import { policyAndNameFunctions } from "./policies-and-names.ts";
import { sidecarScopeFunctions } from "./sidecar-scope.ts";

interface Raw {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: object;
}

/** Read without checks: some rows hold what no user may write. */
function virtualService({ kind, metadata, spec }: Raw): ConfigObject<VirtualService> {
  const head = { ...metadata, labels: {}, annotations: {}, createdAt: 0 };
  return { kind, metadata: head, spec: specOf(spec), origin: undefined };
}

function specOf(raw: object): VirtualService {
  const { value, problems } = parse(virtualServiceSchema, raw, "spec");
  if (value === undefined) throw new Error(JSON.stringify(problems));
  return value;
}

function routes(http: readonly object[]): readonly HttpRoute[] {
  return specOf({ http }).http ?? [];
}

function matches(match: readonly object[]): readonly HttpMatch[] {
  return routes([{ match }])[0]?.match ?? [];
}

/** Virtual services as people see them; a route that leads nowhere, since its delegate is missing, is not one. */
function effective(objects: readonly ConfigObject<VirtualService>[]): object[] {
  return objects
    .map(({ metadata: { name, namespace }, spec }) => {
      const http = spec.http?.filter(({ delegate }) => delegate === undefined) ?? [];
      return { name, namespace, spec: { ...spec, http: http.length > 0 ? http : undefined } };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export const networkingTables = unitTables("unit tables: networking", ["pilot/pkg/model"], {
  ...sidecarScopeFunctions,
  ...policyAndNameFunctions,
  mergeVirtualServicesIfNeeded: byRow<{
    virtualServices: Raw[];
    expectedVirtualServices: Raw[];
    defaultExportTo: string[];
  }>(({ virtualServices, expectedVirtualServices, defaultExportTo }) => {
    const joined = joinDelegates(virtualServices.map(virtualService), { exportTo: defaultExportTo, domain: "" });
    return compareJson(effective(joined), effective(expectedVirtualServices.map(virtualService)));
  }),
  "hasConflict(root match, delegate match)": byRow<{ root: object; leaf: object; expected: boolean }>(
    ({ root, leaf, expected }) => {
      const [first = {}, second = {}] = matches([root, leaf]);
      return compareJson(contradicts(first, second), expected);
    },
  ),
  "mergeHTTPMatchRequests(root, delegate)": byRow<{ root?: object[]; delegate?: object[]; expected?: object[] }>(
    ({ root = [], delegate = [], expected }) =>
      compareJson(
        joinMatches(matches(root), matches(delegate)),
        expected === undefined ? undefined : matches(expected),
      ),
  ),
  "mergeHTTPRoutes(root, delegate)": byRow<{ root: object; delegate?: object[]; expected?: object[] }>(
    ({ root, delegate = [], expected = [] }) => {
      const [first = {}] = routes([root]);
      return compareJson(joinRoutes(first, routes(delegate)), routes(expected));
    },
  ),
});
