/** A few lines of aliases can stand for a tree of billions of nodes, or for a tree that contains itself. */
import { EVENT_ID } from "js-yaml";
import type { ParsedText } from "./events.ts";

/** More than any hand-written file repeats by alias. */
const MAX_REPEATED_NODES = 100_000;

/** Why a document must not be built, and the offset at which that shows. */
export interface Refusal {
  readonly message: string;
  readonly offset: number;
}

/** Refuses a document whose aliases repeat too much or contain themselves. */
export function checkAliases({ events, text }: ParsedText): Refusal | undefined {
  const sizes = new Map<string, number>();
  const open: { readonly anchor: string; size: number }[] = [];
  let repeated = 0;
  const close = (node: { readonly anchor: string; readonly size: number } | undefined) => {
    if (node === undefined) return;
    if (node.anchor !== "") sizes.set(node.anchor, node.size);
    const parent = open.at(-1);
    if (parent !== undefined) parent.size += node.size;
  };
  for (const event of events) {
    if (event.type === EVENT_ID.POP) close(open.pop());
    else if (event.type === EVENT_ID.DOCUMENT) open.push({ anchor: "", size: 1 });
    else {
      const anchor = event.anchorStart < 0 ? "" : text.slice(event.anchorStart, event.anchorEnd);
      if (event.type === EVENT_ID.ALIAS) {
        if (open.some((node) => node.anchor === anchor)) {
          return { message: `uses alias "${anchor}" inside itself`, offset: event.anchorStart };
        }
        const size = sizes.get(anchor) ?? 1;
        repeated += size;
        if (repeated > MAX_REPEATED_NODES) {
          return { message: `repeats more than ${MAX_REPEATED_NODES} values by aliases`, offset: event.anchorStart };
        }
        close({ anchor: "", size });
      } else if (event.type === EVENT_ID.SCALAR) close({ anchor, size: 1 });
      else open.push({ anchor, size: 1 });
    }
  }
  return undefined;
}
