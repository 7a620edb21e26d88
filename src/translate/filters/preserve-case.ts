import { create } from "@bufbuild/protobuf";
import { Http1ProtocolOptions_HeaderKeyFormatSchema } from "#gen/envoy/config/core/v3/protocol_pb.ts";
import { PreserveCaseFormatterConfigSchema } from "#gen/envoy/extensions/http/header_formatters/preserve_case/v3/preserve_case_pb.ts";
import { pack } from "../wire/encode.ts";

/** Sends the names of HTTP/1 headers in the letters they came in. */
export const PRESERVE_CASE = create(Http1ProtocolOptions_HeaderKeyFormatSchema, {
  headerFormat: {
    case: "statefulFormatter",
    value: { name: "preserve_case", typedConfig: pack(PreserveCaseFormatterConfigSchema, {}) },
  },
});
