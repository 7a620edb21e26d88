/** What flags and environment say about the webhooks. */
import type { NativeSidecarMode } from "#inject/injector/native-sidecars.ts";
import type { Env, EnvReader } from "#lib/env/env-reader.ts";
import type { ListenAddress } from "#lib/net/listen-address.ts";

export interface WebhookConfig {
  readonly address: ListenAddress;
  /** `config` and `values` of injection, where there is no cluster. */
  readonly folder: string;
  /** Else pods stay as they are. */
  readonly injects: boolean;
  readonly nativeSidecars: NativeSidecarMode;
  readonly compliancePolicy: string;
  readonly isOpenShift: boolean;
  /** What templates may ask for by `env`. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Reads what the environment says. */
export function webhookConfig(
  read: EnvReader,
  address: ListenAddress | undefined,
  env: Env,
): WebhookConfig | undefined {
  const mode = read.string("ENABLE_NATIVE_SIDECARS", "auto").toLowerCase();
  if (!isMode(mode)) read.problems.push(`ENABLE_NATIVE_SIDECARS: "${mode}" is not true, false or auto`);
  if (address === undefined) return undefined;
  return {
    address,
    folder: "./var/lib/istio/inject",
    injects: read.boolean("INJECT_ENABLED", true),
    nativeSidecars: isMode(mode) ? mode : "auto",
    compliancePolicy: read.string("COMPLIANCE_POLICY", ""),
    isOpenShift: read.string("PLATFORM", "") === "openshift",
    environment: Object.fromEntries(Object.entries(env).map(([name, value = ""]) => [name, value])),
  };
}

function isMode(text: string): text is NativeSidecarMode {
  return text === "true" || text === "false" || text === "auto";
}
