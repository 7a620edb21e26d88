/** Machine-readable output of a command. */
import { dump } from "js-yaml";

export const OUTPUT_FORMATS = ["json", "yaml"] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

/** The value as a text that ends with a line end. */
export function formatOutput(value: unknown, format: OutputFormat): string {
  return format === "json" ? `${JSON.stringify(value, undefined, 2)}\n` : dump(value, { noRefs: true });
}
