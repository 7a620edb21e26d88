/** SPIFFE ids of workloads: `spiffe://trust-domain/ns/NAMESPACE/sa/ACCOUNT`. One file makes and reads them. */

export interface SpiffeId {
  readonly trustDomain: string;
  readonly namespace: string;
  readonly serviceAccount: string;
}

const SHAPE = /^spiffe:\/\/([^/]+)\/ns\/([^/]+)\/sa\/([^/]+)$/;

/** A trust domain may be written like a mail address; `@` cannot stand in a URI's host. */
export function trustDomainInUri(trustDomain: string): string {
  return trustDomain.replaceAll("@", ".");
}

/** The id as a URI. */
export function formatSpiffeId({ trustDomain, namespace, serviceAccount }: SpiffeId): string {
  return `spiffe://${trustDomainInUri(trustDomain)}/ns/${namespace}/sa/${serviceAccount}`;
}

/** Undefined when the text is no id of a workload. */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  const [, trustDomain, namespace, serviceAccount] = SHAPE.exec(text) ?? [];
  if (trustDomain === undefined || namespace === undefined || serviceAccount === undefined) return undefined;
  return { trustDomain, namespace, serviceAccount };
}
