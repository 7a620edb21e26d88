/** Kubernetes v1 Secret, of which the mesh takes certificates and keys. */
import { type Infer, map, message } from "../../schema/message.ts";
import { bool, string } from "../../schema/scalars.ts";

/** Schema of what a Secret has beside its metadata. */
export const secretSchema = message({
  type: string(),
  /** Values in base64. */
  data: map(string()),
  /** Values as they are; they go before those of `data`. */
  stringData: map(string()),
  immutable: bool(),
});

/** The content of a Secret. Its values must not appear in logs, messages and pages. */
export type Secret = Infer<typeof secretSchema>;

/** A value of a Secret; undefined when there is none, or an empty one. */
export function secretValue({ data = {}, stringData = {} }: Secret, key: string): Buffer | undefined {
  const value = Object.hasOwn(stringData, key)
    ? Buffer.from(stringData[key] ?? "")
    : Buffer.from((Object.hasOwn(data, key) && data[key]) || "", "base64");
  return value.length === 0 ? undefined : value;
}
