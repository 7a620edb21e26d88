/** Addresses and routes that the rules rely on. */
import { MeshError } from "#lib/mesh-error.ts";
import type { Commands } from "./commands.ts";
import type { Family } from "./rule.ts";
import type { CaptureSettings } from "./settings.ts";

/** A change by `ip`, and how to take it back. */
export interface RouteStep {
  readonly add: readonly string[];
  readonly remove: readonly string[];
  readonly why: string;
}

/** What is needed with these settings. */
export function routeSteps(settings: CaptureSettings): readonly RouteStep[] {
  const families: readonly Family[] = settings.ipv6 ? ["v4", "v6"] : ["v4"];
  const tproxy = settings.mode === "TPROXY" && settings.inboundPorts.length > 0;
  return [
    ...(settings.ipv6 ? [passthroughAddress()] : []),
    ...(tproxy ? families.flatMap((family) => tproxyRoutes(settings, family)) : []),
  ];
}

/** Everything that some settings with this mark and routing table could have made. */
export function allRouteSteps(settings: CaptureSettings): readonly RouteStep[] {
  return routeSteps({ ...settings, ipv6: true, mode: "TPROXY", inboundPorts: "*" });
}

/** IPv4 has all of 127.0.0.0/8 on loopback; of IPv6 only ::1 is there. */
function passthroughAddress(): RouteStep {
  return addRemove("-6", ["address", "::6/128 dev lo"], "source address of Envoy's inbound passthrough");
}

function tproxyRoutes({ tproxyMark, tproxyTable }: CaptureSettings, family: Family): readonly RouteStep[] {
  const option = family === "v4" ? "-4" : "-6";
  return [
    addRemove(
      option,
      ["rule", `fwmark ${tproxyMark} lookup ${tproxyTable}`],
      "marked packets have a table of their own",
    ),
    addRemove(option, ["route", `local default dev lo table ${tproxyTable}`], "which delivers everything locally"),
  ];
}

function addRemove(family: string, [object, rest]: readonly [string, string], why: string): RouteStep {
  const words = rest.split(" ");
  return { add: [family, object, "add", ...words], remove: [family, object, "del", ...words], why };
}

/** Makes what is missing; returns what it made. When one step fails, those before it are taken back. */
export async function addRoutes(commands: Commands, steps: readonly RouteStep[]): Promise<readonly RouteStep[]> {
  const made: RouteStep[] = [];
  for (const step of steps) {
    const { code, stderr } = await commands.run("ip", step.add);
    if (code === 0) made.push(step);
    else if (!/file exists|already assigned/i.test(stderr)) {
      await removeRoutes(commands, made);
      throw new MeshError("CAPTURE_FAILED", `Cannot run "ip ${step.add.join(" ")}": ${stderr}`);
    }
  }
  return made;
}

/** Removes what is there of the steps; what is not there is no error. */
export async function removeRoutes(commands: Commands, steps: readonly RouteStep[]): Promise<void> {
  for (const step of steps) await commands.run("ip", step.remove);
}
