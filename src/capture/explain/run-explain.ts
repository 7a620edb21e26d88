/** `istio-iptables --explain`: says what the rules do, and changes nothing. */
import { MeshError } from "#lib/mesh-error.ts";
import { readAccounts, withNumericIds } from "../settings/accounts.ts";
import { dialectOf, type Prepared, type PrepareInput, prepareCapture } from "../system/prepare.ts";
import { localAddresses } from "../system/surroundings.ts";
import { type PacketFlags, parsePacket } from "./packet-flags.ts";
import { explainPlan } from "./plan.ts";
import { planJson, walkJson } from "./print/json.ts";
import { drawMermaid } from "./print/mermaid.ts";
import { formatPlan } from "./print/plan-text.ts";
import { drawSvg } from "./print/svg.ts";
import { formatWalk } from "./print/walk-text.ts";
import { ruleBook } from "./rule-book.ts";
import { walk } from "./walk.ts";

export interface ExplainRun extends PrepareInput {
  /** A packet by its destination, a format for the plan, or nothing. */
  readonly what: string;
  readonly output?: string | undefined;
  readonly flags: Omit<PacketFlags, "destination">;
}

const PLAN_FORMATS = { text: formatPlan, json: planJson, mermaid: drawMermaid, svg: drawSvg };
const WALK_FORMATS = { text: formatWalk, json: walkJson };

/** The explanation, ready to print. Throws CAPTURE_OPTIONS with everything that is wrong. */
export async function runExplain(run: ExplainRun): Promise<string> {
  const isFormat = Object.hasOwn(PLAN_FORMATS, run.what);
  const output = run.output ?? (isFormat ? run.what : "text");
  const prepared = await prepareCapture(run);
  if (run.what !== "" && !isFormat) return explainPacket(run, prepared, output);
  const needless = Object.entries(run.flags).filter(([, value]) => value !== undefined);
  if (needless.length > 0) {
    throw refusal([
      `${needless.map(([name]) => flagName(name)).join(", ")} is about one packet: name it by --explain ADDRESS:PORT`,
    ]);
  }
  const format = formatNamed(PLAN_FORMATS, output);
  return format(explainPlan(prepared.settings, dialectOf(prepared.options)));
}

async function explainPacket(run: ExplainRun, prepared: Prepared, output: string): Promise<string> {
  const accounts = await readAccounts();
  const settings = withNumericIds(prepared.settings, accounts);
  const facts = {
    accounts,
    addresses: await localAddresses(prepared.commands),
    virtualInterfaces: settings.virtualInterfaces,
  };
  const { value: asked, problems } = parsePacket({ ...run.flags, destination: run.what }, facts);
  const format = formatNamed(WALK_FORMATS, output);
  if (asked === undefined) throw refusal(problems.map(({ field, message }) => `${field} ${message}`));
  const rules = ruleBook(settings, asked.packet.family, dialectOf(prepared.options));
  return format(walk(rules, asked.packet), asked, settings);
}

function formatNamed<F>(formats: Readonly<Record<string, F>>, name: string): F {
  const format = Object.hasOwn(formats, name) ? formats[name] : undefined;
  if (format !== undefined) return format;
  throw refusal([`--output must be ${Object.keys(formats).join(" or ")}, not "${name}"`]);
}

function refusal(problems: readonly string[]): MeshError {
  return new MeshError("CAPTURE_OPTIONS", `Cannot explain: ${problems.join("; ")}`);
}

/** `inInterface` as it is written on a command line. */
function flagName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
