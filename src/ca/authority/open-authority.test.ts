import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { createLogger, SILENT } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { CA_FILE_NAMES, isOwnFolder, writeCaFolder } from "../keys/ca-folder.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import type { CaFiles } from "../keys/signing-bundle.ts";
import type { Authority } from "./authority.ts";
import { openAuthority, reloadAuthority } from "./open-authority.ts";

const DAY = 86_400_000;

describe("openAuthority()", () => {
  let parent: string;
  let folder: string;
  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), "ca-"));
    folder = join(parent, "etc/cacerts");
  });
  afterEach(() => rmSync(parent, { recursive: true }));

  function open(): Promise<Authority> {
    return openAuthority({
      folder,
      trustDomain: "cluster.local",
      rootLifetimeMs: 3650 * DAY,
      rootKey: "P-256",
      defaultTtlMs: DAY,
      maxTtlMs: 90 * DAY,
      now: Date.now,
      log: SILENT,
    });
  }

  function newCa(): Promise<CaFiles> {
    return selfSignedCa({ trustDomain: "cluster.local", lifetimeMs: DAY, keyKind: "P-256", now: Date.now() });
  }

  const mode = (name: string) => statSync(join(folder, name)).mode & 0o777;

  test("makes a root on the first start and finds it again on the next", async () => {
    const first = await open();
    const second = await open();
    assert.equal(second.trustBundle(), first.trustBundle());
    assert.equal(readFileSync(join(folder, "root-cert.pem"), "utf8"), first.trustBundle());
  });

  test("makes one root for several control planes that start at the same time", async () => {
    const [first, ...others] = await Promise.all([open(), open(), open(), open()]);
    for (const other of others) {
      assert.equal(other.trustBundle(), first.trustBundle());
      assert.equal(other.bundle.issuer.certificate.serialNumber, first.bundle.issuer.certificate.serialNumber);
    }
  });

  test("leaves the key to its owner alone and the root to everybody, whatever the umask", async () => {
    const umask = process.umask(0o077);
    try {
      await open();
    } finally {
      process.umask(umask);
    }
    assert.equal(mode("ca-key.pem"), 0o600);
    assert.equal(mode("root-cert.pem"), 0o644);
    assert.equal(mode("."), 0o755);
    assert.deepEqual(readdirSync(folder).sort(), [...Object.values(CA_FILE_NAMES), "istio-generated"].sort());
  });

  for (const name of Object.values(CA_FILE_NAMES)) {
    test(`says that ${name} is missing instead of making a new root`, async () => {
      await open();
      rmSync(join(folder, name));
      await assert.rejects(open(), {
        code: "CA_FILES_INCOMPLETE",
        message: new RegExp(`is incomplete: ${name} missing`),
      });
    });
  }

  const asTlsSecret = ({ certificatePem, keyPem, rootPem }: CaFiles) => {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "tls.crt"), certificatePem);
    writeFileSync(join(folder, "tls.key"), keyPem);
    writeFileSync(join(folder, "ca.crt"), rootPem);
  };

  test("signs with a Secret of type kubernetes.io/tls, whatever else is in the folder", async () => {
    const files = await newCa();
    asTlsSecret(files);
    const { bundle } = await open();
    assert.equal(bundle.rootPem, files.rootPem);
    assert.deepEqual(bundle.chain, [files.certificatePem, files.rootPem]);
    assert.deepEqual(readdirSync(folder).sort(), ["ca.crt", "tls.crt", "tls.key"]);

    await writeCaFolder(folder, await newCa());
    assert.equal((await open()).bundle.rootPem, files.rootPem);
    assert.equal(isOwnFolder(folder), false);
  });

  test("names the files of a Secret of type kubernetes.io/tls that are missing or wrong", async () => {
    asTlsSecret(await newCa());
    rmSync(join(folder, "ca.crt"));
    await assert.rejects(open(), { code: "CA_FILES_INCOMPLETE", message: /is incomplete: ca\.crt missing/ });
    writeFileSync(join(folder, "ca.crt"), (await newCa()).rootPem);
    await assert.rejects(open(), (thrown) => /certificate in tls\.crt does not lead to a root/.test(errorText(thrown)));
  });

  test("starts anew when only the remains of an interrupted first start are there", async () => {
    mkdirSync(join(folder, ".new-abc"), { recursive: true });
    writeFileSync(join(folder, ".new-abc/ca-key.pem"), "half");
    await open();
    assert.ok(existsSync(join(folder, "ca-key.pem")));
  });

  test("names the folder when a file in it is broken", async () => {
    await open();
    writeFileSync(join(folder, "ca-key.pem"), "garbage");
    await assert.rejects(open(), { code: "CA_FILES_INVALID", message: new RegExp(`"${folder}" \\(ROOT_CA_DIR\\)`) });
  });

  test("says that the root cannot be kept when the folder is a file", async () => {
    mkdirSync(join(parent, "etc"));
    writeFileSync(folder, "");
    await assert.rejects(open(), { code: /CA_FILES_INVALID|CA_FOLDER_UNWRITABLE/ });
  });

  describe("and reloadAuthority()", () => {
    const INTERVAL_MS = 10;

    async function watched(): Promise<{ authority: Authority; lines: string[]; stop: () => void }> {
      const authority = await open();
      const lines: string[] = [];
      const log = createLogger({ write: (line) => lines.push(line) });
      const stopping = new AbortController();
      const input = { authority, folder, log, now: Date.now, intervalMs: INTERVAL_MS };
      reloadAuthority(input, stopping.signal);
      return { authority, lines, stop: () => stopping.abort() };
    }

    /** Until the condition holds; the test runner's timeout ends it otherwise. */
    async function until(condition: () => boolean): Promise<void> {
      while (!condition()) await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
    }

    test("take new files that share a root with the old ones", async () => {
      const { authority, stop } = await watched();
      const next = await newCa();
      const old = authority.trustBundle();
      await writeCaFolder(folder, { ...next, rootPem: next.rootPem + old });
      await until(() => authority.trustBundle() === next.rootPem + old);
      stop();
    });

    test("follow a Secret of type kubernetes.io/tls", async () => {
      asTlsSecret(await newCa());
      const { authority, stop } = await watched();
      const next = await newCa();
      const rootPem = next.rootPem + authority.trustBundle();
      asTlsSecret({ ...next, rootPem });
      await until(() => authority.trustBundle() === rootPem);
      stop();
    });

    test("keep the old files when the new root is a stranger", async () => {
      const { authority, lines, stop } = await watched();
      const old = authority.trustBundle();
      await writeCaFolder(folder, await newCa());
      // While only some of the files are written, they do not fit together: that is said before.
      await until(() => /error\tchanged CA files are not used.*no root in common/.test(lines.join("")));
      assert.equal(authority.trustBundle(), old);
      stop();
    });

    test("keep the old files when the new ones do not fit together", async () => {
      const { authority, lines, stop } = await watched();
      const old = authority.trustBundle();
      writeFileSync(join(folder, "ca-key.pem"), (await newCa()).keyPem);
      chmodSync(join(folder, "ca-key.pem"), 0o600);
      await until(() => lines.length > 0);
      assert.match(lines.join(""), /ca-key\.pem does not belong to the certificate/);
      assert.equal(authority.trustBundle(), old);
      stop();
    });
  });
});
