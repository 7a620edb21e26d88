/** How policies compare texts: `*`, `*suffix`, `prefix*`, or the whole. */

/** Whether a text fits. `*` is any text but the empty one. */
export function fitsText(pattern: string, text: string, ignoreCase = false): boolean {
  if (ignoreCase) return fitsText(pattern.toLowerCase(), text.toLowerCase());
  if (pattern === "*") return text !== "";
  if (pattern.startsWith("*")) return text.endsWith(pattern.slice(1));
  return pattern.endsWith("*") ? text.startsWith(pattern.slice(0, -1)) : text === pattern;
}

/** A text as a regular expression that fits it alone. */
export function quoted(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$/-]/g, "\\$&");
}

/** Segments of a path may have these characters where a template stands for them. */
const SEGMENT = "[a-zA-Z0-9\\-._~%!$&'()*+,;:@=]";

/** Whether a path fits a template: `{*}` is one segment, `{**}` any number of them. */
export function fitsTemplate(template: string, path: string): boolean {
  const pattern = template
    .split(/(\{\*\*?\})/)
    .map((part) => (part === "{*}" ? `${SEGMENT}+` : part === "{**}" ? `(?:${SEGMENT}|/)*` : quoted(part)))
    .join("");
  return new RegExp(`^${pattern}$`).test(path);
}
