/**
 * Paths as proxies write them before they look at them. Policies are about the result: `/a/../admin` is `/admin`, and one
 * who could write it so that the policy sees something else than the application would go past it.
 */

/** `meshConfig.pathNormalization.normalization`. */
export type PathNormalization = "DEFAULT" | "NONE" | "BASE" | "MERGE_SLASHES" | "DECODE_AND_MERGE_SLASHES";

/** Other characters are no part of a request line. */
const IN_URLS = /^[\x21-\x7e]*$/;

/** The path as the proxy sees and forwards it; undefined when it answers with 400 instead. The query stays as it is. */
export function normalizedPath(raw: string, how: PathNormalization): string | undefined {
  if (!IN_URLS.test(raw) || raw.includes("#")) return undefined;
  const at = raw.indexOf("?");
  const [path, query] = at < 0 ? [raw, ""] : [raw.slice(0, at), raw.slice(at)];
  if (how === "NONE") return raw;
  const decoded = how === "DECODE_AND_MERGE_SLASHES" ? path.replace(/%2f/gi, "/").replace(/%5c/gi, "\\") : path;
  const resolved = withoutDots(decoded);
  if (resolved === undefined) return undefined;
  const merges = how === "MERGE_SLASHES" || how === "DECODE_AND_MERGE_SLASHES";
  return `${merges ? resolved.replace(/\/{2,}/g, "/") : resolved}${query}`;
}

/** Backslashes are slashes, characters are escaped if and only if they need it, and `.` and `..` are resolved. */
function withoutDots(path: string): string | undefined {
  if (!path.startsWith("/") || /%00/.test(path)) return undefined;
  const plain = path
    .replace(/%([0-9a-f]{2})/gi, (written, hex: string) => {
      const character = String.fromCharCode(Number.parseInt(hex, 16));
      return /[a-zA-Z0-9\-._~]/.test(character) ? character : written;
    })
    .replace(/["<>^`{|}]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("\\", "/");
  const kept: string[] = [];
  const segments = plain.slice(1).split("/");
  for (const [i, segment] of segments.entries()) {
    const isLast = i === segments.length - 1;
    if (segment === "..") kept.pop();
    if (segment !== "." && segment !== "..") kept.push(segment);
    else if (isLast) kept.push("");
  }
  return `/${kept.join("/")}`;
}
