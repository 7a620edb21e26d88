/**
 * The building blocks of the user's API, as protobuf JSON has them, on zod. Set and unset stay apart after parsing, since
 * overlays need to know: there are no defaults here, whoever reads a field knows its default.
 */
import * as z from "zod";

/** A zod type known only by what it yields. */
export type Schema<T> = z.ZodType<T>;

/** What a schema yields. */
export type Infer<S> = S extends Schema<infer T> ? T : never;

/** A field that Istio's checks demand, so that those who read it need not ask whether it is there. */
export interface RequiredField<T> {
  readonly requiredSchema: Schema<T>;
}

/** Fields of a message by their camelCase names. */
export type Fields = Readonly<Record<string, Schema<unknown> | RequiredField<unknown>>>;

type ValueOf<F> = F extends RequiredField<infer T> ? T : F extends Schema<infer T> ? T : never;
type RequiredKeys<F extends Fields> = { [K in keyof F]: F[K] extends RequiredField<unknown> ? K : never }[keyof F];
type Flat<T> = { [K in keyof T]: T[K] };

/** The parsed form of a message: unset fields are undefined. */
export type Message<F extends Fields> = Flat<
  { readonly [K in RequiredKeys<F>]: ValueOf<F[K]> } & {
    readonly [K in Exclude<keyof F, RequiredKeys<F>>]?: ValueOf<F[K]> | undefined;
  }
>;

/** Names of fields of which at most one may be set. */
export interface OneOf<Name extends string = string> {
  readonly names: readonly Name[];
}

/** Declares that at most one of the named fields may be set. */
export function oneof<Name extends string>(...names: readonly Name[]): OneOf<Name> {
  return { names };
}

/** Marks a field without which the object is refused. */
export function required<T>(schema: Schema<T>): RequiredField<T> {
  return { requiredSchema: schema };
}

/** An object with known fields; `parse` reports the unknown ones and drops them. */
export function message<F extends Fields>(
  fields: F,
  ...groups: readonly OneOf<keyof F & string>[]
): Schema<Message<F>> {
  const shape = Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      "requiredSchema" in field ? field.requiredSchema : field.optional(),
    ]),
  );
  const object = z.object(shape);
  const checked =
    groups.length === 0 ? object : object.superRefine((value, context) => checkOneOfs(value, groups, context));
  const described = groups.length === 0 ? checked : checked.meta({ allOf: groups.flatMap(exclusions) });
  return described as z.ZodType as Schema<Message<F>>;
}

/** For JSON Schema: of each two names, not both. */
function exclusions({ names }: OneOf): readonly object[] {
  return names.flatMap((name, i) => names.slice(i + 1).map((other) => ({ not: { required: [name, other] } })));
}

/** A repeated field. */
export function list<T>(item: Schema<T>): Schema<readonly T[]> {
  return z.array(item);
}

/** A map with text keys. */
export function map<T>(value: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return z.record(z.string(), value);
}

function checkOneOfs(value: object, groups: readonly OneOf[], context: z.RefinementCtx): void {
  for (const { names } of groups) {
    const [first, second] = names.filter((name) => Object.hasOwn(value, name));
    if (first === undefined || second === undefined) continue;
    context.addIssue({
      code: "custom",
      path: [second],
      message: `cannot be set together with "${first}": only one of ${names.join(", ")} is allowed`,
    });
  }
}
