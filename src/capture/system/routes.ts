/** Addresses and routes that the rules rely on. */

import type { Family } from "../settings/rule.ts";
import type { CaptureSettings } from "../settings/settings.ts";
import type { Commands } from "./commands.ts";
import { failure } from "./failure.ts";
import type { Step } from "./steps.ts";

/** A thing that `ip` makes: arguments after `ip`, around `add` or `del`. */
export interface Route {
  readonly family: Family;
  readonly object: "address" | "route" | "rule";
  readonly value: string;
  readonly why: string;
}

/** What is needed with these settings. */
export function neededRoutes(settings: CaptureSettings): readonly Route[] {
  const families: readonly Family[] = settings.ipv6 ? ["v4", "v6"] : ["v4"];
  const tproxy = settings.mode === "TPROXY" && settings.inboundPorts.length > 0;
  return [
    ...(settings.ipv6 ? [PASSTHROUGH_ADDRESS] : []),
    ...(tproxy
      ? families.flatMap((family) => tproxyRoutes(family, settings.tproxyMark, `${settings.tproxyTable}`))
      : []),
  ];
}

/** IPv4 has all of 127.0.0.0/8 on loopback; of IPv6 only ::1 is there. */
const PASSTHROUGH_ADDRESS: Route = {
  family: "v6",
  object: "address",
  value: "::6/128 dev lo",
  why: "source address of Envoy's inbound passthrough",
};

function tproxyRoutes(family: Family, mark: number, table: string): readonly Route[] {
  return [
    {
      family,
      object: "rule",
      value: `fwmark ${mark} lookup ${table}`,
      why: "marked packets have a table of their own",
    },
    { family, object: "route", value: `local default dev lo table ${table}`, why: "which delivers everything locally" },
  ];
}

/**
 * What runs with these marks have left: rules for a mark, whatever their table is, that table's one route, and the
 * address.
 */
export async function leftRoutes(commands: Commands, marks: ReadonlySet<number>): Promise<readonly Route[]> {
  const found: Route[] = [];
  for (const family of ["v4", "v6"] as const) {
    const { stdout } = await commands.run("ip", [option(family), "rule"]);
    for (const [, mark = "", table = ""] of stdout.matchAll(/\bfwmark (0x[\da-f]+|\d+) lookup (\S+)/g)) {
      if (marks.has(Number(mark))) found.push(...tproxyRoutes(family, Number(mark), table));
    }
  }
  const { stdout } = await commands.run("ip", ["-6", "-oneline", "address", "show", "dev", "lo"]);
  return / inet6 ::6\/128 /.test(stdout) ? [PASSTHROUGH_ADDRESS, ...found] : found;
}

/** Makes it, unless it is there already. */
export function addRoute(commands: Commands, route: Route): Step {
  let made = false;
  const args = argumentsOf(route, "add");
  return {
    run: async () => {
      const result = await commands.run("ip", args);
      made = result.code === 0;
      if (!made && !/file exists|already assigned/i.test(result.stderr)) {
        throw failure(`Cannot run "ip ${args.join(" ")}"`, { ...result, program: "ip" });
      }
    },
    undo: async () => {
      if (made) await commands.run("ip", argumentsOf(route, "del"));
    },
  };
}

/** Removes it; what is not there is no error. */
export function removeRoute(commands: Commands, route: Route): Step {
  let removed = false;
  return {
    run: async () => {
      removed = (await commands.run("ip", argumentsOf(route, "del"))).code === 0;
    },
    undo: async () => {
      if (removed) await commands.run("ip", argumentsOf(route, "add"));
    },
  };
}

/** The same thing, whoever needs it. */
export function sameRoute(a: Route, b: Route): boolean {
  return a.family === b.family && a.object === b.object && a.value === b.value;
}

function argumentsOf({ family, object, value }: Route, verb: "add" | "del"): readonly string[] {
  return [option(family), object, verb, ...value.split(" ")];
}

function option(family: Family): string {
  return family === "v4" ? "-4" : "-6";
}
