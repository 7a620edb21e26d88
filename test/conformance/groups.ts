/** All groups, in the order of the table. */
import { iptablesBuilder } from "./groups/iptables-builder.ts";
import { iptablesCapture } from "./groups/iptables-capture.ts";
import { xdsResources } from "./groups/xds-resources.ts";
import type { Group } from "./harness.ts";

export const GROUPS: readonly Group[] = [xdsResources, iptablesCapture, iptablesBuilder];
