import type { AgentContext } from "./agent-context.ts";
import type { ControlPlaneServer } from "./control-plane.ts";
import { checkCaProvider } from "./sds/ca/ca-provider.ts";
import { type CertificatePlan, certificatePlan } from "./sds/certificate-plan.ts";
import { checkKeyOptions } from "./sds/key.ts";
import { caServer } from "./trust.ts";

/** Where the workload's certificate comes from. */
export interface IdentityPlan extends Pick<CertificatePlan, "mounted"> {
  /** How to reach the CA; undefined when it has nothing to add. */
  readonly ca: ControlPlaneServer | undefined;
}

/** Rejects when the configuration leads to no certificate: that is told before Envoy is started. */
export async function planIdentity(context: AgentContext): Promise<IdentityPlan> {
  const { config, place, log, servedByOthers } = context;
  const { mounted, askCa } = certificatePlan({ config: config.identity, place, servedByOthers, log });
  if (askCa) {
    checkCaProvider(config.identity);
    checkKeyOptions(config.identity.key);
  }
  return { mounted, ca: askCa ? await caServer(context) : undefined };
}
