/** Where things lie in the state folder of a mesh. */
import { basename, join } from "node:path";

export interface StatePaths {
  readonly root: string;
  /** An empty file that says: this folder is a mesh's, what is in it may be removed. */
  readonly mark: string;
  /** Root certificate and key; kept when the mesh goes down, so that it comes back as the same mesh. */
  readonly ca: string;
  /** Keys of the token issuer; kept like `ca`. */
  readonly issuer: string;
  /** What the running mesh says about itself. */
  readonly status: string;
  /** Unix socket by which the running mesh is told things. */
  readonly control: string;
  /** WorkloadEntry files: a second configuration folder of the control plane. */
  readonly registry: string;
  /** Objects that were applied while the mesh runs, one file each: a third configuration folder. */
  readonly applied: string;
  readonly controlPlane: string;
  /** What a shared agent is told, a file for each member. */
  readonly agents: string;
  readonly meshConfig: string;
  readonly members: string;
  readonly logs: string;
  /** The runner's own log. */
  readonly runnerLog: string;
  /** Copies of programs and sources that the accounts of the mesh could not read in their own place. */
  readonly runtime: string;
}

export function statePaths(root: string): StatePaths {
  return {
    root,
    mark: join(root, ".mizzen"),
    ca: join(root, "ca"),
    issuer: join(root, "issuer"),
    status: join(root, "status.json"),
    control: join(root, "control.sock"),
    registry: join(root, "registry"),
    applied: join(root, "applied"),
    controlPlane: join(root, "control-plane"),
    agents: join(root, "agents"),
    meshConfig: join(root, "control-plane", "mesh"),
    members: join(root, "members"),
    logs: join(root, "logs"),
    runnerLog: join(root, "logs", "mizzen.log"),
    runtime: join(root, "runtime"),
  };
}

/** What `down` removes; identity and logs stay. */
export function volatilePaths(paths: StatePaths): readonly string[] {
  // Files that are being written when their process is killed stay under another name.
  const unfinished = [paths.status, join(paths.issuer, "key.json")].map((file) =>
    join(file, "..", `.${basename(file)}.new`),
  );
  return [
    ...unfinished,
    paths.status,
    paths.control,
    paths.registry,
    paths.applied,
    paths.controlPlane,
    paths.agents,
    paths.members,
    paths.runtime,
  ];
}
