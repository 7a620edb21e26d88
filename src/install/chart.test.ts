import assert from "node:assert/strict";
import { test } from "node:test";
import { type Chart, readObjects, renderChart } from "./chart.ts";

const chart = (templates: Readonly<Record<string, string>>, files: Readonly<Record<string, string>> = {}): Chart => ({
  about: { name: "c", version: "1", appVersion: "2" },
  values: {},
  templates: new Map(Object.entries(templates)),
  files: new Map(Object.entries(files)),
});
const release = { name: "r", namespace: "home" };

test("renderChart() gives helpers, release and values to templates, and leaves out what renders to nothing", () => {
  const files = {
    "_helpers.tpl": '{{- define "name" -}}{{ .Release.Name }}-{{ .Values.x }}{{- end -}}',
    "a.yaml": 'kind: A\nmetadata: {name: {{ include "name" . }}, namespace: {{ .Release.Namespace }}}',
    "b.yaml": "{{ if .Values.b }}kind: B\nmetadata: {}{{ end }}",
    "NOTES.txt": "{{ fail `never` }}",
  };
  assert.deepEqual(renderChart(chart(files), { x: 1 }, release), [
    { kind: "A", metadata: { name: "r-1", namespace: "home" } },
  ]);
});

test("renderChart() gives files to templates as they are", () => {
  const source =
    'kind: A\nmetadata: {}\na: |-\n{{ .Files.Get "files/a" | indent 2 }}\nb: {{ .Files.Get "files/b" | quote }}';
  assert.deepEqual(renderChart(chart({ "a.yaml": source }, { "files/a": "{{ x }}" }), {}, release), [
    { kind: "A", metadata: {}, a: "{{ x }}", b: "" },
  ]);
});

for (const [source, message] of [
  ["a: 1\nb: {{ .Values.x", /chart: .*a\.yaml:2:/],
  ["a: 1\n\nb: {{ nofunction }}", /chart: .*a\.yaml:3: .*nofunction/],
  ["a: 1\nb: {{ required `x is needed` .Values.x }}", /chart: .*a\.yaml:2:.*x is needed/],
  ["a: 1\nb: {{ fail `no` }}", /chart: .*a\.yaml:2:.*no/],
  ["a: 1\nb: [", /chart: a\.yaml:\d+: /],
] as const) {
  test(`a mistake in a chart is told with file and line: ${source.split("\n").at(-1)}`, () =>
    assert.throws(() => renderChart(chart({ "a.yaml": source }), {}, release), { code: "INSTALL_INVALID", message }));
}

test("readObjects() names file and line of what it cannot read", () => {
  assert.throws(() => readObjects("kind: A\nmetadata: {}\n---\na: [", "f.yaml"), { message: /^f\.yaml:4: / });
});
