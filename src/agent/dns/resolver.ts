/** Answers from the name table. Answers are kept as bytes: the next client that asks the same only gets its own id in them. */
import { type LookupScope, type LookupTable, lookup, lookupTable } from "./lookup-table.ts";
import {
  addressRecord,
  answer,
  cnameRecord,
  cnameTargetAt,
  type Query,
  type Records,
  TYPE_A,
  TYPE_AAAA,
} from "./message.ts";
import { readNameTable } from "./name-table.ts";
import { type Random16, random16, shuffled } from "./shuffle.ts";

/** Beyond it names are looked up each time, so that a flood of different questions does not fill the memory. */
const MAX_KEPT_ANSWERS = 10_000;

const NOT_OURS = "not ours";

export class MeshResolver {
  readonly scope: LookupScope;
  readonly #random: Random16;
  readonly #kept = new Map<string, Records | typeof NOT_OURS>();
  #nameTable: Uint8Array | undefined;
  #table: LookupTable | undefined;

  constructor(scope: LookupScope, random: Random16 = random16) {
    this.scope = scope;
    this.#random = random;
  }

  /** Takes a new name table. Throws when the bytes are none, and keeps the one before. */
  update(nameTable: Uint8Array): void {
    this.#table = lookupTable(readNameTable(nameTable), this.scope);
    this.#nameTable = Uint8Array.from(nameTable);
    this.#kept.clear();
  }

  /** False until there is a name table: before it nobody can say which names are ours. */
  get ready(): boolean {
    return this.#table !== undefined;
  }

  /** Names that are answered, short forms among them. */
  get size(): number {
    return this.#table?.hosts.size ?? 0;
  }

  /** As it came from the control plane. */
  get nameTable(): Uint8Array | undefined {
    return this.#nameTable;
  }

  /** The answer, or undefined when the question is not ours to answer. */
  answer(query: Query, maxBytes: number): Buffer | undefined {
    const records = this.#records(query);
    if (records === NOT_OURS) return undefined;
    return answer(query, { ...records, addresses: shuffled(records.addresses, this.#random) }, maxBytes);
  }

  #records(query: Query): Records | typeof NOT_OURS {
    const key = `${query.type} ${query.name}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const records = this.#lookup(query);
    if (this.#kept.size < MAX_KEPT_ANSWERS) this.#kept.set(key, records);
    return records;
  }

  #lookup(query: Query): Records | typeof NOT_OURS {
    const { name, type } = query;
    const found = this.#table === undefined ? undefined : lookup(this.#table, name);
    if (found === undefined || (type !== TYPE_A && type !== TYPE_AAAA)) return NOT_OURS;
    const addresses = type === TYPE_A ? found.v4 : found.v6;
    // A host of ours without addresses of this family exists all the same: an empty answer, not an error.
    if (addresses.length === 0) return { cname: undefined, addresses: [] };
    const ownerAt = found.viaCname ? cnameTargetAt(query) : undefined;
    return {
      cname: found.viaCname ? cnameRecord(found.owner) : undefined,
      addresses: addresses.map((address) => addressRecord(address, ownerAt)),
    };
  }
}
