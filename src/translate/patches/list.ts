/** Lists whose items are known by name: filters and routes. */
import type { Operation } from "./patch.ts";

/** What is to be put into a list, and beside which. */
export interface Placing<Item> {
  readonly operation: Operation;
  /** A copy of the item of the patch, if it has one. */
  readonly item: () => readonly Item[];
  /** Which items the patch names; undefined when it names none, which means the list as a whole. */
  readonly names: ((item: Item) => boolean) | undefined;
}

/** The list after the operation; the same list when it has nothing to do. Merging is not its business. */
export function placed<Item>(list: Item[], { operation, item, names }: Placing<Item>): Item[] {
  switch (operation) {
    case "ADD":
      return [...list, ...item()];
    case "INSERT_FIRST":
      return [...item(), ...list];
    case "INSERT_AFTER":
      return names === undefined ? [...list, ...item()] : insertedAt(list, item, afterFirst(list, names));
    case "INSERT_BEFORE":
      return names === undefined ? [...item(), ...list] : insertedAt(list, item, list.findIndex(names));
    case "REPLACE":
      return names === undefined ? list : replaced(list, item, list.findIndex(names));
    case "REMOVE":
      return names === undefined ? list : list.filter((one) => !names(one));
    case "MERGE":
      return list;
  }
}

function afterFirst<Item>(list: readonly Item[], names: (item: Item) => boolean): number {
  const found = list.findIndex(names);
  return found < 0 ? found : found + 1;
}

function insertedAt<Item>(list: Item[], item: () => readonly Item[], at: number): Item[] {
  return at < 0 ? list : list.toSpliced(at, 0, ...item());
}

function replaced<Item>(list: Item[], item: () => readonly Item[], at: number): Item[] {
  return at < 0 ? list : list.toSpliced(at, 1, ...item());
}
