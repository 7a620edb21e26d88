import { hash } from "node:crypto";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { readMessage, readString } from "#lib/wire/read.ts";
import { resourceFrame, resourceHead } from "#protocol/messages/delta-response.ts";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import type { Resource } from "#protocol/resource.ts";
import { recipeBytes } from "#translate/patches/recipe-tree.ts";
import type { Recipe } from "#translate/recipes/recipe.ts";
import { type JoinedBefore, type JoinedParts, joinedLength, writeParts } from "./joined-parts.ts";

/** A resource ready to be copied into responses. */
export interface BuiltResource extends Resource {
  /** Unlike that of any other resource, so that lists of resources can be compared by it. */
  readonly id: number;
  /** An entry of a delta response; `value` is its end. */
  readonly frame: Uint8Array;
  /** What it was made from. */
  readonly recipe: Recipe;
  /** Made when first asked for: hardly any is. */
  readonly fallback: () => this | undefined;
}

let ids = 0;

/** Frames the bytes of a recipe. Their hash is the version, so that replicas and restarts agree on it. */
export function builtResource(typeUrl: string, recipe: Recipe, bytes: Uint8Array): BuiltResource {
  const { name } = recipe;
  const version = versionOf(bytes);
  const frame = resourceFrame(typeUrl, { name, version, value: bytes });
  return framed(typeUrl, recipe, { version, frame, length: bytes.length });
}

/** The same for a recipe with parts: its version is the hash of the rest and of the hashes of all parts. */
export function joinedResource(
  typeUrl: string,
  recipe: Recipe,
  { own, joined, before }: { readonly own: Uint8Array; readonly joined: JoinedParts; readonly before?: JoinedBefore },
): BuiltResource {
  const { name } = recipe;
  const version = versionOf(Buffer.concat([own, joined.hashes]));
  const length = own.length + joinedLength(joined);
  const head = resourceHead(typeUrl, { name, version, length });
  const frame = new Uint8Array(head.length + length);
  frame.set(head);
  frame.set(own, head.length);
  writeParts(frame, head.length + own.length, joined, before);
  return framed(typeUrl, recipe, { version, frame, length });
}

function versionOf(bytes: Uint8Array): string {
  return hash("sha256", bytes, "base64url").slice(0, 16);
}

interface Framed {
  readonly version: string;
  readonly frame: Uint8Array;
  /** Of the message, which is the end of the frame. */
  readonly length: number;
}

function framed(typeUrl: string, recipe: Recipe, { version, frame, length }: Framed): BuiltResource {
  const value = frame.subarray(frame.length - length);
  const { name } = recipe;
  let fallback: BuiltResource | undefined;
  return {
    id: ids++,
    name,
    version,
    frame,
    value,
    awaits: typeUrl === CLUSTER_TYPE ? awaitedEndpoints(value) : undefined,
    recipe,
    fallback: () => {
      const { unpatched } = recipe;
      if (unpatched !== undefined) fallback ??= builtResource(typeUrl, { ...unpatched, name }, recipeBytes(unpatched));
      return fallback;
    },
  };
}

/** The objects of the user's configuration that a resource was made from, as `kind/namespace/name`. */
export function originsOf(recipe: Recipe): readonly string[] {
  const values = Object.values(recipe.input).flatMap((value) => (Array.isArray(value) ? value : [value]));
  const own = [...values.filter(isConfigObject).map(objectKey), ...(recipe.origins ?? [])];
  return [...new Set([...own, ...(recipe.parts?.recipes.flatMap(originsOf) ?? [])])];
}

function isConfigObject(value: unknown): value is ConfigObject {
  return typeof value === "object" && value !== null && "kind" in value && "metadata" in value && "spec" in value;
}

/** `Cluster.type` 3 is EDS; the name asked for is `eds_cluster_config.service_name`, or else that of the cluster. */
function awaitedEndpoints(cluster: Uint8Array): string | undefined {
  let name = "";
  let serviceName = "";
  let type = 0;
  readMessage(cluster, {
    varint: {
      2: (value) => {
        type = value;
      },
    },
    bytes: {
      1: (value) => {
        name = readString(value);
      },
      3: (config) =>
        readMessage(config, {
          bytes: {
            2: (value) => {
              serviceName = readString(value);
            },
          },
        }),
    },
  });
  return type === 3 ? serviceName || name : undefined;
}
