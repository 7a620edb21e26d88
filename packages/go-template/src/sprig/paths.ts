/** Sprig's functions on paths and URLs. */

import { withoutTrailing } from "@mizzen/go-text/trim";
import { textArgument as text } from "../functions.ts";
import { CallError } from "../template-error.ts";
import { type Callable, isMap, itemOf, typeName, type Value } from "../value.ts";

const PATHS: Readonly<Record<string, Callable>> = {
  base: (path) => withoutTrailing(text(path), "/").split("/").at(-1) || (text(path) === "" ? "." : "/"),
  dir: (path) => cleaned(directoryOf(text(path))),
  clean: (path) => cleaned(text(path)),
  ext: (path) => extensionOf(text(path)),
  isAbs: (path) => text(path).startsWith("/"),
};

/** Those of the operating system's paths are the same where paths have slashes. */
export const PATH_FUNCTIONS: Readonly<Record<string, Callable>> = {
  ...PATHS,
  osBase: (path) => PATHS.base?.(path),
  osDir: (path) => PATHS.dir?.(path),
  osClean: (path) => PATHS.clean?.(path),
  osExt: (path) => PATHS.ext?.(path),
  osIsAbs: (path) => PATHS.isAbs?.(path),
  urlParse: (url) => parsedUrl(text(url)),
  urlJoin: joinedUrl,
};

/** Up to the last slash. */
export function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

function extensionOf(path: string): string {
  const dot = path.lastIndexOf(".");
  return dot > path.lastIndexOf("/") ? path.slice(dot) : "";
}

/** The shortest path of the same meaning. */
function cleaned(path: string): string {
  const isRooted = path.startsWith("/");
  const kept: string[] = [];
  for (const part of path.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") kept.push(part);
    else if (kept.length > 0 && kept.at(-1) !== "..") kept.pop();
    else if (!isRooted) kept.push(part);
  }
  return (isRooted ? "/" : "") + kept.join("/") || ".";
}

const URL_PARTS =
  /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/(?:([^/?#@]*)@)?([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s;

function parsedUrl(url: string): Value {
  const [, scheme = "", userinfo = "", host = "", rest = "", query = "", fragment = ""] = URL_PARTS.exec(url) ?? [];
  const isOpaque = scheme !== "" && host === "" && rest !== "" && !rest.startsWith("/") && !url.includes("://");
  return {
    scheme: scheme.toLowerCase(),
    host,
    hostname: host.replace(/:\d*$/, "").replace(/^\[(.*)\]$/, "$1"),
    path: isOpaque ? "" : unescaped(rest, url),
    query,
    opaque: isOpaque ? rest : "",
    fragment: unescaped(fragment, url),
    userinfo,
  };
}

function unescaped(part: string, url: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new CallError(`unable to parse url: parse "${url}": invalid URL escape`);
  }
}

function joinedUrl(map: Value): string {
  const part = (name: string): string => {
    if (!isMap(map))
      throw new CallError(`wrong type for value; expected map[string]interface {}; got ${typeName(map)}`);
    const value = itemOf(map, name) ?? "";
    if (typeof value === "string") return value;
    throw new CallError(`unable to parse ${name} key, must be of type string, but ${typeName(value)} found`);
  };
  const [scheme, host, user] = [part("scheme"), part("host"), part("userinfo")];
  const [path, query, fragment] = [encodeURI(part("path")), part("query"), encodeURI(part("fragment"))];
  const authority = `${user === "" ? "" : `${user}@`}${host}`;
  const way = authority !== "" && path !== "" && !path.startsWith("/") ? `/${path}` : path;
  const body = part("opaque") || `${authority === "" ? "" : `//${authority}`}${way}`;
  return `${scheme === "" ? "" : `${scheme}:`}${body}${query === "" ? "" : `?${query}`}${fragment === "" ? "" : `#${fragment}`}`;
}
