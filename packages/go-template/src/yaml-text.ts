/** Data as the YAML that Kubernetes' Go libraries write: keys sorted, lists at the indent of their key. */
import { dump } from "js-yaml";

/** With a line end. */
export function yamlText(data: unknown): string {
  return dump(data, { sortKeys: true, lineWidth: -1, noRefs: true, seqNoIndent: true, quoteStyle: "double" });
}
