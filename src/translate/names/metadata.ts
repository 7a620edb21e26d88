/** What a cluster or route tells about where it came from: read by metrics, access logs and people. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Service } from "#model/service/service.ts";
import { configPath } from "./names.ts";

/** The service that metrics name. */
export function serviceMetadata({ hostname, name, namespace }: Service): JsonObject {
  return { host: hostname, name, namespace };
}

/** The path of the networking object that something was made from. */
export function configOrigin({ kind, metadata }: ConfigObject): string {
  return configPath("networking.istio.io", kind, metadata);
}
