/**
 * Encoded messages as proto3 JSON, whatever is packed in them. A packed message of a type that is not known, or that cannot be
 * read, is shown by its type and its bytes: `{"@type": "...", "value": "BASE64"}`.
 */
import {
  create,
  type DescMessage,
  fromBinary,
  type JsonObject,
  type JsonValue,
  type Message,
  type Registry,
  toBinary,
  toJson,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { type Any, AnySchema, BytesValueSchema } from "@bufbuild/protobuf/wkt";

/** The JSON of a message with its type as `@type`. Throws when the bytes are no such message. */
export function typedJson(registry: Registry, typeUrl: string, bytes: Uint8Array): JsonObject {
  const schema = registry.getMessage(nameOf(typeUrl));
  if (schema === undefined) return { "@type": typeUrl, value: Buffer.from(bytes).toString("base64") };
  const message = fromBinary(schema, bytes);
  return { "@type": typeUrl, ...messageJson(registry, schema, message) };
}

function messageJson(registry: Registry, schema: DescMessage, message: Message): JsonObject {
  try {
    return typesFirst(toJson(schema, message, { registry })) as JsonObject;
  } catch {
    // Something packed is unknown. Finding it costs more than most messages are worth, so it is looked for only now.
    const opaque = new OpaqueTypes(registry);
    opaque.hideUnknown(reflect(schema, message));
    return typesFirst(toJson(schema, message, { registry: opaque.registry })) as JsonObject;
  }
}

/** What a packed message is, before what it says. */
function typesFirst(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(typesFirst);
  const { "@type": type, ...fields } = value;
  const entries = Object.entries(fields).map(([name, inner]) => [name, typesFirst(inner)]);
  return { ...(type !== undefined && { "@type": type }), ...Object.fromEntries(entries) };
}

/** Packed messages that cannot be shown are packed once more, as bytes of a type that has the name of theirs. */
class OpaqueTypes {
  readonly registry: Registry;
  readonly #known: Registry;
  readonly #opaque = new Map<string, DescMessage>();

  constructor(known: Registry) {
    this.#known = known;
    this.registry = Object.create(known, {
      getMessage: { value: (name: string) => this.#opaque.get(name) ?? known.getMessage(name) },
    });
  }

  hideUnknown(message: ReflectMessage): void {
    if (message.desc.typeName === AnySchema.typeName) {
      this.#hide(message.message as Any);
      return;
    }
    for (const field of message.fields) {
      if (!message.isSet(field)) continue;
      if (field.fieldKind === "message") this.hideUnknown(message.get(field));
      else if (field.fieldKind === "list" && field.listKind === "message")
        for (const item of message.get(field)) this.hideUnknown(item as ReflectMessage);
      else if (field.fieldKind === "map" && field.mapKind === "message")
        for (const item of message.get(field).values()) this.hideUnknown(item as ReflectMessage);
    }
  }

  #hide(any: Any): void {
    if (any.typeUrl === "") return;
    const schema = this.#known.getMessage(nameOf(any.typeUrl));
    const inner = schema === undefined ? undefined : unpacked(schema, any);
    if (schema !== undefined && inner !== undefined) {
      this.hideUnknown(reflect(schema, inner));
      any.value = toBinary(schema, inner);
      return;
    }
    // One of a type that others of the same name can be read by needs a name of its own.
    if (schema !== undefined) any.typeUrl = `${any.typeUrl} (unreadable)`;
    const name = nameOf(any.typeUrl);
    this.#opaque.set(name, Object.create(BytesValueSchema, { typeName: { value: name } }) as DescMessage);
    any.value = toBinary(BytesValueSchema, create(BytesValueSchema, { value: any.value }));
  }
}

function unpacked(schema: DescMessage, { value }: Any): Message | undefined {
  try {
    return fromBinary(schema, value);
  } catch {
    return undefined; // It is shown as bytes.
  }
}

function nameOf(typeUrl: string): string {
  return typeUrl.slice(typeUrl.lastIndexOf("/") + 1);
}
