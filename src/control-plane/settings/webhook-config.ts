/** What flags and environment say about the webhooks. */
import type { NativeSidecarMode } from "#inject/injector/native-sidecars.ts";
import type { Env } from "#lib/env/env-table.ts";
import type { ListenAddress } from "#lib/net/listen-address.ts";
import type { DiscoveryValues } from "./environment.ts";

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

/** The settings; undefined without an address. `given` is the whole environment, which templates may read. */
export function webhookConfig(
  env: DiscoveryValues,
  address: ListenAddress | undefined,
  given: Env,
): WebhookConfig | undefined {
  if (address === undefined) return undefined;
  return {
    address,
    folder: "./var/lib/istio/inject",
    injects: env.INJECT_ENABLED,
    nativeSidecars: env.ENABLE_NATIVE_SIDECARS,
    compliancePolicy: env.COMPLIANCE_POLICY,
    isOpenShift: env.PLATFORM === "openshift",
    environment: Object.fromEntries(Object.entries(given).map(([name, value = ""]) => [name, value])),
  };
}
