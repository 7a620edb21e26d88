/**
 * The folders of src/ and the order of what is inside them. `check-layers` enforces both, and ARCHITECTURE.md shows them.
 */

/** A file imports its own folder or a folder with a lower number. */
export const LAYERS: Readonly<Record<string, number>> = {
  gen: 0,
  lib: 0,
  config: 1,
  model: 2,
  protocol: 2,
  translate: 3,
  convert: 3,
  inject: 3,
  explain: 3,
  authn: 3,
  sources: 4,
  controllers: 4,
  xds: 4,
  ca: 4,
  webhooks: 4,
  install: 4,
  capture: 4,
  agent: 4,
  debug: 4,
  dashboard: 4,
  "control-plane": 5,
  standalone: 5,
  cli: 6,
  bin: 7,
};

/**
 * The subfolders of each folder, lowest first: a file imports its own subfolder or one that stands before it. `.` stands for
 * the files of the folder itself.
 */
export const SUBFOLDERS: Readonly<Record<string, string>> = {
  ca: "keys authority service serving",
  capture: "settings rules system iptables nftables explain validation . command",
  cli: "terminal mesh cluster init doctor ps up down restart apply run shell logs pushes proxy-config proxy-status translate kube-inject manifest install tag experimental .",
  config: "schema terms checks selection kinds authoring crd mesh proxy-config",
  "control-plane": "metrics settings . command",
  controllers: ". registration status",
  convert: "identity services workloads endpoints clusters routes .",
  debug: "pages . controlz",
  explain: ". analysis authorization conflicts",
  inject: "json yaml mesh kubernetes pod templates injector . webhook",
  install: "values .",
  lib: "async collections . text go json files env log metrics admission net grpc wire pki yaml kubernetes print command",
  model: "labels identity workload proxy service .",
  protocol: "messages .",
  sources: ". file jwks gateways kubernetes",
  standalone:
    "mesh plan host fabric egress rootless supervise status control hints identity ports run up commands doctor init library",
  translate:
    "wire names recipes authentication authorization policies targets traits scope patches views endpoints filters inbound tls clusters routes listeners name-table secrets grpc .",
  xds: "timing journal metrics resources parts stream push .",
};
