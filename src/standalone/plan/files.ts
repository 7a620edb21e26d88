/** Files and folders of a plan, as values. */
import { join } from "node:path";
import { DEFAULT_RANGE } from "../mesh/address-range.ts";
import { FABRIC } from "./names.ts";
import { MARKING_BOOTSTRAP, PROXY_BOOTSTRAP, PROXY_RESOLV_CONF } from "./one-account.ts";

export interface FolderPlan {
  readonly path: string;
  readonly mode: number;
  /** Owner, by user and group id alike. */
  readonly owner: number;
  /** The group id, where it differs from the owner. */
  readonly group?: number;
}

export interface FilePlan extends FolderPlan {
  readonly text: string;
}

export const DOMAIN = "cluster.local";

export interface EtcInput {
  readonly folder: string;
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  /** Of the fabric. */
  readonly nameServer?: string;
}

/** What a member sees in /etc: names resolve as in a cluster, whatever the machine's own resolver does. */
export function etcFiles({
  folder,
  name,
  namespace,
  address,
  nameServer = DEFAULT_RANGE.gateway,
}: EtcInput): readonly FilePlan[] {
  const service = `svc.${DOMAIN}`;
  const search = `search ${namespace}.${service} ${service} ${DOMAIN}\noptions ndots:5\n`;
  const texts = {
    "resolv.conf": `nameserver ${nameServer}\n${search}`,
    [PROXY_RESOLV_CONF]: `nameserver ${FABRIC.prober}\n${search}`,
    [PROXY_BOOTSTRAP]: MARKING_BOOTSTRAP,
    hosts: `127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n${address} ${name}\n`,
    "nsswitch.conf":
      "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\nprotocols: files\n",
  };
  return Object.entries(texts).map(([file, text]) => ({ path: join(folder, file), text, mode: 0o644, owner: 0 }));
}
