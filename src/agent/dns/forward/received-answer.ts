/** What a name server sent: an answer that can be passed on, or nothing of use. */
import { HEADER_BYTES, isResponse, type Query } from "../message.ts";
import { isReadable, readRecords } from "../records.ts";

const ID_BYTES = 2;

/** `strange` is an answer to somebody else. */
export type Received = { readonly answer: Buffer } | { readonly problem: string } | "strange";

/** Reads a message as far as to know that whoever asked can read it. Only what bears the id of the question is about it. */
export function receivedAnswer(message: Buffer, query: Query): Received {
  if (message.length < ID_BYTES || message.readUInt16BE(0) !== query.bytes.readUInt16BE(0)) return "strange";
  if (message.length < HEADER_BYTES) return { problem: `sent ${message.length} bytes, which is no answer` };
  if (!isResponse(message)) return { problem: "sent a question in place of an answer" };
  if (message.length === HEADER_BYTES || message.readUInt16BE(4) === 0) return { problem: WITHOUT_QUESTION };
  if (!isComplete(message)) return { problem: "sent an answer that cannot be read" };
  return repeatsQuestion(message, query) ? { answer: message } : { problem: "answered another question" };
}

/** What is about no question may be about any. Servers that leave it out of an error have not answered either. */
const WITHOUT_QUESTION = "sent an answer without the question";

function isComplete(message: Buffer): boolean {
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

const TYPE_AND_CLASS_BYTES = 4;

/** Some servers change the case of letters of the name. */
function repeatsQuestion(message: Buffer, { bytes, questionEnd }: Query): boolean {
  const nameEnd = questionEnd - TYPE_AND_CLASS_BYTES;
  const name = (of: Buffer) => of.toString("latin1", HEADER_BYTES, nameEnd).toLowerCase();
  const isSameType = message.subarray(nameEnd, questionEnd).equals(bytes.subarray(nameEnd, questionEnd));
  return message.readUInt16BE(4) === 1 && isSameType && name(message) === name(bytes);
}
