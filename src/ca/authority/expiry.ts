/** How near the end of the authority's own certificates is, for log and status page; metrics.ts has it in numbers. */
import type { X509Certificate } from "node:crypto";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import type { AuthorityStatus, CertificateStatus } from "#model/ports.ts";
import type { Authority } from "./authority.ts";

const DAY_MS = 86_400_000;
const CHECK_INTERVAL_MS = 3_600_000;
/** A warning is given when so many days are left; 0: it has ended. */
const WARNING_DAYS = [0, 1, 7, 30] as const;
type WarningDays = (typeof WARNING_DAYS)[number];

/** The last warning that is due, by days; undefined when there is time. */
export function dueWarning(end: Date, now: number): WarningDays | undefined {
  return WARNING_DAYS.find((days) => end.getTime() - now <= days * DAY_MS);
}

/** Whether and when each certificate of the authority ends. */
export function authorityStatus({ bundle }: Authority, now: number): AuthorityStatus {
  const status = (certificate: X509Certificate) => certificateStatus(certificate, now);
  return { signing: bundle.path.map(status), roots: bundle.roots.map(status) };
}

function certificateStatus({ subject, serialNumber, validToDate }: X509Certificate, now: number): CertificateStatus {
  const due = dueWarning(validToDate, now);
  return {
    subject: subject.replaceAll("\n", ", "),
    serial: serialNumber,
    expires: validToDate.toISOString(),
    daysLeft: Math.floor((validToDate.getTime() - now) / DAY_MS),
    warning:
      due === undefined
        ? undefined
        : due === 0
          ? "has ended"
          : `ends in ${due === 1 ? "a day" : `${due} days`} or less`,
  };
}

export interface ExpiryWarnerInput {
  readonly authority: Authority;
  readonly log: Logger;
  readonly now: () => number;
}

/**
 * Says in the log when certificates on the way from the signing one to its root come to their end: once for each
 * threshold. Roots that are trusted beside it may end, that is the end of every rotation.
 */
export class ExpiryWarner {
  readonly #input: ExpiryWarnerInput;
  readonly #said = new Map<string, WarningDays>();

  constructor(input: ExpiryWarnerInput) {
    this.#input = input;
  }

  check(): void {
    const { authority, log, now } = this.#input;
    for (const certificate of authority.bundle.path) {
      const { fingerprint256, validToDate } = certificate;
      const due = dueWarning(validToDate, now());
      if (due === undefined || due === this.#said.get(fingerprint256)) continue;
      this.#said.set(fingerprint256, due);
      const { subject, serial, expires, daysLeft } = certificateStatus(certificate, now());
      const fields = { subject, serial, expires, daysLeft };
      if (due === 0) log.error("a certificate of the CA has ended: nothing can be signed", fields);
      else log.warn(`a certificate of the CA ends within ${due === 1 ? "a day" : `${due} days`}`, fields);
    }
  }

  /** Looks every hour, and when the authority's files are replaced, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    using listening = new DisposableStack();
    listening.defer(this.#input.authority.onReplaced(() => this.check()));
    while (!signal.aborted) {
      this.check();
      await sleep(CHECK_INTERVAL_MS, signal);
    }
  }
}
