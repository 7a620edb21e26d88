import { kind } from "../kind.ts";
import { checkSecret } from "./check.ts";
import { secretSchema } from "./schema.ts";

/** Kubernetes v1 Secret. */
export const secretKind = kind({
  group: "",
  name: "Secret",
  plural: "secrets",
  versions: ["v1"],
  schema: secretSchema,
  check: checkSecret,
  content: ["type", "data", "stringData", "immutable"],
});
