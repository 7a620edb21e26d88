import { kind } from "../kind.ts";
import { checkServiceEntry } from "./check.ts";
import { serviceEntrySchema, serviceEntryStatusSchema } from "./schema.ts";

/** networking.istio.io ServiceEntry. */
export const serviceEntryKind = kind({
  group: "networking.istio.io",
  name: "ServiceEntry",
  plural: "serviceentries",
  versions: ["v1", "v1beta1", "v1alpha3"],
  schema: serviceEntrySchema,
  status: serviceEntryStatusSchema,
  check: checkServiceEntry,
  crd: {
    shortName: "se",
    description: "A service that the registry does not know: outside of the mesh, or on machines of its own",
    columns: [
      { name: "Hosts", jsonPath: ".spec.hosts", description: "Names of the service" },
      { name: "Location", jsonPath: ".spec.location", description: "Whether it is part of the mesh" },
      { name: "Resolution", jsonPath: ".spec.resolution", description: "How its addresses are found" },
    ],
    needsSpec: true,
  },
});
