import type { JsonObject } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { TypedStructSchema } from "#gen/udpa/type/v1/typed_struct_pb.ts";
import { pack, typeUrlOf } from "./encode.ts";

/** Configuration of Istio's own filters, whose descriptors only Istio's build of Envoy has. */
export function typedStruct(typeName: string, value: JsonObject): Any {
  return pack(TypedStructSchema, { typeUrl: typeUrlOf(typeName), value });
}
