import { kind } from "../kind.ts";
import { checkService } from "./check.ts";
import { serviceSchema, serviceStatusSchema } from "./schema.ts";

/** Kubernetes v1 Service. */
export const serviceKind = kind({
  group: "",
  name: "Service",
  plural: "services",
  versions: ["v1"],
  schema: serviceSchema,
  status: serviceStatusSchema,
  check: checkService,
});
