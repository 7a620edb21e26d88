import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import { TypedExtensionConfigSchema } from "#gen/envoy/config/core/v3/extension_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { allDescriptors } from "../descriptors.ts";
import { typedJson } from "./any-json.ts";

const LISTENER = `type.googleapis.com/${ListenerSchema.typeName}`;
const EXTENSION = `type.googleapis.com/${TypedExtensionConfigSchema.typeName}`;

function shown(...packed: readonly (readonly [string, Uint8Array])[]) {
  const filters = packed.map(([typeUrl, value], i) => ({
    name: `f${i}`,
    configType: { case: "typedConfig" as const, value: create(AnySchema, { typeUrl, value }) as Any },
  }));
  const listener = create(ListenerSchema, { name: "l", filterChains: [{ filters }] });
  const json = typedJson(allDescriptors(), LISTENER, toBinary(ListenerSchema, listener));
  assert.equal(json["@type"], LISTENER);
  return JSON.parse(JSON.stringify(json)).filterChains[0].filters.map((filter: object) =>
    Reflect.get(filter, "typedConfig"),
  );
}

const inner = create(TypedExtensionConfigSchema, {
  name: "inner",
  typedConfig: create(AnySchema, { typeUrl: "type.googleapis.com/no.such.Type", value: new Uint8Array([8, 1]) }),
});

test("typedJson() shows a packed message of an unknown type by its type and bytes, at any depth", () => {
  const unknown = { "@type": "type.googleapis.com/no.such.Type", value: "CAE=" };
  assert.deepEqual(
    shown(
      ["type.googleapis.com/no.such.Type", new Uint8Array([8, 1])],
      [EXTENSION, toBinary(TypedExtensionConfigSchema, inner)],
    ),
    [unknown, { "@type": EXTENSION, name: "inner", typedConfig: unknown }],
  );
});

test("typedJson() shows what cannot be read as bytes beside what can", () => {
  const good = toBinary(TypedExtensionConfigSchema, create(TypedExtensionConfigSchema, { name: "good" }));
  assert.deepEqual(shown([EXTENSION, new Uint8Array([255])], [EXTENSION, good]), [
    { "@type": `${EXTENSION} (unreadable)`, value: "/w==" },
    { "@type": EXTENSION, name: "good" },
  ]);
});

test("typedJson() shows a message of an unknown type as bytes", () => {
  assert.deepEqual(typedJson(allDescriptors(), "x/no.such.Type", new Uint8Array([1])), {
    "@type": "x/no.such.Type",
    value: "AQ==",
  });
});
