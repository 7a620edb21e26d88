/** Random changes of an input. The same seed gives the same changes. */

/** A whole number from 0 up to, but without, `limit`. */
export type Random = (limit: number) => number;

/** Mulberry32: small, fast, and good enough to choose changes. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  };
}

export interface MutationInput {
  readonly random: Random;
  /** Inputs to take parts from. */
  readonly others: readonly Buffer[];
  readonly dictionary: readonly string[];
  readonly maxBytes: number;
}

type Mutation = (input: Buffer, from: MutationInput) => Buffer;

const BYTES = [0, 1, 0x0a, 0x20, 0x22, 0x5c, 0x7f, 0x80, 0xc0, 0xff];
const NUMBERS = ["0", "-1", "65535", "65536", "2147483648", "4294967296", "9007199254740993", "1e400", "00", "1e-7"];
const MOST_MUTATIONS = 6;

/** A changed copy of `input`. */
export function mutated(input: Buffer, from: MutationInput): Buffer {
  let result = input;
  for (let left = 1 + from.random(MOST_MUTATIONS); left > 0; left--) {
    const mutation = MUTATIONS[from.random(MUTATIONS.length)] ?? flipBit;
    result = mutation(result, from);
  }
  return result.subarray(0, from.maxBytes);
}

const flipBit: Mutation = (input, { random }) => {
  const result = Buffer.from(input);
  const at = random(result.length);
  if (result.length > 0) result[at] = (result[at] ?? 0) ^ (1 << random(8));
  return result;
};
const setByte: Mutation = (input, { random }) => {
  const result = Buffer.from(input);
  if (result.length > 0) result[random(result.length)] = BYTES[random(BYTES.length)] ?? 0;
  return result;
};
const insertBytes: Mutation = (input, { random }) =>
  inserted(input, random(input.length + 1), Buffer.alloc(1 + random(16), random(256)));
const insertWord: Mutation = (input, { random, dictionary }) =>
  inserted(input, random(input.length + 1), Buffer.from(dictionary[random(dictionary.length)] ?? "", "latin1"));
const overwriteWord: Mutation = (input, { random, dictionary }) => {
  const word = Buffer.from(dictionary[random(dictionary.length)] ?? "", "latin1");
  const at = random(input.length + 1);
  return Buffer.concat([input.subarray(0, at), word, input.subarray(at + word.length)]);
};
const remove: Mutation = (input, { random }) => {
  const at = random(input.length + 1);
  return Buffer.concat([input.subarray(0, at), input.subarray(at + 1 + random(input.length - at))]);
};
const repeat: Mutation = (input, { random }) => {
  const at = random(input.length + 1);
  const part = input.subarray(at, at + 1 + random(64));
  return inserted(input, at, Buffer.concat(new Array<Buffer>(1 + random(8)).fill(part)));
};
const move: Mutation = (input, { random }) => {
  const at = random(input.length + 1);
  const part = input.subarray(at, at + 1 + random(32));
  const rest = Buffer.concat([input.subarray(0, at), input.subarray(at + part.length)]);
  return inserted(rest, random(rest.length + 1), part);
};
const splice: Mutation = (input, { random, others }) => {
  const other = others[random(others.length)] ?? input;
  return Buffer.concat([input.subarray(0, random(input.length + 1)), other.subarray(random(other.length + 1))]);
};
const replaceNumber: Mutation = (input, { random }) => {
  const found = [...input.toString("latin1").matchAll(/\d+/g)];
  const match = found[random(found.length)];
  if (match === undefined) return input;
  const number = Buffer.from(NUMBERS[random(NUMBERS.length)] ?? "0");
  return Buffer.concat([input.subarray(0, match.index), number, input.subarray(match.index + match[0].length)]);
};
const writeInteger: Mutation = (input, { random }) => {
  const result = Buffer.from(input);
  const size = 1 << random(3);
  if (result.length < size) return result;
  const value = random(2) === 0 ? random(input.length + 2) : 2 ** (8 * size) - 1 - random(4);
  result.writeUIntBE(value % 2 ** (8 * size), random(result.length - size + 1), size);
  return result;
};

const MUTATIONS: readonly Mutation[] = [
  flipBit,
  setByte,
  insertBytes,
  insertWord,
  insertWord,
  overwriteWord,
  remove,
  repeat,
  move,
  splice,
  replaceNumber,
  writeInteger,
];

function inserted(input: Buffer, at: number, part: Buffer): Buffer {
  return Buffer.concat([input.subarray(0, at), part, input.subarray(at)]);
}
