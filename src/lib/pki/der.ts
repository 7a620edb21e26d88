/** Writes DER, the encoding of certificates and requests. Only what these need. */

const SEQUENCE = 0x30;
const SET = 0x31;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const BOOLEAN = 0x01;
const OBJECT_IDENTIFIER = 0x06;
const NULL = 0x05;
const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;
const CONTEXT = 0x80;
const CONSTRUCTED = 0x20;

/** One value with its tag and length. */
export type Der = Buffer;

/** Wraps contents that are encoded already. */
function encode(tag: number, ...contents: readonly Uint8Array[]): Der {
  const body = Buffer.concat(contents);
  return Buffer.concat([Buffer.from([tag, ...length(body.length)]), body]);
}

/** Below 128 one byte; else the number of length bytes and then those, the highest first. */
function length(size: number): number[] {
  if (size < 0x80) return [size];
  const bytes: number[] = [];
  for (let rest = size; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return [0x80 | bytes.length, ...bytes];
}

/** Items in a given order. */
export const sequence = (...items: readonly Der[]): Der => encode(SEQUENCE, ...items);
/** Items without an order. */
export const set = (...items: readonly Der[]): Der => encode(SET, ...items);
/** Bytes. */
export const octetString = (value: Uint8Array): Der => encode(OCTET_STRING, value);
/** The absence of parameters. */
export const nothing = (): Der => encode(NULL);
/** A boolean. */
export const truth = (value: boolean): Der => encode(BOOLEAN, Buffer.from([value ? 0xff : 0]));

/** A whole number below 128. */
export const smallInteger = (value: number): Der => encode(INTEGER, Buffer.from([value]));

/** A whole number from its bytes; the first must be neither zero nor above 0x7f, which would make it negative. */
export const positiveInteger = (bytes: Uint8Array): Der => encode(INTEGER, bytes);

/** A time to the second: in two-digit years up to 2049, as X.509 wants it, and in four digits from then on. */
export function time(date: Date): Der {
  const digits = date.toISOString().replaceAll(/[-:T]|\..*/g, "");
  const isShort = date.getUTCFullYear() >= 1950 && date.getUTCFullYear() < 2050;
  return encode(isShort ? UTC_TIME : GENERALIZED_TIME, Buffer.from(`${isShort ? digits.slice(2) : digits}Z`));
}

/** A bit string of whole bytes. */
export const bitString = (value: Uint8Array): Der => encode(BIT_STRING, Buffer.from([0]), value);

/** `[n]` around a value that keeps its own tag. */
export const explicit = (n: number, ...items: readonly Der[]): Der => encode(CONTEXT | CONSTRUCTED | n, ...items);

/** `[n]` in place of the tag of bytes. */
export const implicit = (n: number, value: Uint8Array): Der => encode(CONTEXT | n, value);

/** `[n]` in place of the tag of a string. */
export const implicitString = (n: number, value: string): Der => encode(CONTEXT | n, Buffer.from(value, "latin1"));

/** An object identifier from its dotted form. */
export function objectIdentifier(dotted: string): Der {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return encode(OBJECT_IDENTIFIER, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
}

function base128(value: number): number[] {
  const bytes = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(0x80 | (rest % 128));
  return bytes;
}

/** PEM with lines of 64 characters. */
export function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der.buffer, der.byteOffset, der.byteLength)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
