import { derItems } from "./der-reader.ts";

/** `[3]` of a TBSCertificate: its extensions. */
const EXTENSIONS = 0xa3;
const OCTET_STRING = 0x04;
const SUBJECT_ALT_NAME = Buffer.from([0x55, 0x1d, 0x11]);
/** Choice `uniformResourceIdentifier` of GeneralName. */
const URI = 0x86;

/**
 * URIs among the alternative names of a DER certificate. The small sister of `certificateUris()` for the agent, which
 * cannot afford a whole X.509 library; Node's text form of the names is not used, since names with commas could forge it.
 */
export function uriNames(certificate: Buffer): readonly string[] {
  const [tbs] = derItems(derItems(certificate)[0]?.body ?? Buffer.alloc(0));
  const extensions = derItems(tbs?.body ?? Buffer.alloc(0)).find(({ tag }) => tag === EXTENSIONS);
  const [list] = derItems(extensions?.body ?? Buffer.alloc(0));
  return derItems(list?.body ?? Buffer.alloc(0))
    .map(({ body }) => derItems(body))
    .filter(([id]) => id?.body.equals(SUBJECT_ALT_NAME))
    .flatMap((extension) => extension.filter(({ tag }) => tag === OCTET_STRING))
    .flatMap(({ body }) => derItems(body))
    .flatMap(({ body }) => derItems(body))
    .filter(({ tag }) => tag === URI)
    .map(({ body }) => body.toString("latin1"));
}
