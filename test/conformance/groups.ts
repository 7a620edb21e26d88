/** All groups, in the order of the table. */
import { authorization } from "./groups/authorization.ts";
import { bootstrap } from "./groups/bootstrap.ts";
import { captureSettings } from "./groups/capture-settings.ts";
import { configValidation } from "./groups/config-validation.ts";
import { crdValidation } from "./groups/crd-validation.ts";
import { dnsClient } from "./groups/dns-client.ts";
import { envoyFilterPatches } from "./groups/envoy-filter-patches.ts";
import { ingressConversion } from "./groups/ingress.ts";
import { kubeInject, sampleInjection, webhookPods } from "./groups/injection.ts";
import { iptablesBuilder } from "./groups/iptables-builder.ts";
import { iptablesCapture } from "./groups/iptables-capture.ts";
import { istioctlOutput } from "./groups/istioctl-output.ts";
import { kubeInjectOutput } from "./groups/kube-inject-command.ts";
import { localityLoadBalancing } from "./groups/locality.ts";
import { nameTable } from "./groups/name-table.ts";
import { nftablesCapture } from "./groups/nftables-capture.ts";
import { statusServer } from "./groups/status-server.ts";
import { agentTables } from "./groups/unit-tables/agent.ts";
import { certificateTables } from "./groups/unit-tables/certificates.ts";
import { configGenerationTables } from "./groups/unit-tables/config-generation.ts";
import { envoyFilterTables } from "./groups/unit-tables/envoy-filter.ts";
import { injectionTables } from "./groups/unit-tables/injection.ts";
import { istioctlTables } from "./groups/unit-tables/istioctl.ts";
import { meshConfigTables } from "./groups/unit-tables/mesh-config.ts";
import { networkingTables } from "./groups/unit-tables/networking.ts";
import { securityTables } from "./groups/unit-tables/security.ts";
import { serviceTables } from "./groups/unit-tables/services.ts";
import { validationTables } from "./groups/unit-tables/validation.ts";
import { wasmTables } from "./groups/unit-tables/wasm.ts";
import { virtualServiceRoutes } from "./groups/virtual-service-routes.ts";
import { xdsBenchmarks, xdsGeneration, xdsSimulation } from "./groups/xds-recorded.ts";
import { xdsResources } from "./groups/xds-resources.ts";
import { xdsScenarios } from "./groups/xds-scenarios.ts";
import type { Group } from "./harness.ts";

export const GROUPS: readonly Group[] = [
  xdsResources,
  xdsScenarios,
  xdsSimulation,
  xdsBenchmarks,
  xdsGeneration,
  virtualServiceRoutes,
  localityLoadBalancing,
  nameTable,
  iptablesCapture,
  iptablesBuilder,
  nftablesCapture,
  captureSettings,
  configValidation,
  crdValidation,
  ingressConversion,
  authorization,
  envoyFilterPatches,
  bootstrap,
  dnsClient,
  statusServer,
  istioctlOutput,
  kubeInject,
  kubeInjectOutput,
  webhookPods,
  sampleInjection,
  agentTables,
  certificateTables,
  configGenerationTables,
  envoyFilterTables,
  istioctlTables,
  injectionTables,
  meshConfigTables,
  networkingTables,
  securityTables,
  serviceTables,
  validationTables,
  wasmTables,
];
