/** Go templates of injection and bootstrap: lexer, parser and engine, with all of Sprig's functions. */
import { tokensOf } from "#lib/go-template/lexer.ts";
import { SPRIG_FUNCTIONS } from "#lib/go-template/sprig.ts";
import { compileTemplate } from "#lib/go-template/template.ts";
import { TemplateError } from "#lib/go-template/template-error.ts";
import { toValue } from "#lib/go-template/value.ts";
import { type FuzzTarget, readOrReject } from "./target.ts";

const DATA = toValue({ a: "x", b: [1, 2], c: { d: true, e: null }, n: 3 });
const LIMITS = { depth: 50, output: 64 * 1024, steps: 20_000 };

export const target: FuzzTarget = {
  maxBytes: 1024,
  dictionary: [
    "{{ ",
    " }}",
    "{{- ",
    " -}}",
    "{{ if .a }}",
    "{{ else }}",
    "{{ end }}",
    "{{ range $i, $x := .b }}",
    "{{ with .c }}",
    '{{ define "t" }}',
    '{{ template "t" . }}',
    "{{ block ",
    "| quote",
    "$x := ",
    "`",
    "'a'",
    "/* ",
    'printf "%v %d %q" ',
    "index .b 0",
    "slice ",
    "break",
    "continue",
    "0x1p-2",
    "1i",
  ],
  run(input) {
    const source = input.toString();
    readOrReject(() => tokensOf("t", source), TemplateError);
    readOrReject(() => {
      compileTemplate(source, { name: "t", functions: SPRIG_FUNCTIONS, limits: LIMITS }).execute(DATA);
    }, TemplateError);
  },
};
