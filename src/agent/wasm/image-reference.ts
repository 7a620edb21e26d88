import { MeshError } from "#lib/mesh-error.ts";

/** Where an image is: `registry/repository:tag` or `registry/repository@digest`. */
export interface ImageReference {
  /** Host, with a port where there is one. */
  readonly registry: string;
  readonly repository: string;
  /** A tag, or a digest such as `sha256:0123...`. */
  readonly identifier: string;
  readonly byDigest: boolean;
}

const DEFAULT_REGISTRY = "index.docker.io";
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const TAG = /^[\w][\w.-]{0,127}$/;
const REGISTRY = /^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:\d+)?$/;
const REPOSITORY = /^[a-z0-9][a-z0-9._/-]*$/;

/** Reads a reference as Docker does: what has no registry is in Docker's own, what has no tag is `latest`. */
export function parseImageReference(text: string): ImageReference {
  const at = text.indexOf("@");
  const digest = at < 0 ? undefined : text.slice(at + 1);
  if (digest !== undefined && !DIGEST.test(digest)) throw invalid(text, `"${digest}" is no digest of kind sha256`);
  const name = at < 0 ? text : text.slice(0, at);
  const colon = name.lastIndexOf(":");
  const hasTag = colon > name.lastIndexOf("/");
  const tag = hasTag ? name.slice(colon + 1) : "latest";
  if (!TAG.test(tag)) throw invalid(text, `"${tag}" is no tag`);
  const path = hasTag ? name.slice(0, colon) : name;
  const slash = path.indexOf("/");
  const first = path.slice(0, Math.max(0, slash));
  const hasRegistry = /[.:]/.test(first) || first === "localhost";
  const registry = hasRegistry ? first : DEFAULT_REGISTRY;
  const rest = hasRegistry ? path.slice(slash + 1) : path;
  const repository = registry === DEFAULT_REGISTRY && !rest.includes("/") ? `library/${rest}` : rest;
  if (!REGISTRY.test(registry)) throw invalid(text, `"${registry}" is no host`);
  if (!REPOSITORY.test(rest)) throw invalid(text, `"${rest}" is no repository`);
  return {
    registry: registry === "docker.io" ? DEFAULT_REGISTRY : registry,
    repository,
    identifier: digest ?? tag,
    byDigest: digest !== undefined,
  };
}

function invalid(text: string, reason: string): MeshError {
  return new MeshError("WASM_IMAGE_INVALID", `"${text}" is no reference of an image: ${reason}`);
}
