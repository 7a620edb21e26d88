/** What a release changes in the texts of the repository. Pure. */

/** A version such as `0.1.0` or `1.0.0-rc.1`. */
export function isVersion(text: string): boolean {
  return /^(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z.-]+)?$/.test(text);
}

export interface Released {
  /** The changelog with the day of the release. */
  readonly changelog: string;
  /** What the release changes, for the tag and the release page. */
  readonly notes: string;
}

/** Dates the unreleased section of a changelog; undefined if there is none for this version, or if it is empty. */
export function releasedChangelog(changelog: string, version: string, day: string): Released | undefined {
  const heading = `## ${version} (unreleased)\n`;
  const start = changelog.indexOf(heading);
  if (start < 0) return undefined;
  const after = start + heading.length;
  const next = changelog.indexOf("\n## ", after);
  const notes = changelog.slice(after, next < 0 ? undefined : next).trim();
  if (notes === "") return undefined;
  return { changelog: changelog.replace(heading, `## ${version} (${day})\n`), notes: `${notes}\n` };
}

/** A text that names the former version `times` times, with the new one instead; undefined if it names it otherwise. */
export function withVersion(text: string, change: VersionChange, times: number): string | undefined {
  const parts = text.split(change.from);
  return parts.length === times + 1 ? parts.join(change.to) : undefined;
}

export interface VersionChange {
  readonly from: string;
  readonly to: string;
}
