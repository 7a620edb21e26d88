/**
 * A config dump of Envoy as its admin port gives it (`config_dump?include_eds`), of whatever version: fields and types that are not
 * known here are carried along. Everything is read into proto3 JSON with lower camel names, whichever names the dump has.
 */
import { fromJson, type JsonObject, type JsonValue, type Registry, toJson } from "@bufbuild/protobuf";
import { errorText, MeshError } from "#lib/mesh-error.ts";

/** The sections of a dump. */
export interface ConfigDump {
  /** The section of that name, such as `ListenersConfigDump`; undefined where the dump has none. */
  find(name: string): JsonObject | undefined;
  /** As `find`; throws where there is none. */
  section(name: string): JsonObject;
}

const STRUCT = "type.googleapis.com/google.protobuf.Struct";

/** Reads the text of a dump. */
export function parseConfigDump(text: string, registry: Registry): ConfigDump {
  let dump: JsonValue;
  try {
    dump = JSON.parse(text);
  } catch (cause) {
    throw new MeshError("CONFIG_DUMP_INVALID", "Cannot read the config dump as JSON", { cause });
  }
  return configDumpOf(dump, registry);
}

/** As `parseConfigDump`, for a dump that is data already. Sections are read when they are asked for. */
export function configDumpOf(dump: JsonValue, registry: Registry): ConfigDump {
  const configs = isObject(dump) ? dump.configs : undefined;
  if (!Array.isArray(configs))
    throw new MeshError("CONFIG_DUMP_INVALID", `Cannot read this as a config dump of Envoy: it has no "configs"`);
  const sections = Map.groupBy(configs.filter(isObject), (section) => typeName(section).split(".").at(-1) ?? "");
  const find = (name: string) =>
    sections
      .get(name)
      ?.map((section) => normalised(section, registry))
      .reduce(joined);
  return {
    find,
    section: (name) => {
      const found = find(name);
      if (found === undefined) throw new MeshError("CONFIG_DUMP_INVALID", `The config dump has no ${name}`);
      return found;
    },
  };
}

/** Envoy gives one section for each way in which extensions are fetched. */
function joined(one: JsonObject, other: JsonObject): JsonObject {
  const lists = Object.entries(one).map(([name, value]) => {
    const more = other[name];
    return [name, Array.isArray(value) && Array.isArray(more) ? [...value, ...more] : value];
  });
  return { ...other, ...Object.fromEntries(lists) };
}

/** The message of the object's `@type`, in the names that JSON has by default. */
export function normalised(given: JsonObject, registry: Registry): JsonObject {
  const name = typeName(given);
  const schema = registry.getMessage(name);
  if (schema === undefined)
    throw new MeshError("CONFIG_DUMP_INVALID", `The config dump has a "${name}", which is unknown`);
  const { "@type": _, ...fields } = given;
  try {
    const message = fromJson(schema, hidden(fields, registry), { registry, ignoreUnknownFields: true });
    return revealed(toJson(schema, message, { registry })) as JsonObject;
  } catch (thrown) {
    throw new MeshError("CONFIG_DUMP_INVALID", `Cannot read ${name} of the config dump: ${errorText(thrown)}`);
  }
}

/** Packed messages of unknown types travel as free-form data. */
function hidden(value: JsonValue, registry: Registry): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => hidden(item, registry));
  const fields = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, hidden(inner, registry)]));
  const name = typeName(value);
  return name === "" || registry.getMessage(name) !== undefined ? fields : { "@type": STRUCT, value };
}

function revealed(value: JsonValue): JsonValue {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(revealed);
  const { "@type": type, ...fields } = value;
  if (type === STRUCT && isObject(fields.value) && "@type" in fields.value) return fields.value;
  const inner = Object.entries(fields).map(([key, field]) => [key, revealed(field)]);
  return { ...(type !== undefined && { "@type": type }), ...Object.fromEntries(inner) };
}

function typeName(value: JsonObject): string {
  const { "@type": type } = value;
  return typeof type === "string" ? type.slice(type.lastIndexOf("/") + 1) : "";
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
