/** Names of hosts, namespaces and the like. Checks of a single value yield problems at the field `at`. */
import { error, type Problem } from "../schema/problem.ts";

const LABEL = /^[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?$/;
const WILDCARD_LABEL = /^(?:\*|(?:\*|\*-)?[a-zA-Z0-9](?:[-a-zA-Z0-9]*[a-zA-Z0-9])?)$/;
const MAX_LABEL = 63;
const MAX_NAME = 255;

/** Whether the text is one label of a DNS name: letters, digits and dashes, at most 63 of them. */
export function isDnsLabel(text: string): boolean {
  return text.length <= MAX_LABEL && LABEL.test(text);
}

/** A name that has to be one DNS label. */
export function* checkDnsLabel(text: string, at: string): Iterable<Problem> {
  if (!isDnsLabel(text)) {
    yield error(at, `must be a DNS label (letters, digits and dashes, at most ${MAX_LABEL}), not "${text}"`);
  }
}

/** A complete host name without wildcard. */
export function* checkFqdn(name: string, at: string): Iterable<Problem> {
  const wrong = wrongLength(name) ?? wrongLabels(name, name);
  if (wrong !== undefined) yield error(at, wrong);
}

/** A host name whose first label may be, or start with, a wildcard. */
export function* checkHost(name: string, at: string): Iterable<Problem> {
  const wrong = wrongHost(name);
  if (wrong !== undefined) yield error(at, wrong);
}

/** What is wrong with a host name that may have a wildcard. */
export function wrongHost(name: string): string | undefined {
  const wrong = wrongLength(name);
  if (wrong !== undefined) return wrong;
  const dot = name.indexOf(".");
  const first = dot < 0 ? name : name.slice(0, dot);
  if (first.length > MAX_LABEL || !WILDCARD_LABEL.test(first)) return invalidLabel(name, first);
  return dot < 0 ? undefined : wrongLabels(name.slice(dot + 1), name);
}

/** A wildcard that is only a part of its label, such as `*foo.com`. */
export function isPartialWildcard(name: string): boolean {
  return name.includes("*") && name !== "*" && !name.startsWith("*.");
}

function wrongLength(name: string): string | undefined {
  if (name === "") return "must be a host name, not empty";
  return name.length > MAX_NAME ? `must be at most ${MAX_NAME} characters long` : undefined;
}

/** A trailing dot is allowed: it says that the name is complete. */
function wrongLabels(labels: string, name: string): string | undefined {
  const parts = labels.split(".");
  const last = parts.at(-1) ?? "";
  if (/^[-+]?\d+$/.test(last)) return `must not end in a number: "${name}"`;
  const wrong = parts.find((part, i) => !isDnsLabel(part) && !(part === "" && i === parts.length - 1));
  return wrong === undefined ? undefined : invalidLabel(name, wrong);
}

function invalidLabel(name: string, label: string): string {
  return `must be a host name, not "${name}": "${label}" is no DNS label`;
}
