/** A one-machine mesh as tables. */
import type { Style } from "./style.ts";
import { formatTable } from "./table.ts";

/** What is shown of a member. */
export interface MemberRow {
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  readonly ports: readonly { readonly name: string; readonly port: number }[];
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
  const rows = members.map(({ name, namespace, address, ports, ready, reason, restarts: count }) => [
    name,
    namespace,
    address,
    ports.map(({ port }) => port).join(",") || "-",
    ...(restarts ? [String(count)] : []),
    ready ? style.good("yes") : style.bad(`no (${reason})`),
  ]);
  return formatTable([head, ...rows]);
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
