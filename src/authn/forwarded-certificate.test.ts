import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { forwardedCertificateAuthenticator } from "./forwarded-certificate.ts";

const authenticate = forwardedCertificateAuthenticator({
  ranges: ["10.1.0.0/16", "2001:db8::/32"],
  trustDomains: () => ["mesh.example.com", "old.example.com"],
});
const WEB = "spiffe://mesh.example.com/ns/shop/sa/web";

async function told(forwarded: string | undefined, peer = "10.1.2.3:4567"): Promise<string> {
  const result = await authenticate({ authorization: undefined, certificate: undefined, forwarded, peer });
  if (result === undefined) return "nothing";
  return "caller" in result ? result.caller.identity : result.refused;
}

describe("forwardedCertificateAuthenticator()", () => {
  test("believes what a trusted gateway tells", async () => {
    const result = await authenticate({
      authorization: undefined,
      certificate: undefined,
      forwarded: `By=spiffe://a;Hash=h;Subject="CN=a;b,c";URI=${WEB};DNS=a.b`,
      peer: "10.1.2.3:4567",
    });
    const caller = { identity: WEB, namespace: "shop", serviceAccount: "web", provedBy: "certificate" };
    assert.deepEqual(result, { caller });
    for (const peer of ["127.0.0.1:1", "[::1]:1", "[2001:db8::9]:1"]) {
      assert.equal(await told(`URI=${WEB}`, peer), WEB, peer);
    }
  });

  test("believes nobody else", async () => {
    for (const peer of ["10.2.0.1:1", "[2001:db9::1]:1", "", "unix", "10.1.2.3.4:1"]) {
      assert.match(await told(`URI=${WEB}`, peer), /is not believed/, peer);
    }
  });

  test("has nothing to say without the header", async () => assert.equal(await told(undefined), "nothing"));

  test("of several hops takes the one that the gateway has seen", async () => {
    const chain = `Hash=a;Cert="-----BEGIN%20,x;y";Subject="O=Acme\\, \\"Inc\\"";URI=spiffe://mesh.example.com/ns/a/sa/a`;
    assert.equal(await told(`${chain},By=spiffe://g;URI=${WEB}`), WEB);
    assert.equal(await told(`${chain}, uri="${WEB}" `), WEB);
  });

  test("takes identities of the mesh's trust domains", async () => {
    const old = WEB.replace("mesh", "old");
    assert.equal(await told(`URI=${old}`), old);
    assert.match(await told(`URI=${WEB.replace("mesh", "other")}`), /is of trust domain "other\.example\.com"/);
  });

  test("refuses a header that tells of no or several identities", async () => {
    const twice = `URI=${WEB};URI=${WEB}`;
    for (const header of ["", "junk xfcc header", "Hash=h", twice, "URI=", "URI=https://a", '"', `URI="${WEB}`]) {
      assert.match(await told(header), /does not tell of exactly one identity/, header);
    }
  });

  test("reads a long header of nothing but quotes in no time", async () => {
    const started = performance.now();
    await told(`${'"\\'.repeat(20_000)}x`);
    assert.ok(performance.now() - started < 500);
  });
});
