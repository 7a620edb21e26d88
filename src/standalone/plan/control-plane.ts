/** The control plane: a member of the fabric like the others, but without a proxy. */

import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { type Account, type Place, READ_ANYTHING } from "./enter.ts";
import { DOMAIN, type FilePlan, type FolderPlan } from "./files.ts";
import { type ProcessPlan, type Programs, processPlan } from "./process.ts";
import type { StatePaths } from "./state-paths.ts";

export interface ControlPlaneInput {
  readonly place: Place;
  /** Its own: nobody else may read the authority's key. */
  readonly account: Account;
  readonly address: string;
  readonly log: string;
  readonly paths: StatePaths;
  readonly programs: Programs;
  readonly meshConfig: Readonly<Record<string, unknown>>;
  /** Files and folders with the user's objects. */
  readonly config: readonly string[];
  readonly onUnreadablePolicy: "deny" | "ignore";
  /** The user's objects are not readable for everybody, such as those under root's home. */
  readonly privateConfig: boolean;
  /** Whose tokens it believes, as JWT_RULE. */
  readonly jwtRule: string;
}

export interface ControlPlanePlan {
  readonly folders: readonly FolderPlan[];
  readonly files: readonly FilePlan[];
  readonly process: ProcessPlan;
  /** Answers 200 when the control plane serves. */
  readonly readiness: { readonly address: string; readonly port: number; readonly path: string };
}

export function controlPlanePlan(input: ControlPlaneInput): ControlPlanePlan {
  const { paths, meshConfig, account } = input;
  // Objects that were applied may be Secrets.
  const readOnly = { mode: 0o750, owner: 0, group: account.gid };
  return {
    folders: [
      { path: paths.ca, mode: 0o700, owner: account.uid },
      ...[paths.controlPlane, paths.registry, paths.applied].map((path) => ({ path, ...readOnly })),
    ],
    files: [{ path: paths.meshConfig, text: `${JSON.stringify(meshConfig, null, 2)}\n`, mode: 0o644, owner: 0 }],
    process: controlPlaneProcess(input),
    readiness: { address: input.address, port: 8080, path: "/ready" },
  };
}

function controlPlaneProcess(input: ControlPlaneInput): ProcessPlan {
  const { place, account, log, paths, programs, config, onUnreadablePolicy, privateConfig, jwtRule } = input;
  return processPlan({
    place,
    account,
    capability: privateConfig ? READ_ANYTHING : undefined,
    programs,
    cwd: paths.controlPlane,
    log,
    env: {
      POD_NAME: CONTROL_PLANE.name,
      POD_NAMESPACE: CONTROL_PLANE.namespace,
      ROOT_CA_DIR: paths.ca,
      JWT_RULE: jwtRule,
      // As in `bin/pilot-discovery`.
      MALLOC_MMAP_THRESHOLD_: "32768",
      MALLOC_ARENA_MAX: "2",
    },
    command: [
      ...programs.discovery,
      "discovery",
      "--registries=",
      ...[...config, paths.registry, paths.applied].flatMap((path) => ["--configDir", path]),
      "--meshConfig",
      paths.meshConfig,
      "--domain",
      DOMAIN,
      "--httpsAddr=",
      `--on-unreadable-policy=${onUnreadablePolicy}`,
    ],
  });
}
