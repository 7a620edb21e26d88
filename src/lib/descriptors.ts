import { gunzipSync } from "node:zlib";
import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { ALL_DESCRIPTORS } from "#gen/all_descriptors.ts";

/**
 * All message types of a descriptor set (`src/gen/all.binpb` holds every one that Envoy and Istio know), for reading and
 * writing JSON with `Any` in it. Costs 0.3 s and 20 MB for that file: call it once, and only where JSON is needed.
 */
export function descriptorRegistry(descriptorSet: Uint8Array): FileRegistry {
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSet));
}

let all: FileRegistry | undefined;

/** Every type that Envoy and Istio know. They are part of the program, and unpacked when they are first asked for. */
export function allDescriptors(): FileRegistry {
  all ??= descriptorRegistry(gunzipSync(Buffer.from(ALL_DESCRIPTORS, "base64")));
  return all;
}
