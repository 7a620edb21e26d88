import assert from "node:assert/strict";
import { test } from "node:test";
import { compileTemplate } from "@mizzen/go-template/template";
import { Struct, toValue } from "@mizzen/go-template/value";
import { messageValue } from "#config/mesh/message-value.ts";
import { goStruct } from "../kubernetes/go-value.ts";
import { cleanProxyConfig } from "../mesh/clean-proxy-config.ts";
import { templateFunctions } from "./template-functions.ts";

const POD = goStruct("PodSpec", {
  containers: [
    {
      name: "app",
      ports: [{ containerPort: 80 }, { containerPort: 53, protocol: "UDP" }],
      resources: { limits: { cpu: "1" } },
    },
    { name: "istio-proxy", ports: [{ containerPort: 15090, name: "p" }] },
  ],
});
const DATA = new Struct("Data", {
  Meta: goStruct("ObjectMeta", { annotations: { a: "1", json: '{"x": {"key": "z"}}' }, labels: { l: "v" } }),
  Spec: POD,
  Config: messageValue("ProxyConfig", {
    drainDuration: "90s",
    concurrency: 2,
    proxyMetadata: { B: "2", A: "1" },
    statusPort: 15020,
  }),
  Values: toValue({ empty: "", nil: null, list: [1, null], map: { a: null, b: { c: null } } }),
});

function render(source: string): string {
  return compileTemplate(source, { name: "t", functions: templateFunctions({ HOME: "/root" }) }).execute(DATA);
}

const CASES: readonly (readonly [source: string, text: string])[] = [
  ['{{ annotation .Meta "a" 5 }} {{ annotation .Meta "b" 5 }} {{ annotation .Meta "b" .Values.none }}', "1 5 <nil>"],
  [
    '{{ isset .Meta.Annotations "a" }} {{ isset .Meta.Annotations "b" }} {{ index .Meta.Labels "none" | default "d" }}',
    "true false d",
  ],
  ["{{ includeInboundPorts .Spec.Containers }} {{ applicationPorts .Spec.Containers }}", "80,15090 80"],
  [
    '{{ excludeInboundPort 15020 " 4 ,5" }} {{ excludeInboundPort "0" "4" }} {{ excludeInboundPort 4.0 "4" }}',
    "4,5,15020 4 4",
  ],
  ['{{ contains "/" "a/b" }} {{ toLower "AbC" }} {{ directory "/a/b/c.pem" }}', "true abc /a/b/"],
  ["{{ formatDuration .Config.DrainDuration }} {{ formatDuration .Config.FileFlushInterval }}", "1m30s 0s"],
  ["{{ protoToJSON .Config }}", '{"drainDuration":"90s","concurrency":2,"proxyMetadata":{"A":"1","B":"2"}}'],
  ["{{ structToJSON (index (index .Spec.Containers 1).Ports 0) }}", '{"containerPort":15090,"name":"p"}'],
  [
    "{{ (index .Spec.Containers 0).Resources.Limits.cpu }} {{ .Spec.ServiceAccountName | quote }} {{ .Spec.HostNetwork }}",
    '1 "" false',
  ],
  [
    "{{ if .Spec.SecurityContext }}set{{ else }}nil{{ end }} {{ .Spec.TerminationGracePeriodSeconds }}",
    "nil <no value>",
  ],
  [
    "{{ .Config.InterceptionMode }} {{ .Config.Concurrency.GetValue }} {{ .Config.HoldApplicationUntilProxyStarts.GetValue }}",
    "REDIRECT 2 false",
  ],
  [
    "{{ if .Config.GetTracing.GetTlsSettings }}tls{{ end }}{{ .Config.GetTracing.GetTlsSettings.GetCaCertificates }}",
    "",
  ],
  [
    '{{ range $k, $v := fromJSON (index .Meta.Annotations "json") }}{{ $k }}: {{ toYaml $v | indent 2 }}{{ end }}',
    "x: key: z\n  ",
  ],
  ['{{ fromJSON "no" }} {{ valueOrDefault .Values.empty "d" }} {{ valueOrDefault false "d" }}', "{} d false"],
  ["{{ toJson (omitNil .Values.map) }} {{ toJson (omitNil .Values.list) }}", "null [1]"],
  ['{{ env "HOME" "x" }} {{ env "NONE" "x" }}', "/root x"],
  [
    '{{ toJsonMap (strdict "a" "b") (strdict "c" "d") }} {{ omit (strdict "a" "b") "a" | toJson }}',
    '{"a":"b","c":"d"} {}',
  ],
];

for (const [source, text] of CASES) {
  test(`${source} gives ${JSON.stringify(text)}`, () => assert.equal(render(source), text));
}

test("annotation needs metadata", () => {
  assert.throws(() => render('{{ annotation .Values "a" 1 }}'), /needs the metadata of an object/);
});

test("a proxy configuration is written with fields in the order of their messages, also inside of others", () => {
  const json = {
    readinessProbe: { httpGet: { port: 1, path: "/" }, periodSeconds: 3 },
    tracing: { sampling: 1, customTags: { b: { literal: { value: "x" } }, a: { header: { name: "h" } } } },
    runtimeValues: { z: "1", y: "2" },
  };
  assert.equal(
    JSON.stringify(cleanProxyConfig(json)),
    '{"tracing":{"customTags":{"a":{"header":{"name":"h"}},"b":{"literal":{"value":"x"}}},"sampling":1},"runtimeValues":{"y":"2","z":"1"},"readinessProbe":{"periodSeconds":3,"httpGet":{"path":"/","port":1}}}',
  );
});

test("a proxy configuration keeps an empty message, which replaces another, and drops what equals the default", () => {
  const json = {
    tracing: {},
    proxyHeaders: {},
    envoyAccessLogService: {},
    proxyMetadata: {},
    runtimeValues: {},
    statusPort: 15020,
    drainDuration: "45s",
    concurrency: 0,
  };
  assert.equal(
    JSON.stringify(cleanProxyConfig(json)),
    '{"concurrency":0,"tracing":{},"envoyAccessLogService":{},"proxyHeaders":{}}',
  );
});
