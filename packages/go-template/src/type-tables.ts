/**
 * Tables of types as text: a name at the start of a line, and below it, indented, what its fields are, separated by `;`.
 */
export function* typesIn<Field>(table: string, readField: (text: string) => Field): Generator<[string, Field[]]> {
  for (const [, name = "", body = ""] of table.matchAll(/^(\w+)\n((?: {2}.*\n)*)/gm)) {
    const fields = body.replace(/\s+/g, " ").split(";");
    yield [name, fields.flatMap((field) => (field.trim() === "" ? [] : [readField(field.trim())]))];
  }
}
