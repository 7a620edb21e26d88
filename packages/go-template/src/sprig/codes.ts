/** Sprig's encodings and checksums. */
import { createHash } from "node:crypto";
import { withoutTrailing } from "@mizzen/go-text/trim";
import { textArgument as text } from "../functions.ts";
import { bytesOf, type Callable } from "../value.ts";

export const CODE_FUNCTIONS: Readonly<Record<string, Callable>> = {
  b64enc: (value) => Buffer.from(text(value)).toString("base64"),
  b64dec: (value) => decoded64(text(value)),
  b32enc: (value) => base32(bytesOf(text(value))),
  b32dec: (value) => decoded32(text(value)),
  sha1sum: (value) => checksum("sha1", text(value)),
  sha256sum: (value) => checksum("sha256", text(value)),
  sha512sum: (value) => checksum("sha512", text(value)),
  adler32sum: (value) => adler32(bytesOf(text(value))),
};

function checksum(kind: string, value: string): string {
  return createHash(kind).update(value).digest("hex");
}

/** Sprig gives the reason as the text when there is nothing to decode; lines may be broken. */
function decoded64(value: string): string {
  const letters = value.replace(/[\r\n]/g, "");
  const wrong = /[^A-Za-z0-9+/]/.exec(letters.replace(/={0,2}$/, ""));
  if (wrong !== null || letters.length % 4 !== 0)
    return `illegal base64 data at input byte ${wrong?.index ?? 4 * Math.floor(letters.length / 4)}`;
  return Buffer.from(letters, "base64").toString();
}

const LETTERS_32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

function base32(bytes: Buffer): string {
  const bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  const letters = (bits.match(/.{1,5}/g) ?? []).map((five) => LETTERS_32[Number.parseInt(five.padEnd(5, "0"), 2)]);
  return letters.join("").padEnd(8 * Math.ceil(letters.length / 8), "=");
}

function decoded32(value: string): string {
  const letters = [...withoutTrailing(value, "=")];
  const wrong = letters.findIndex((letter) => !LETTERS_32.includes(letter));
  if (wrong >= 0) return `illegal base32 data at input byte ${wrong}`;
  const bits = letters.map((letter) => LETTERS_32.indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2))).toString();
}

const ADLER_PRIME = 65_521;

function adler32(bytes: Buffer): string {
  let [a, b] = [1, 0];
  for (const byte of bytes) {
    a = (a + byte) % ADLER_PRIME;
    b = (b + a) % ADLER_PRIME;
  }
  return String(b * 65_536 + a);
}
