/**
 * One agent for all members (`agents: shared`): `pilot-agent serve` in the fabric's namespace, as root, because it enters
 * those of the members. It has no mounts of its own: a copy of them would keep the namespaces of members alive after they
 * are gone. So it sees the machine's resolver, and is told the control plane by its address.
 */
import { join } from "node:path";
import { CONTROL_PLANE } from "../mesh/check-members.ts";
import { PROXY_ID } from "../mesh/mesh.ts";
import { enterCommand, ROOT } from "./enter.ts";
import type { FolderPlan } from "./files.ts";
import { MESHES_FOLDER } from "./names.ts";
import { baseEnv, type ProcessPlan, type Programs } from "./process.ts";
import { agentFlags, agentProcess, defaultConfigOf, PROXY_ACCOUNT, type ProxyInput, proxyPlace } from "./proxy.ts";
import type { StatePaths } from "./state-paths.ts";

export interface SharedAgentPlan {
  readonly folders: readonly FolderPlan[];
  /** Where members are described. */
  readonly folder: string;
  readonly process: ProcessPlan;
}

/** What the shared agent is told about a member: a file `NAME.json` in its folder. */
export interface SharedMemberPlan {
  /** Name of the file without its end. */
  readonly name: string;
  /** The member's files of /etc. */
  readonly etc: string;
  readonly workload: {
    readonly folder: string;
    readonly enter: readonly string[];
    readonly user: number;
    readonly env: Readonly<Record<string, string>>;
    readonly flags: Readonly<Record<string, string>>;
    readonly log: string;
  };
}

const XDS_PORT = 15012;

/** It enters places, becomes the proxy's account in them, and gives files to that account. */
const RIGHTS = [
  "sys_admin",
  "sys_chroot",
  "sys_ptrace",
  "setuid",
  "setgid",
  "setpcap",
  "chown",
  "fowner",
  "dac_override",
  "kill",
]
  // Where there is one account, Envoy keeps this one.
  .concat("net_admin")
  .map((name) => `+${name}`)
  .join(",");

export interface SharedAgentInput {
  readonly id: string;
  readonly paths: StatePaths;
  readonly programs: Programs;
}

export function sharedAgentPlan({ id, paths, programs }: SharedAgentInput): SharedAgentPlan {
  const temporary = sharedAgentFolder(id);
  return {
    folder: paths.agents,
    folders: [
      { path: paths.agents, mode: 0o700, owner: 0 },
      { path: temporary, mode: 0o711, owner: 0 },
    ],
    process: {
      argv: [
        "setpriv",
        "--no-new-privs",
        `--bounding-set=-all,${RIGHTS}`,
        "--",
        ...programs.agent,
        "serve",
        paths.agents,
      ],
      place: undefined,
      // Paths of sockets must be short, and that of the state folder is a person's choice.
      env: { ...baseEnv(ROOT, programs), TMPDIR: temporary },
      cwd: paths.agents,
      log: join(paths.logs, "agent.log"),
      account: ROOT,
    },
  };
}

/** Where the shared agent of a mesh has what it needs for the moment. */
export function sharedAgentFolder(id: string): string {
  return join(MESHES_FOLDER, `${id}.agent`);
}

/** A member for the shared agent. Its Envoy ends at once with it, as that of an agent of its own does. */
export function sharedMemberPlan(name: string, input: ProxyInput): SharedMemberPlan {
  const { meshConfig, appPlace, folder, log, range } = input;
  const defaultConfig = {
    ...defaultConfigOf(meshConfig),
    discoveryAddress: `${range.controlPlane}:${XDS_PORT}`,
    terminationDrainDuration: "0s",
  };
  const { env } = agentProcess({ ...input, meshConfig: { ...meshConfig, defaultConfig } });
  // Without an address of its own the CA is where the control plane is, and known by the same name.
  const { CA_ADDR: _, ...rest } = env;
  return {
    name,
    etc: appPlace.etc,
    workload: {
      folder,
      enter: enterCommand({ place: proxyPlace(input), account: PROXY_ACCOUNT, cwd: folder, command: [] }),
      user: PROXY_ID,
      env: { ...rest, ISTIOD_SAN: `${CONTROL_PLANE.name}.${CONTROL_PLANE.namespace}.svc` },
      flags: agentFlags(input.member),
      log,
    },
  };
}
