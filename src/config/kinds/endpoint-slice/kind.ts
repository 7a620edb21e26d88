import { kind } from "../kind.ts";
import { checkEndpointSlice } from "./check.ts";
import { endpointSliceSchema } from "./schema.ts";

/** discovery.k8s.io EndpointSlice. */
export const endpointSliceKind = kind({
  group: "discovery.k8s.io",
  name: "EndpointSlice",
  plural: "endpointslices",
  versions: ["v1"],
  schema: endpointSliceSchema,
  check: checkEndpointSlice,
  content: ["addressType", "endpoints", "ports"],
});
