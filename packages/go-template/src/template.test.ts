import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { DATA, TEMPLATES } from "./cases.ts";
import { SPRIG_FUNCTIONS } from "./sprig/sprig.ts";
import { compileTemplate, type TemplateOptions } from "./template.ts";
import { TemplateError } from "./template-error.ts";
import { Struct, TextMap, toValue, type Value } from "./value.ts";

interface Result {
  readonly text: string;
  readonly error?: string;
}

function render(source: string, data: Value = toValue(DATA), options: Partial<TemplateOptions> = {}): string {
  return compileTemplate(source, { name: "t", ...options }).execute(data);
}

function ours(source: string): Result {
  try {
    return { text: render(source) };
  } catch (thrown) {
    if (thrown instanceof TemplateError) return { text: "", error: thrown.message };
    throw thrown;
  }
}

const go = spawnSync("go", ["run", join(import.meta.dirname, "testdata/main.go")], {
  input: JSON.stringify({ data: DATA, templates: TEMPLATES }),
  encoding: "utf8",
});
const missing = go.error === undefined ? false : "needs Go: install it to compare with text/template";

describe("a template gives what Go's text/template gives", { skip: missing }, () => {
  const results: readonly Result[] = missing === false && go.status === 0 ? JSON.parse(go.stdout) : [];
  test("Go runs", () => assert.equal(go.status, 0, go.stderr));
  for (const [index, source] of TEMPLATES.entries()) {
    test(JSON.stringify(source), () => {
      const { text, error } = results[index] ?? { text: "" };
      const actual = ours(source);
      assert.equal(actual.text, text, actual.error ?? error);
      // The words may differ; template and line may not.
      assert.equal(lineOf(actual.error), lineOf(error), `${actual.error}, Go: ${error}`);
    });
  }
});

function lineOf(error: string | undefined): string | undefined {
  return error === undefined ? undefined : (/^template: [^:]*:\d+/.exec(error)?.[0] ?? error);
}

test("what a quote lacks is said as Go says it", () => {
  assert.throws(() => render('a\n{{ .name "}'), /^TemplateError: template: t:2: unterminated quoted string/);
  assert.throws(() => render("{{ 'a }}"), /t:1: unterminated character constant/);
  assert.throws(() => render("{{ `a }}"), /t:1: unterminated raw quoted string/);
});

test("a struct has fields and methods, and nothing else", () => {
  const data = new Struct("Config", { Port: 15000n, Greet: (name) => `hello ${String(name)}` });
  assert.equal(render("{{ .Port }} {{ .Greet `you` }} {{ `me` | .Greet }}", data), "15000 hello you hello me");
  assert.throws(() => render("\n{{ .Nope }}", data), {
    message: 'template: t:2: executing "t" at <.Nope>: can\'t evaluate field Nope in type Config',
    line: 2,
  });
});

test("a struct may print, be written as JSON and be nil in its own way", () => {
  const mode = new Struct("Mode", { String: () => "TPROXY" }, { text: "TPROXY", json: "TPROXY" });
  const none = new Struct("*Tracing", { GetAddress: () => "" }, { isNil: true });
  const data = new Struct("Root", { Mode: mode, None: none }, { json: { mode: "TPROXY" } });
  const options = { functions: SPRIG_FUNCTIONS };
  assert.equal(
    render("{{ .Mode }} {{ .Mode.String }} {{ toJson . }}", data, options),
    'TPROXY TPROXY {"mode":"TPROXY"}',
  );
  assert.equal(render("{{ if .None }}set{{ else }}nil{{ end }}{{ .None.GetAddress }}", data), "nil");
});

test("a missing key of a map of texts is no value, and an empty text to index", () => {
  const labels = new TextMap({ app: "a" });
  assert.equal(render("{{ .app }}|{{ .nope }}|{{ index . `x` }}|{{ len . }}", labels), "a|<no value>||1");
  const options = { functions: SPRIG_FUNCTIONS };
  assert.equal(render("{{ .nope | quote }}|{{ index . `x` | quote }}|{{ eq .nope `` }}", labels, options), '|""|false');
});

test("a nil pointer prints as nil", () => {
  assert.equal(render("{{ . }} {{ printf `%s` . }}", new Struct("*T", {}, { isNil: true })), "<nil> <nil>");
});

test("a plus shows names of fields, or letters as codes, and no sign where a value has its usual form", () => {
  const port = new Struct("Port", { Name: "é", Number: 80n });
  assert.equal(render("{{ printf `%+v %+v %+d %+q` . 5 5 .Name }}", port), '{Name:é Number:80} 5 +5 "\\u00e9"');
});

test("functions may be added, and functions in data may be called", () => {
  const functions = { shout: (text: Value) => `${String(text)}!` };
  assert.equal(render("{{ shout .name }} {{ .name | shout }}", undefined, { functions }), "reviews! reviews!");
  assert.equal(render("{{ call .f 1 }}", { f: (n) => n }), "1");
});

test("keys that objects of JavaScript have are missing as any other", () => {
  assert.equal(render("{{ .constructor }} {{ .__proto__ }} {{ .toString }}", {}), "<no value> <no value> <no value>");
});

for (const [what, loop] of [
  ["texts", "$x = print $x $x"],
  ["lists", "$x = concat (list $x) (list $x)"],
  ["maps", '$x = dict "a" $x "b" $x'],
  ["items", "$x = until 1000"],
] as const) {
  test(`a template cannot make endless ${what}, also if it prints none of them`, () => {
    const source = `{{ $x := "a" }}{{ range until 1000 }}{{ ${loop} }}{{ end }}`;
    const options = { functions: SPRIG_FUNCTIONS, limits: { output: 100_000 } };
    assert.throws(() => render(source, null, options), /the template makes values of more than \d+ letters and items/);
  });
}

test("printf rejects widths and precisions above Go's limit", () => {
  assert.match(render("{{ printf `%1000001d` 1 }}", null), /^%!\(BADWIDTH\)/);
  assert.match(render("{{ printf `%.1000001f` 1.5 }}", null), /^%!\(BADPREC\)/);
  assert.equal(render("{{ printf `%.200f` 1.5 | len }}", null), "102");
  assert.equal(render("{{ printf `%c%q` -1 1114112 }}", null), "\uFFFD'\uFFFD'");
});

test("depth, output and steps are bounded", () => {
  assert.throws(
    () => render("{{ define `a` }}{{ template `a` }}{{ end }}{{ template `a` }}"),
    /maximum template depth/,
  );
  assert.throws(() => render("{{ range 1000000000 }}{{ end }}"), /t:1: .*more than 5000000 steps/);
  const output = { limits: { output: 100 } };
  assert.throws(() => render("{{ range 100 }}ab{{ end }}", undefined, output), /more than 100 letters/);
  assert.throws(() => render("(".repeat(300).replace(/^/, "{{ ")), /nested too deeply|unclosed action/);
  assert.throws(() => render(`${"{{ if 1 }}".repeat(1000)}${"{{ end }}".repeat(1000)}`), /nested too deeply/);
});
