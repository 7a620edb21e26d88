/** Merging messages as protobuf does, with one exception for durations. */
import { type DescMessage, fromBinary, type MessageShape, mergeFromBinary, toBinary } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import type { Any } from "@bufbuild/protobuf/wkt";
import { allDescriptors } from "#lib/descriptors.ts";
import { encode } from "../wire/encode.ts";

/**
 * Merges `patch` into `message`: what is set replaces, lists grow, entries of maps are replaced, messages are merged. A
 * duration is replaced as a whole: half a second merged into five would be five and a half.
 */
export function mergeInto<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  patch: MessageShape<Desc>,
): void {
  clearDurations(reflect(schema, message), reflect(schema, patch));
  mergeFromBinary(schema, message, toBinary(schema, patch));
}

/** The merge of two packed messages; undefined when they are not of one type, or of one that nobody knows. */
export function mergedAny(packed: Any, patch: Any): Any | undefined {
  const schema = packed.typeUrl === patch.typeUrl ? typeOf(packed) : undefined;
  if (schema === undefined) return undefined;
  const message = fromBinary(schema, packed.value);
  mergeInto(schema, message, fromBinary(schema, patch.value));
  return { ...packed, value: encode(schema, message) };
}

function typeOf({ typeUrl }: Any): DescMessage | undefined {
  return allDescriptors().getMessage(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
}

function clearDurations(message: ReflectMessage, patch: ReflectMessage): void {
  for (const field of patch.desc.fields) {
    if (field.fieldKind !== "message" || !patch.isSet(field) || !message.isSet(field)) continue;
    if (field.message.typeName === "google.protobuf.Duration") message.clear(field);
    else clearDurations(message.get(field), patch.get(field));
  }
}
