/** The push journal as a table: one line for each change, and below it the proxies that rejected something. */

import type { Style } from "#lib/print/style.ts";
import { formatTable } from "#lib/print/table.ts";
import type { ChangeRecord, PushRecord } from "#model/push-record.ts";

/** A change with what was sent because of it, as `/debug/pushes` tells it. */
export interface JournalEntry extends Pick<ChangeRecord, "id" | "objects" | "objectCount"> {
  readonly changedAt?: string;
  readonly views: number;
  readonly proxies: number;
  readonly bytes: number;
  readonly pushes: readonly JournalPush[];
}

interface JournalPush extends Omit<PushRecord, "change" | "at" | "answeredAfter"> {
  readonly at: string;
  readonly answeredAfterMs?: number;
}

/** Oldest first. */
export function formatPushes(entries: readonly JournalEntry[], style: Style): string {
  const head = ["CHANGE", "TIME", "WHAT", "PROXIES", "VIEWS", "BYTES", "SLOWEST", "RESULT"];
  const rejected = entries.flatMap(({ id, pushes }) =>
    pushes.filter(({ result }) => result === "rejected").map((push) => ({ id, ...push })),
  );
  const lines = rejected.map(({ id, node, type, error = "", culprits = [] }) =>
    style.bad(`change ${id}: ${node.split("~")[2] ?? node} rejected ${type} ${culprits.join(", ")}: ${error}\n`),
  );
  return formatTable([head, ...entries.map((entry) => rowOf(entry, style))]) + lines.join("");
}

function rowOf({ id, changedAt, objects, objectCount, views, proxies, bytes, pushes }: JournalEntry, style: Style) {
  const slowest = Math.max(0, ...pushes.map(({ answeredAfterMs = 0 }) => answeredAfterMs));
  return [
    String(id),
    changedAt === undefined ? "-" : changedAt.slice(11, 23),
    whatOf(objects, objectCount),
    String(proxies),
    String(views),
    String(bytes),
    pushes.length === 0 ? "-" : `${slowest} ms`,
    resultOf(pushes, style),
  ];
}

function whatOf([first, ...others]: readonly string[], count: number): string {
  if (first === undefined) return "a proxy connected";
  return others.length === 0 ? first : `${first} and ${count - 1} more`;
}

function resultOf(pushes: JournalEntry["pushes"], style: Style): string {
  if (pushes.some(({ result }) => result === "rejected")) return style.bad("rejected");
  if (pushes.some(({ result }) => result === "sent")) return "sent";
  return pushes.length === 0 ? "nothing to send" : "acknowledged";
}
