import assert from "node:assert/strict";
import { test } from "node:test";
import { isVersion, releasedChangelog, withVersion } from "./release-version.ts";

test("isVersion() accepts semantic versions only", () => {
  for (const version of ["0.1.0", "1.20.3", "2.0.0-rc.1"]) assert.ok(isVersion(version), version);
  for (const text of ["", "1.0", "v1.0.0", "01.0.0", "1.0.0 ", "1.0.0; rm -rf /"]) assert.ok(!isVersion(text), text);
});

test("releasedChangelog() dates the section of the version and gives its text as notes", () => {
  const changelog = "# Changelog\n\n## 0.2.0 (unreleased)\n\n- New.\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n";
  const released = releasedChangelog(changelog, "0.2.0", "2026-12-24");
  assert.equal(released?.notes, "- New.\n");
  assert.match(released?.changelog ?? "", /^## 0\.2\.0 \(2026-12-24\)$/m);
});

test("releasedChangelog() needs an unreleased section with some text", () => {
  assert.equal(releasedChangelog("## 0.1.0 (2026-01-01)\n\n- Old.\n", "0.1.0", "2026-12-24"), undefined);
  assert.equal(
    releasedChangelog("## 0.2.0 (unreleased)\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n", "0.2.0", "2026-12-24"),
    undefined,
  );
});

test("withVersion() changes as many places as are expected, or none", () => {
  const change = { from: "0.1.0", to: "0.2.0" };
  assert.equal(withVersion('export const VERSION = "0.1.0";', change, 1), 'export const VERSION = "0.2.0";');
  assert.equal(withVersion("nothing", change, 1), undefined);
  assert.equal(withVersion("version: 0.1.0\nappVersion: 0.1.0\n", change, 1), undefined);
});
