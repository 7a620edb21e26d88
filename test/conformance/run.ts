/**
 * Runs real Istio's cases against us and prints how many of each group pass.
 *
 *   node test/conformance/run.ts [--group NAME]... [--verbose] [--raise]
 *
 * --verbose shows what differs in failed cases; --raise records the numbers as new floors.
 */
import { parseArgs } from "node:util";
import { belowFloor, raisedFloors, readFloors, writeFloors } from "./floors.ts";
import { GROUPS } from "./groups.ts";
import { findFolder, runGroup } from "./harness.ts";
import { formatFailures, formatLeftOut, formatTable } from "./report.ts";

async function main(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      group: { type: "string", multiple: true },
      verbose: { type: "boolean", default: false },
      raise: { type: "boolean", default: false },
    },
  });
  const groups = GROUPS.filter((group) => values.group === undefined || values.group.includes(group.name));
  if (groups.length === 0) {
    console.error(`no such group; there are: ${GROUPS.map((group) => group.name).join(", ")}`);
    return 2;
  }
  const found = await findFolder(env);
  if ("missing" in found) {
    console.error(`skipped: ${found.missing}`);
    return env.CI === "true" ? 1 : 0;
  }
  const results = [];
  for (const group of groups) results.push(await runGroup(group, found.folder));

  if (values.verbose || values.group !== undefined) process.stdout.write(formatFailures(results, values.verbose));
  process.stdout.write(formatTable(results));
  process.stdout.write(formatLeftOut(results));
  const floors = await readFloors();
  const fallen = results.flatMap((result) => belowFloor(result, floors) ?? []);
  for (const sentence of fallen) console.error(`below its floor: ${sentence}`);
  if (values.raise) await writeFloors(raisedFloors(floors, results));
  return fallen.length === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2), process.env);
