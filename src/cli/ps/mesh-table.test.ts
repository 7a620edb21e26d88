import assert from "node:assert/strict";
import test from "node:test";
import { styleFor } from "#lib/print/style.ts";
import { formatMembers, formatPublished } from "./mesh-table.ts";

const PLAIN = styleFor({ isTTY: false }, {});

test("formatMembers() shows ports, readiness with its reason, and restarts when asked", () => {
  const web = {
    name: "web",
    namespace: "shop",
    address: "10.0.0.1",
    ports: [
      { name: "http", port: 80 },
      { name: "", port: 90 },
    ],
  };
  const rows = [
    { ...web, ready: true, reason: "", restarts: 0 },
    { ...web, name: "db", ports: [], ready: false, reason: "app exited with code 1", restarts: 3 },
  ];
  assert.equal(
    formatMembers(rows, PLAIN, true),
    `WORKLOAD   NAMESPACE   ADDRESS    PORTS   RESTARTS   READY
web        shop        10.0.0.1   80,90   0          yes
db         shop        10.0.0.1   -       3          no (app exited with code 1)
`,
  );
  assert.ok(!formatMembers(rows, PLAIN, false).includes("RESTARTS"));
});

test("formatPublished() lists addresses with what to open there, or nothing", () => {
  assert.equal(formatPublished([], PLAIN), "");
  const gateway = { address: "127.0.0.1:8080", member: "gw.istio-system", port: 80 };
  const pages = [
    { host: "*", path: "/page" },
    { host: "api.example.com", path: "/" },
  ];
  assert.equal(
    formatPublished(
      [
        { ...gateway, pages },
        { ...gateway, address: "127.0.0.1:81", pages: [] },
      ],
      PLAIN,
    ),
    `127.0.0.1:8080 leads to gw.istio-system, port 80
  open http://127.0.0.1:8080/page
  curl -H 'Host: api.example.com' http://127.0.0.1:8080/
127.0.0.1:81 leads to gw.istio-system, port 80
`,
  );
});
