/** A process of the mesh, as a value. */
import { type Account, type EnterInput, enterCommand, NOBODY, type Place } from "./enter.ts";

export interface ProcessPlan {
  /** The whole command line, entering included. */
  readonly argv: readonly string[];
  /** Where the command line enters; undefined for a process that stays where its starter is. */
  readonly place: Place | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** File for what it prints; owned by `account`, because a process may open its own /dev/stdout again. */
  readonly log: string;
  readonly account: Account;
}

/** Programs of the mesh, in places where its accounts can read them. */
export interface Programs {
  /** Folder with a `node`, first in the PATH of every process. */
  readonly nodeFolder: string;
  readonly envoy: string;
  /** How the agent is called: program and first arguments. */
  readonly agent: readonly string[];
  readonly discovery: readonly string[];
}

const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Where commands are looked up inside the mesh. */
export function searchPath({ nodeFolder }: Pick<Programs, "nodeFolder">): string {
  return `${nodeFolder}:${SYSTEM_PATH}`;
}

export interface ProcessInput extends EnterInput {
  readonly programs: Programs;
  readonly env: Readonly<Record<string, string>>;
  readonly log: string;
}

/** How to run something beside the processes of a member. */
export interface Shell {
  readonly place: Place;
  readonly account: Account;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** For a member without an app of its own. */
export function plainShell(place: Place, programs: Programs): Shell {
  return { place, account: NOBODY, env: baseEnv(NOBODY, programs), cwd: "/" };
}

/** A process with a clean environment: nothing of the person's own gets into it. */
export function processPlan(input: ProcessInput): ProcessPlan {
  const { account, programs, log, place } = input;
  return {
    argv: enterCommand(input),
    place,
    env: { ...baseEnv(account, programs), ...input.env },
    cwd: input.cwd,
    log,
    account,
  };
}

/** What every process of the mesh has in its environment. */
export function baseEnv({ home }: Account, programs: Programs): Record<string, string> {
  return { PATH: searchPath(programs), HOME: home, LANG: "C.UTF-8" };
}
