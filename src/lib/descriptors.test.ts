import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { create, fromJson, toBinary, toJson } from "@bufbuild/protobuf";
import { AnySchema, DurationSchema, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { descriptorRegistry } from "./descriptors.ts";

test("JSON with a packed message can be read and written by the types of a descriptor set", () => {
  const registry = descriptorRegistry(readFileSync(join(import.meta.dirname, "../gen/all.binpb")));
  const json = {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
    suppressEnvoyHeaders: true,
  };
  const any = fromJson(AnySchema, json, { registry });
  assert.deepEqual(toJson(AnySchema, any, { registry }), json);
});

test("messages, nested fields, oneofs and values that Envoy got later are known", () => {
  const registry = descriptorRegistry(readFileSync(join(import.meta.dirname, "../gen/all.binpb")));
  const known = [
    {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.ext_proc.v3.ProcessingMode",
      requestBodyMode: "FULL_DUPLEX_STREAMED",
    },
    {
      "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
      preconnectPolicy: { preconnectEnabledMetadata: { filter: "f" } },
    },
    {
      "@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtRequirement",
      extractOnlyWithoutValidation: {},
    },
    { "@type": "type.googleapis.com/envoy.config.core.v3.CelExpressionConfig", enableStringConversion: true },
  ];
  for (const json of known)
    assert.deepEqual(toJson(AnySchema, fromJson(AnySchema, json, { registry }), { registry }), json);
});

test("a set without the type does not know it", () => {
  const set = create(FileDescriptorSetSchema, {
    file: [create(FileDescriptorProtoSchema, { name: "a.proto", syntax: "proto3" })],
  });
  const registry = descriptorRegistry(toBinary(FileDescriptorSetSchema, set));
  assert.equal(registry.getMessage(DurationSchema.typeName), undefined);
});

test("what is no descriptor set is refused", () => {
  assert.throws(() => descriptorRegistry(new Uint8Array([255, 255, 255])));
});
