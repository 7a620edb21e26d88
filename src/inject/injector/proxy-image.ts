/** The image of the proxy: hub, name, and a tag that may end in a variant. */
import { IMAGE_TYPE } from "../pod/names.ts";
import type { InjectionValues } from "./values.ts";

const KNOWN_VARIANTS: readonly string[] = ["distroless", "debug"];

/** All that may name an image. */
export interface ProxyImageInput {
  readonly values: Pick<InjectionValues, "hub" | "tag" | "variant" | "proxyImage">;
  /** `image.imageType` of the proxy configuration; undefined when there is no `image`. */
  readonly imageType: string | undefined;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The annotation counts most, then the proxy configuration, then the values. */
export function proxyImage({ values, imageType, annotations }: ProxyImageInput): string {
  const variant = annotations[IMAGE_TYPE] ?? imageType ?? values.variant;
  return `${values.hub}/${values.proxyImage}:${tagOf(values.tag, variant)}`;
}

/** A variant takes the place of one that the tag has; `default` is the one without a name. */
function tagOf(tag: string, variant: string): string {
  if (variant === "") return tag;
  const known = KNOWN_VARIANTS.find((one) => tag.endsWith(`-${one}`));
  const bare = known === undefined ? tag : tag.slice(0, -known.length - 1);
  return variant === "default" ? bare : `${bare}-${variant}`;
}
