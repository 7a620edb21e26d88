import type { JsonObject } from "@bufbuild/protobuf";
import { textAt } from "./json.ts";

/** The object of the configuration that a resource names as its origin, `name.namespace`; empty where it names none. */
export function managedBy(resource: JsonObject): string {
  const path = textAt(resource, "metadata", "filterMetadata", "istio", "config");
  if (path === "") return "";
  if (!path.startsWith("/apis/networking.istio.io/")) return "<unknown>";
  const parts = path.split("/");
  return parts.length === 8 ? `${parts[7]}.${parts[5]}` : "";
}
