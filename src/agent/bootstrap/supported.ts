/**
 * The last step: what the Envoy at hand lacks is removed, so that a bootstrap meant for Istio's build also starts upstream's.
 * Envoy itself is asked, and only about parts that some builds are known to lack.
 */
import type { Bootstrap } from "./bootstrap.ts";
import type { KnownExtensions } from "./extension-cache.ts";
import type { Json } from "./input.ts";

/** Extensions of the bootstrap that upstream Envoy lacks, or had once. */
const NOT_IN_EVERY_BUILD: ReadonlySet<string> = new Set(["metadata_discovery", "envoy.tracers.lightstep"]);
const MISSING = /Didn't find a registered implementation for '([^']+)'/;

export interface SupportedBootstrap {
  readonly bootstrap: Bootstrap;
  /** Names of the extensions that were removed. */
  readonly removed: readonly string[];
  /** What is known of this build now. */
  readonly known: KnownExtensions;
}

/** `validate` gives what Envoy says against a bootstrap; nothing when it accepts it. It is asked only about what is not known. */
export async function supportedBootstrap(
  wanted: Bootstrap,
  validate: (bootstrap: Bootstrap) => Promise<string>,
  before: KnownExtensions = {},
): Promise<SupportedBootstrap> {
  const known: Record<string, boolean> = { ...before };
  const lacking = doubtful(wanted).filter((name) => known[name] === false);
  let bootstrap = lacking.reduce(withoutExtension, wanted);
  while (doubtful(bootstrap).some((name) => known[name] === undefined)) {
    const answer = await validate(bootstrap);
    const missing = MISSING.exec(answer)?.[1];
    if (missing === undefined || !extensionsOf(bootstrap).includes(missing)) {
      if (answer === "") for (const name of doubtful(bootstrap)) known[name] = true;
      break;
    }
    known[missing] = false;
    bootstrap = withoutExtension(bootstrap, missing);
  }
  return { bootstrap, removed: extensionsOf(wanted).filter((name) => !extensionsOf(bootstrap).includes(name)), known };
}

/** Extensions of a bootstrap that some builds lack. */
export function doubtful(bootstrap: Bootstrap): readonly string[] {
  return extensionsOf(bootstrap).filter((name) => NOT_IN_EVERY_BUILD.has(name));
}

function extensionsOf({ bootstrap_extensions: extensions, tracing }: Bootstrap): string[] {
  return [...(Array.isArray(extensions) ? extensions.map(nameOf) : []), nameOf(tracerOf(tracing))];
}

function withoutExtension(bootstrap: Bootstrap, name: string): Bootstrap {
  const { bootstrap_extensions: extensions, tracing, ...rest } = bootstrap;
  const kept = Array.isArray(extensions) ? extensions.filter((extension) => nameOf(extension) !== name) : [];
  return {
    ...rest,
    ...(kept.length === 0 ? {} : { bootstrap_extensions: kept }),
    ...(tracing === undefined || nameOf(tracerOf(tracing)) === name ? {} : { tracing }),
  };
}

function tracerOf(tracing: Json | undefined): Json | undefined {
  return isObject(tracing) ? tracing.http : undefined;
}

function nameOf(extension: Json | undefined): string {
  return isObject(extension) && typeof extension.name === "string" ? extension.name : "";
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && !Array.isArray(value);
}
