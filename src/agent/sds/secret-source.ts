import { certificateSecret, type EncodedSecret, rootsSecret } from "./messages.ts";
import type { WorkloadIdentity } from "./workload-identity.ts";

/** Where secrets of some names come from. */
export interface SecretSource {
  /** Whether secrets of this name come from here. */
  owns(name: string): boolean;
  /** Calls back with the secret as soon as it is there, and again each time it changes. Returns the way to stop. */
  watch(name: string, onSecret: (secret: EncodedSecret) => void): () => void;
}

/** The workload's certificate. */
export const WORKLOAD_SECRET = "default";
/** Whom the workload trusts. */
export const ROOT_SECRET = "ROOTCA";

/** The secrets of the workload itself. */
export function workloadSecrets(identity: Pick<WorkloadIdentity, "current" | "subscribe">): SecretSource {
  return {
    owns: (name) => name === WORKLOAD_SECRET || name === ROOT_SECRET,
    watch: (name, onSecret) => {
      const send = (certificate = identity.current) => {
        if (certificate === undefined) return;
        onSecret(name === ROOT_SECRET ? rootsSecret(name, certificate.roots) : certificateSecret(name, certificate));
      };
      send();
      return identity.subscribe(({ certificate, rootsChanged }) => {
        if (rootsChanged || name === WORKLOAD_SECRET) send(certificate);
      });
    },
  };
}
