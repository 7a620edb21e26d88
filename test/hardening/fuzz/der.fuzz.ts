/** DER of certificates and CSRs. */
import assert from "node:assert/strict";
import { MeshError } from "#lib/mesh-error.ts";
import { requestedPublicKey } from "#lib/pki/certificate-request.ts";
import { pem } from "#lib/pki/der.ts";
import { derItems } from "#lib/pki/der-reader.ts";
import { uriNames } from "#lib/pki/uri-names.ts";
import { type FuzzTarget, readOrReject } from "./target.ts";

const OUT_OF_RANGE = /^a DER (value|length) of|out of range|buffer bounds/;

export const target: FuzzTarget = {
  maxBytes: 2048,
  dictionary: [
    "\x30\x82",
    "\x30\x03",
    "\x06\x03\x55\x1d\x11",
    "\x86\x0bspiffe://a/",
    "\x02\x01\x00",
    "\x04\x82",
    "\xa3\x82",
    "\x03\x01\x00",
    "\xa0\x00",
  ],
  async run(input) {
    const items = readOrReject(() => derItems(input), OUT_OF_RANGE);
    const bodies = items?.reduce((sum, { body }) => sum + body.length, 0) ?? 0;
    assert.ok(bodies <= input.length, "values do not overlap");
    readOrReject(() => uriNames(input), OUT_OF_RANGE);
    await requestedPublicKey(pem("CERTIFICATE REQUEST", input)).catch((thrown: unknown) => {
      if (!(thrown instanceof MeshError)) throw thrown;
    });
  },
};
