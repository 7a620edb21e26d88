/** Questions over HTTP to what listens on a member's own loopback address: Envoy's admin port, the control plane's pages. */
import { MeshError } from "#lib/mesh-error.ts";
import type { LabelSelector } from "#model/labels/label-selector.ts";
import type { MemberStatus } from "#standalone/status/status.ts";
import { type ChoiceOptions, choiceOf, needRoot } from "../terminal/options.ts";

export interface Question {
  readonly method: "GET" | "POST";
  readonly port: number;
  /** With its query, such as `/config_dump?include_eds=true`. */
  readonly path: string;
}

/** Runs inside of the member, prints the answer, and says on stderr what went wrong. */
const ASK = `
({ method, url }) => fetch(url, { method, signal: AbortSignal.timeout(30000) }).then(async (answer) => {
  const text = await answer.text();
  if (answer.ok) process.stdout.write(text);
  else throw new Error("status " + answer.status + ": " + text.trim());
}).catch((error) => { console.error(error.cause?.message ?? error.message); process.exitCode = 1; })
`;

/** The body of the answer. */
export async function askMember({ name, shell }: MemberStatus, { method, port, path }: Question): Promise<string> {
  const [{ runCommand }, { enterCommand, ROOT }] = await Promise.all([
    import("#standalone/host/command.ts"),
    import("#standalone/plan/enter.ts"),
  ]);
  const url = `http://127.0.0.1:${port}${path}`;
  const command = [process.execPath, "-e", `(${ASK})(${JSON.stringify({ method, url })})`];
  try {
    return await runCommand({ argv: enterCommand({ place: shell.place, account: ROOT, cwd: "/", command }) });
  } catch (cause) {
    throw new MeshError("MEMBER_UNREACHABLE", `Cannot ask "${name}" at ${url}`, { cause });
  }
}

/** The member of a running mesh that istioctl's `[<type>/]<name>[.<namespace>]` names. */
export async function memberNamed(wanted: string, options: ChoiceOptions & { readonly namespace?: string }) {
  needRoot("ask a proxy");
  const { findMember, findStatus } = await import("#standalone/commands/find-mesh.ts");
  const name = wanted.slice(wanted.indexOf("/") + 1);
  const { status } = await findStatus(choiceOf(options));
  const isFull = options.namespace === undefined || name.includes(".");
  return findMember(status, isFull ? name : `${name}.${options.namespace}`);
}

/** Members with a proxy whose labels a selector takes. */
export async function proxiesWith(
  selector: LabelSelector,
  options: ChoiceOptions & { readonly namespace?: string },
): Promise<readonly MemberStatus[]> {
  needRoot("ask a proxy");
  const { findStatus, membersWith } = await import("#standalone/commands/find-mesh.ts");
  const { status } = await findStatus(choiceOf(options));
  return membersWith(status, selector, options.namespace).filter(({ proxy }) => proxy !== undefined);
}

/** As `memberNamed`, for one that has a proxy. */
export async function proxyNamed(wanted: string, options: ChoiceOptions & { readonly namespace?: string }) {
  const member = await memberNamed(wanted, options);
  if (member.proxy === undefined) throw new MeshError("NO_PROXY", `"${member.name}" has no proxy`);
  return member;
}
