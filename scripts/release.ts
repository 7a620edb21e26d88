/**
 * Makes a release from a clean checkout of `main` whose tests have passed: `make release VERSION=0.2.0`.
 *
 *   checks ──▶ version and changelog ──▶ commit and tag ──▶ dist/release: archive, npm packages, SBOM, notes, checksums
 *
 * Nothing leaves the machine: push the commit and the tag, and publish the files, when you have looked at them.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isVersion, releasedChangelog, withVersion } from "./release-version.ts";

const root = join(import.meta.dirname, "..");
const output = join(root, "dist/release");
const version = process.argv[2] ?? "";

/** Files beside those of npm that name the version, and how often. */
const NAMING = { "src/lib/version.ts": 1, "manifests/chart/Chart.yaml": 2, "manifests/chart/values.yaml": 1 };

const former = String(JSON.parse(read("package.json")).version);
const released = releasedChangelog(read("CHANGELOG.md"), version, new Date().toISOString().slice(0, 10));
checkState();
if (released === undefined) fail(`CHANGELOG.md has no section "## ${version} (unreleased)" with a text`);

say(`releasing ${version}`);
if (version !== former) setVersion();
writeFileSync(join(root, "CHANGELOG.md"), released.changelog);
run("git", ["commit", "--quiet", "--all", "--message", `chore: release ${version}`]);
run("git", ["tag", "--annotate", `v${version}`, "--message", `Mizzen ${version}\n\n${released.notes}`]);

say("building");
run("make", ["--silent", "build"]);
rmSync(output, { recursive: true, force: true });
mkdirSync(output, { recursive: true });
run("node", ["scripts/sbom.ts", join(output, `mizzen-${version}.cdx.json`)]);
run("npm", ["pack", "--silent", "--pack-destination", output]);
for (const folder of readdirSync(join(root, "packages"))) packPackage(folder);
packArchive();
writeFileSync(join(output, "RELEASE_NOTES.md"), `# Mizzen ${version}\n\n${released.notes}`);
writeFileSync(join(output, "SHA256SUMS"), checksums());

say(`done: ${output}`);
for (const name of readdirSync(output).sort()) say(`  ${name}`);
say(`next: git push origin main v${version}, and publish the files`);

function checkState(): void {
  if (!isVersion(version)) fail(`"${version}" is no version: run make release VERSION=0.2.0`);
  if (git("status", "--porcelain") !== "") fail("the checkout has uncommitted changes: commit or stash them");
  if (git("rev-parse", "--abbrev-ref", "HEAD") !== "main") fail("releases are made from main: git switch main");
  if (git("tag", "--list", `v${version}`) !== "") fail(`the tag v${version} exists already`);
}

function setVersion(): void {
  run("npm", ["version", version, "--no-git-tag-version", "--workspaces", "--include-workspace-root", "--silent"]);
  for (const [file, times] of Object.entries(NAMING)) {
    const text = withVersion(read(file), { from: former, to: version }, times);
    writeFileSync(join(root, file), text ?? fail(`${file} does not name the version ${former} ${times} times`));
  }
}

/** A workspace package as JavaScript with declarations: in the checkout its entries are sources. */
function packPackage(folder: string): void {
  const staged = mkdtempSync(join(tmpdir(), "mizzen-package-"));
  try {
    const from = join(root, "packages", folder);
    for (const file of ["README.md"]) cpSync(join(from, file), join(staged, file));
    cpSync(join(root, "LICENSE"), join(staged, "LICENSE"));
    const files = globSync("src/**/*.ts", { cwd: from }).filter((file) => !/\.test\.ts$|testdata/.test(file));
    const options = [
      "--noEmit",
      "false",
      "--incremental",
      "false",
      "--declaration",
      "--rewriteRelativeImportExtensions",
    ];
    const project = join(staged, "tsconfig.json");
    writeFileSync(
      project,
      JSON.stringify({
        extends: join(root, "tsconfig.json"),
        compilerOptions: {
          rootDir: join(from, "src"),
          outDir: join(staged, "dist"),
          typeRoots: [join(root, "node_modules/@types")],
        },
        files: files.map((file) => join(from, file)),
        include: [],
      }),
    );
    run("tsc", ["--project", project, ...options]);
    rmSync(project);
    const description = JSON.parse(readFileSync(join(from, "package.json"), "utf8"));
    const exports = Object.entries<string>(description.exports).map(([name, source]) => {
      const built = source.replace("./src/", "./dist/").replace(/\.ts$/, "");
      return [name, { types: `${built}.d.ts`, default: `${built}.js` }];
    });
    const published = { ...description, exports: Object.fromEntries(exports), files: ["dist"] };
    writeFileSync(join(staged, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
    run("npm", ["pack", "--silent", "--pack-destination", output], staged);
  } finally {
    rmSync(staged, { recursive: true });
  }
}

/** All that a machine without npm needs besides Envoy: the npm package, unpacked, with Node. */
function packArchive(): void {
  const staged = mkdtempSync(join(tmpdir(), "mizzen-archive-"));
  const name = `mizzen-${version}-linux-${process.arch}`;
  try {
    run("tar", ["-xzf", join(output, `mizzen-${version}.tgz`), "-C", staged]);
    const node = join(staged, "package/node_modules/.bin");
    mkdirSync(node, { recursive: true });
    cpSync(process.execPath, join(node, "node"), { dereference: true });
    run("tar", ["-czf", join(output, `${name}.tar.gz`), `--transform=s,^package,${name},`, "-C", staged, "package"]);
  } finally {
    rmSync(staged, { recursive: true });
  }
}

/** In the form that `sha256sum --check` reads. */
function checksums(): string {
  const lines = readdirSync(output)
    .sort()
    .map(
      (name) =>
        `${createHash("sha256")
          .update(readFileSync(join(output, name)))
          .digest("hex")}  ${name}`,
    );
  return `${lines.join("\n")}\n`;
}

function read(file: string): string {
  return readFileSync(join(root, file), "utf8");
}

function git(...args: readonly string[]): string {
  return execFileSync("git", [...args], { cwd: root, encoding: "utf8" }).trim();
}

function run(command: string, args: readonly string[], cwd = root): void {
  execFileSync(command, [...args], { cwd, stdio: ["ignore", "ignore", "inherit"] });
}

function say(line: string): void {
  console.error(`release: ${line}`);
}

function fail(reason: string): never {
  say(reason);
  process.exit(1);
}
