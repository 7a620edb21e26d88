/** Changes of headers. */

import type { Headers } from "#config/kinds/virtual-service/schema.ts";
import {
  HeaderValueOption_HeaderAppendAction as AppendAction,
  type HeaderValueOptionSchema,
} from "#gen/envoy/config/core/v3/base_pb.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { knownFormat } from "../filters/format-string.ts";
import type { Init } from "../wire/encode.ts";
import { isHeaderText } from "../wire/header-text.ts";

type HeaderOption = Init<typeof HeaderValueOptionSchema>;

/** Changes as a route or a weighted cluster holds them. */
export interface HeaderChanges {
  readonly requestHeadersToAdd: HeaderOption[];
  readonly requestHeadersToRemove: string[];
  readonly responseHeadersToAdd: HeaderOption[];
  readonly responseHeadersToRemove: string[];
}

/** Nothing is changed. */
export const NO_CHANGES: HeaderChanges = {
  requestHeadersToAdd: [],
  requestHeadersToRemove: [],
  responseHeadersToAdd: [],
  responseHeadersToRemove: [],
};

/** The changes of a route or destination. The host name is no header to Envoy: see `authorityOf`. */
export function headerChanges({ request, response }: Headers): HeaderChanges {
  return {
    requestHeadersToAdd: [...added(request?.set, false), ...added(request?.add, true)],
    requestHeadersToRemove: (request?.remove ?? []).filter(canChange),
    responseHeadersToAdd: [...added(response?.set, false), ...added(response?.add, true)],
    responseHeadersToRemove: (response?.remove ?? []).filter(canChange),
  };
}

/** The host name that the changes set, if any; setting wins over adding. */
export function authorityOf(headers: Headers | undefined): string | undefined {
  const { set, add } = headers?.request ?? {};
  const find = (map: Readonly<Record<string, string>> | undefined) =>
    Object.entries(map ?? {}).findLast(([name]) => [":authority", "host"].includes(name.toLowerCase()))?.[1];
  return find(set) || find(add) || undefined;
}

function added(headers: Readonly<Record<string, string>> | undefined, appends: boolean): HeaderOption[] {
  return Object.entries(headers ?? {})
    .filter(([key, value]) => canChange(key) && isHeaderText(value))
    .sort(([a], [b]) => compareText(a, b))
    .map(([key, value]) => ({
      header: { key, value: knownFormat(value, "header") },
      appendAction: appends ? AppendAction.APPEND_IF_EXISTS_OR_ADD : AppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    }));
}

/** Envoy keeps pseudo headers and the host for itself. */
function canChange(name: string): boolean {
  return name !== "" && isHeaderText(name) && !name.startsWith(":") && name.toLowerCase() !== "host";
}
