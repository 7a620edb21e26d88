/** Envoy connects from here to what it passes on to the workload, so what comes from here may come from anywhere. */
const ENVOY_SOURCE = /^(?:::ffff:)?127\.0\.0\.6$/;

/** True for loopback, except for the address that Envoy passes traffic of other machines on from. */
export function isLoopback(address: string): boolean {
  return /^(?:::ffff:)?127\.|^::1$/.test(address) && !ENVOY_SOURCE.test(address);
}
