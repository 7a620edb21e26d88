/** The identity of a service account in certificates: `spiffe://trust-domain/ns/NAMESPACE/sa/ACCOUNT`. */
export function spiffeId(trustDomain: string, namespace: string, account: string): string {
  return `spiffe://${trustDomain}/ns/${namespace}/sa/${account}`;
}
