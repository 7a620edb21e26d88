/** What a name server sent: an answer that can be passed on, or nothing of use. */
import { HEADER_BYTES, isResponse, type Query } from "./message.ts";
import { isReadable, readRecords } from "./records.ts";

/** `strange` is an answer to somebody else. */
export type Received = { readonly answer: Buffer } | { readonly problem: string } | "strange";

/** Reads a message as far as to know that whoever asked can read it. Only what bears the id of the question is about it. */
export function receivedAnswer(message: Buffer, query: Query): Received {
  if (message.length < HEADER_BYTES) return { problem: `sent ${message.length} bytes, which is no answer` };
  if (!isComplete(message)) return { problem: "sent an answer that cannot be read" };
  if (message.readUInt16BE(0) !== query.bytes.readUInt16BE(0)) return "strange";
  if (!isResponse(message)) return { problem: "sent a question in place of an answer" };
  if (message.length === HEADER_BYTES) return { answer: withQuestion(message, query) };
  return repeatsQuestion(message, query) ? { answer: message } : { problem: "answered another question" };
}

/** Some servers refuse by a header alone, whatever it says about what follows. */
function isComplete(message: Buffer): boolean {
  if (message.length === HEADER_BYTES) return true;
  const start = questionsEnd(message);
  const records = start === undefined ? undefined : readRecords(message, start);
  return records?.every((record) => isReadable(message, record)) ?? false;
}

/** Questions are not compressed: there is nothing before them. */
function questionsEnd(message: Buffer): number | undefined {
  let at = HEADER_BYTES;
  for (let left = message.readUInt16BE(4); left > 0; left--) {
    for (let length = message[at]; length !== 0; length = message[at]) {
      if (length === undefined || length > 63) return undefined;
      at += 1 + length;
    }
    at += 5;
  }
  return at <= message.length ? at : undefined;
}

/** Servers may leave the question out of an error, and some change the case of letters. */
function repeatsQuestion(message: Buffer, { bytes, questionEnd }: Query): boolean {
  const count = message.readUInt16BE(4);
  const text = (of: Buffer) => of.toString("latin1", HEADER_BYTES, questionEnd).toLowerCase();
  return count === 0 || (count === 1 && text(message) === text(bytes));
}

function withQuestion(header: Buffer, { bytes, questionEnd }: Query): Buffer {
  const answer = Buffer.from(bytes.subarray(0, questionEnd));
  header.copy(answer, 0, 0, 4);
  answer.writeUInt16BE(1, 4);
  answer.fill(0, 6, HEADER_BYTES);
  return answer;
}
