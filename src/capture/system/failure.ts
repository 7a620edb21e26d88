/** Why a program of the machine failed, in words that say what to do about it. */
import { MeshError } from "#lib/mesh-error.ts";
import type { CommandResult } from "./commands.ts";

const PACKAGES: readonly (readonly [RegExp, string])[] = [
  [/^ip6?tables/, "iptables"],
  [/^nft$/, "nftables"],
  [/^ip$/, "iproute2"],
  [/^nsenter$/, "util-linux"],
];

/** Words of iptables, nft and the kernel when an extension or a table is not there. */
const NO_KERNEL_SUPPORT =
  /missing kernel module|do you need to (insmod|modprobe)|can't initialize|No chain\/target\/match by that name|\((No such file or directory|Operation not supported|Protocol not supported)\)|Could not process rule: (No such file or directory|Operation not supported)|Protocol not supported|Module \S+ not found/i;

export interface Failure extends CommandResult {
  readonly program: string;
  /** What the program was given to read, so that a line it names can be shown. */
  readonly input?: string;
}

/** The error of an attempt, such as `Cannot apply the rules with iptables-restore`. */
export function failure(attempt: string, failed: Failure): MeshError {
  const { program, code } = failed;
  if (code !== 127) return new MeshError("CAPTURE_FAILED", `${attempt}: ${reason(failed)}`);
  const missing = `the program ${program} is missing; install the package ${packageOf(program)}`;
  return new MeshError("IPTABLES_MISSING", `${attempt}: ${missing}`);
}

function reason({ program, code, stderr, input = "" }: Failure): string {
  const words = stderr === "" ? `${program} ended with code ${code}` : stderr;
  if (/permission denied|must be root|operation not permitted/i.test(stderr)) {
    return `needs root or the capabilities NET_ADMIN and NET_RAW: ${words}`;
  }
  // Legacy programs cannot tell one from the other.
  if (/unable to initialize table/i.test(stderr)) {
    return `needs root or the capabilities NET_ADMIN and NET_RAW, and a kernel with this table: ${words}`;
  }
  if (/holding the xtables lock/i.test(stderr)) {
    return `another process held the lock of iptables for ${LOCK_WAIT_SECONDS} s: ${words}`;
  }
  const line = namedLine(stderr, input);
  const shown = line === undefined ? words : `${words}; this is "${line}"`;
  return NO_KERNEL_SUPPORT.test(stderr) ? `the kernel lacks a module that the rules need: ${shown}` : shown;
}

/** Legacy programs share a lock that others may hold for a while. */
export const LOCK_WAIT_SECONDS = 30;

function packageOf(program: string): string {
  return PACKAGES.find(([pattern]) => pattern.test(program))?.[1] ?? program;
}

/** The line of the input that the program complains about, unless that is the end of a table. */
function namedLine(stderr: string, input: string): string | undefined {
  const number = /\bline:? (\d+)\b|^\/dev\/stdin:(\d+):/m
    .exec(stderr)
    ?.slice(1)
    .find((part) => part !== undefined);
  const line = number === undefined ? undefined : input.split("\n")[Number(number) - 1];
  return line === "COMMIT" || line === "" ? undefined : line;
}
