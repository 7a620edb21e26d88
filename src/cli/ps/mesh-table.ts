/** A one-machine mesh as tables. */
import type { Style } from "#lib/print/style.ts";
import { formatTable } from "#lib/print/table.ts";

/** What is shown of a member. */
export interface MemberRow {
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  readonly ports: readonly { readonly name: string; readonly port: number }[];
  /** Jobs that have ended are `done` or `failed`. */
  readonly state?: "running" | "stopped" | "done" | "failed";
  readonly ready: boolean;
  /** Why it is not ready. */
  readonly reason: string;
  readonly restarts: number;
}

export interface PublishedRow {
  /** `127.0.0.1:8080` */
  readonly address: string;
  readonly member: string;
  readonly port: number;
  /** What can be opened there; `*` is any host. */
  readonly pages: readonly { readonly host: string; readonly path: string }[];
}

/** Members with their state; `restarts` adds that column. */
export function formatMembers(members: readonly MemberRow[], style: Style, restarts: boolean): string {
  const head = ["WORKLOAD", "NAMESPACE", "ADDRESS", "PORTS", ...(restarts ? ["RESTARTS"] : []), "READY"];
  const rows = members.map((member) => [
    member.name,
    member.namespace,
    member.address,
    member.ports.map(({ port }) => port).join(",") || "-",
    ...(restarts ? [String(member.restarts)] : []),
    readiness(member, style),
  ]);
  return formatTable([head, ...rows]);
}

/** Whether a member is ready, or how it ended, in the colour of it. */
export function readiness({ ready, state, reason }: MemberRow, style: Style): string {
  if (ready) return style.good("yes");
  return state === "done" ? style.faint("done") : style.bad(`no (${reason})`);
}

/** Where the mesh is reached from this machine, ready to be copied; empty when it is not. */
export function formatPublished(published: readonly PublishedRow[], style: Style): string {
  return published
    .map(({ address, member, port, pages }) => {
      const lines = pages.map(({ host, path }) => `  ${pageCommand(host)}http://${address}${path}\n`);
      return `${address} ${style.faint(`leads to ${member}, port ${port}`)}\n${lines.join("")}`;
    })
    .join("");
}

function pageCommand(host: string): string {
  return host === "*" ? "open " : `curl -H 'Host: ${host}' `;
}

/** What a person may try next, each with the command for it; empty when there is nothing. */
export function formatSuggestions(
  suggestions: readonly { readonly what: string; readonly run: string }[],
  style: Style,
): string {
  if (suggestions.length === 0) return "";
  const width = Math.max(...suggestions.map(({ what }) => what.length));
  const lines = suggestions.map(({ what, run }) => `  ${style.faint(what.padEnd(width))}  ${run}\n`);
  return `\nTry, in another terminal:\n${lines.join("")}`;
}
