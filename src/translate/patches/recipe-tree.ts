/**
 * A recipe inside the input of another. Inputs are compared field by field, so a recipe with all its parts is laid out as one
 * flat list, in which everything it is made from stands side by side.
 */
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { Recipe } from "../recipes/recipe.ts";

/** A recipe and its parts, flat. */
export type FlatRecipe = readonly unknown[];

const LIST = Symbol("list");

/** Lays a recipe out: builder, name, number of fields, then each field's name and value, number of parts, the parts. */
export function flatRecipe({ build, name, input, parts }: Recipe): FlatRecipe {
  const fields = Object.entries(input).flatMap(([key, value]): unknown[] =>
    Array.isArray(value) ? [key, LIST, value.length, ...value] : [key, value],
  );
  const inner = parts?.recipes.flatMap(flatRecipe) ?? [];
  const count = Object.keys(input).length;
  return [build, name, count, ...fields, parts?.field ?? 0, parts?.recipes.length ?? 0, ...inner];
}

/** The bytes of the message that the recipe makes, with its parts. */
export function flatBytes(flat: FlatRecipe): Uint8Array {
  return recipeBytes(readRecipe(flat.values()));
}

/** `kind/namespace/name` of what the recipe and its parts come from beyond their inputs. */
export function originsOf({ origins = [], parts }: Recipe): readonly string[] {
  return [...origins, ...(parts?.recipes.flatMap(originsOf) ?? [])];
}

/** The bytes of a message with its parts. */
export function recipeBytes({ build, input, parts }: Recipe): Uint8Array {
  const writer = new BinaryWriter().raw(build(input));
  for (const part of parts?.recipes ?? [])
    writer.tag(parts?.field ?? 0, WireType.LengthDelimited).bytes(recipeBytes(part));
  return writer.finish();
}

/** The same with the fields in the order of their numbers, parts among them: as a message that was made whole has them. */
export function orderedBytes({ build, input, parts }: Recipe): Uint8Array {
  const joined = (parts?.recipes ?? []).map((part) => ({
    number: parts?.field ?? 0,
    bytes: new BinaryWriter()
      .tag(parts?.field ?? 0, WireType.LengthDelimited)
      .bytes(orderedBytes(part))
      .finish(),
  }));
  const fields = [...fieldsOf(build(input)), ...joined].sort((a, b) => a.number - b.number);
  return Buffer.concat(fields.map(({ bytes }) => bytes));
}

/** The fields of a message as they stand there, each with its number. */
function fieldsOf(message: Uint8Array): readonly { readonly number: number; readonly bytes: Uint8Array }[] {
  const reader = new BinaryReader(message);
  const fields: { number: number; bytes: Uint8Array }[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [number, wireType] = reader.tag();
    reader.skip(wireType, number);
    fields.push({ number, bytes: message.subarray(start, reader.pos) });
  }
  return fields;
}

function readRecipe(values: Iterator<unknown>): Recipe {
  const next = () => values.next().value;
  const build = next() as Recipe["build"];
  const name = next() as string;
  const input = Object.fromEntries(times(next() as number, () => [next() as string, readValue(next)]));
  const field = next() as number;
  const recipes = times(next() as number, () => readRecipe(values));
  return { build, name, input, parts: { field, recipes } };
}

function readValue(next: () => unknown): unknown {
  const value = next();
  return value === LIST ? times(next() as number, next) : value;
}

function times<T>(count: number, make: () => T): T[] {
  const made: T[] = [];
  for (let i = 0; i < count; i++) made.push(make());
  return made;
}
