/**
 * The configuration of a Wasm filter, written as JSON inside a TypedStruct (as an EnvoyFilter would have it), in
 * protobuf. One table with the few messages that it may consist of: generated code would cost every pod megabytes.
 */
import { parseDuration } from "@mizzen/go-text/duration";
import { MeshError } from "#lib/mesh-error.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { isObject, type Json, type JsonObject, writeStruct } from "./struct.ts";

/** Writes one field; throws when the value does not fit. */
type WriteField = (writer: MessageWriter, field: number, input: { readonly value: Json; readonly at: string }) => void;
/** Fields by their name in the .proto file. */
type Fields = Readonly<Record<string, readonly [field: number, write: WriteField]>>;

const text: WriteField = (writer, field, { value, at }) => {
  if (typeof value !== "string") throw wrong(at, "must be a string");
  writer.string(field, value);
};
const bytes: WriteField = (writer, field, { value, at }) => {
  if (typeof value !== "string") throw wrong(at, "must be base64");
  writer.bytes(field, Buffer.from(value, "base64"));
};
/** As a member of a oneof, where an empty string is set all the same. */
const chosenText: WriteField = (writer, field, { value, at }) => {
  if (typeof value !== "string") throw wrong(at, "must be a string");
  writer.bytes(field, Buffer.from(value));
};
const flag: WriteField = (writer, field, { value, at }) => {
  if (typeof value !== "boolean") throw wrong(at, "must be true or false");
  writer.varint(field, value ? 1 : 0);
};
const integer: WriteField = (writer, field, { value, at }) => {
  const number = typeof value === "string" ? Number(value) : value;
  if (typeof number !== "number" || !Number.isSafeInteger(number)) throw wrong(at, "must be a whole number");
  writer.varint(field, number);
};
const duration: WriteField = (writer, field, { value, at }) => {
  const ms = typeof value === "string" && /^-?[\d.]+s$/.test(value) ? parseDuration(value) : undefined;
  if (ms === undefined) throw wrong(at, 'must be a duration such as "5s"');
  const seconds = Math.trunc(ms / 1000);
  const nanos = Math.round((ms - seconds * 1000) * 1e6);
  writer.bytes(field, new MessageWriter().varint(1, seconds).varint(2, nanos).finish());
};
const wrapped =
  (write: WriteField): WriteField =>
  (writer, field, input) => {
    const inner = new MessageWriter();
    write(inner, 1, input);
    writer.bytes(field, inner.finish());
  };
const enumeration =
  (...names: readonly string[]): WriteField =>
  (writer, field, { value, at }) => {
    const number = typeof value === "number" ? value : names.indexOf(String(value));
    if (number < 0) throw wrong(at, `must be one of ${names.join(", ")}`);
    writer.varint(field, number);
  };
const list =
  (write: WriteField): WriteField =>
  (writer, field, { value, at }) => {
    if (!Array.isArray(value)) throw wrong(at, "must be a list");
    for (const [index, item] of value.entries()) write(writer, field, { value: item, at: `${at}[${index}]` });
  };
const map =
  (write: WriteField): WriteField =>
  (writer, field, { value, at }) => {
    if (!isObject(value)) throw wrong(at, "must be an object");
    for (const [key, item] of Object.entries(value)) {
      const entry = new MessageWriter().string(1, key);
      write(entry, 2, { value: item, at: `${at}.${key}` });
      writer.bytes(field, entry.finish());
    }
  };
const message =
  (fields: Fields): WriteField =>
  (writer, field, { value, at }) => {
    writer.bytes(field, writeFields(fields, value, at));
  };

/** `google.protobuf.Any` in JSON, of the types in which plugins get their configuration. */
const any: WriteField = (writer, field, { value, at }) => {
  const { "@type": typeUrl, value: inner = null, ...rest } = isObject(value) ? value : {};
  if (typeof typeUrl !== "string" || Object.keys(rest).length > 0) throw wrong(at, 'must have "@type" and "value"');
  const content = new MessageWriter();
  const at2 = `${at}.value`;
  if (typeUrl === "type.googleapis.com/google.protobuf.StringValue") text(content, 1, { value: inner, at: at2 });
  else if (typeUrl === "type.googleapis.com/google.protobuf.BytesValue") bytes(content, 1, { value: inner, at: at2 });
  else if (typeUrl !== "type.googleapis.com/google.protobuf.Struct") throw wrong(at, `cannot be of type ${typeUrl}`);
  else if (!isObject(inner)) throw wrong(at2, "must be an object");
  const encoded = isObject(inner) ? writeStruct(inner) : content.finish();
  writer.bytes(field, new MessageWriter().string(1, typeUrl).bytes(2, encoded).finish());
};

const backoff = message({ base_interval: [1, duration], max_interval: [2, duration] });
const dataSource = message({
  filename: [1, text],
  inline_bytes: [2, bytes],
  inline_string: [3, chosenText],
  environment_variable: [4, text],
  watched_directory: [5, message({ path: [1, text] })],
});
const namedExtension = list(message({ name: [1, text], typed_config: [2, any] }));
const remote = message({
  http_uri: [1, message({ uri: [1, text], cluster: [2, text], timeout: [3, duration] })],
  sha256: [2, text],
  retry_policy: [
    3,
    message({
      retry_back_off: [1, backoff],
      num_retries: [2, wrapped(integer)],
      retry_on: [3, text],
      retry_priority: [4, message({ name: [1, text], typed_config: [2, any] })],
      retry_host_predicate: [5, namedExtension],
      host_selection_retry_max_attempts: [6, integer],
    }),
  ],
});
const vmConfig = message({
  vm_id: [1, text],
  runtime: [2, text],
  code: [3, message({ local: [1, dataSource], remote: [2, remote] })],
  configuration: [4, any],
  allow_precompiled: [5, flag],
  nack_on_code_cache_miss: [6, flag],
  environment_variables: [7, message({ host_env_keys: [1, list(text)], key_values: [2, map(text)] })],
});
const WASM_FIELDS: Fields = {
  config: [
    1,
    message({
      name: [1, text],
      root_id: [2, text],
      vm_config: [3, vmConfig],
      configuration: [4, any],
      fail_open: [5, flag],
      capability_restriction_config: [6, message({ allowed_capabilities: [1, map(message({}))] })],
      failure_policy: [7, enumeration("UNSPECIFIED", "FAIL_RELOAD", "FAIL_CLOSED", "FAIL_OPEN")],
      reload_config: [8, message({ backoff: [1, backoff] })],
      allow_on_headers_stop_iteration: [9, wrapped(flag)],
    }),
  ],
};

/** `envoy.extensions.filters.{http,network}.wasm.v3.Wasm`, which have the same fields. Throws on what does not fit. */
export function wasmFromJson(json: JsonObject): Uint8Array {
  return writeFields(WASM_FIELDS, json, "");
}

function writeFields(fields: Fields, value: Json, at: string): Uint8Array {
  if (!isObject(value)) throw wrong(at, "must be an object");
  const writer = new MessageWriter();
  for (const [key, item] of Object.entries(value)) {
    const found = Object.hasOwn(fields, snakeCase(key)) ? fields[snakeCase(key)] : undefined;
    const where = at === "" ? key : `${at}.${key}`;
    if (found === undefined) throw wrong(where, "is not known");
    if (item !== null) found[1](writer, found[0], { value: item, at: where });
  }
  return writer.finish();
}

/** Both spellings of a field are allowed. */
function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function wrong(at: string, message: string): MeshError {
  return new MeshError("WASM_CONFIG_INVALID", `Wasm configuration: ${at} ${message}`);
}
