/** How policies compare texts: `*`, `*suffix`, `prefix*`, or the whole. */
import { quote } from "#config/kinds/authorization-policy/authorization-values.ts";

/** Whether a text fits. `*` is any text but the empty one. */
export function fitsText(pattern: string, text: string, ignoreCase = false): boolean {
  if (ignoreCase) return fitsText(pattern.toLowerCase(), text.toLowerCase());
  if (pattern === "*") return text !== "";
  if (pattern.startsWith("*")) return text.endsWith(pattern.slice(1));
  return pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}

/** Whether a regular expression fits a text from end to end, as in Envoy. */
export function isWhole(pattern: string, text: string): boolean {
  return new RegExp(`^(?:${pattern})$`).test(text);
}

/** Segments of a path may have these characters where a template stands for them. */
const SEGMENT = "[a-zA-Z0-9\\-._~%!$&'()*+,;:@=]";

/** Whether a path fits a template: `{*}` is one segment, `{**}` any number of them. */
export function fitsTemplate(template: string, path: string): boolean {
  const pattern = template
    .split(/(\{\*\*?\})/)
    .map((part) => (part === "{*}" ? `${SEGMENT}+` : part === "{**}" ? `(?:${SEGMENT}|/)*` : quote(part)))
    .join("");
  return isWhole(pattern, path);
}
