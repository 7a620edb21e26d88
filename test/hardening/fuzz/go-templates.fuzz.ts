/** Go templates of injection and bootstrap: lexer, parser and engine, with all of Sprig's functions. */

import { SPRIG_FUNCTIONS } from "@mizzen/go-template/sprig";
import { compileTemplate } from "@mizzen/go-template/template";
import { TemplateError } from "@mizzen/go-template/template-error";
import { toValue } from "@mizzen/go-template/value";
import { tokensOf } from "../../../packages/go-template/src/lexer.ts";
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
