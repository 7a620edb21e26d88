/** Annotations of WorkloadEntries whose workloads registered themselves. */

/** The WorkloadGroup that the entry was made from. */
export const REGISTRATION_GROUP = "istio.io/autoRegistrationGroup";
/** When the workload came, and when it left. */
export const CONNECTED_AT = "istio.io/connectedAt";
export const DISCONNECTED_AT = "istio.io/disconnectedAt";
/** The workload's agent tells how it is. */
export const HEALTH_CHECKS = "proxy.istio.io/health-checks-enabled";
