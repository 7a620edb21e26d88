import assert from "node:assert/strict";
import { test } from "node:test";
import { compileTemplate } from "../template.ts";
import { TemplateError } from "../template-error.ts";
import { toValue } from "../value.ts";
import { SPRIG_FUNCTIONS } from "./sprig.ts";

const DATA = {
  name: "my-name",
  m: { b: 2, a: "1", deep: { x: [1, "y"], n: null } },
  l: ["b", "a", "b"],
  text: "one\ntwo",
  none: null,
  five: 5,
};

function render(source: string): string {
  return compileTemplate(source, { name: "t", functions: SPRIG_FUNCTIONS }).execute(toValue(DATA));
}

/** As Sprig 3 and Istio's own functions give them. */
const CASES: readonly (readonly [source: string, expected: string])[] = [
  [`{{ $d := dict "a" 1 }}{{ $_ := set $d "b" 2 }}{{ $d }}{{ $_ = unset $d "a" }}{{ $d }}`, "map[a:1 b:2]map[b:2]"],
  [
    `{{ mergeOverwrite (dict "a" 1) (dict "a" 0) | toJson }} {{ merge (dict "a" "") (dict "a" "x") | toJson }}`,
    `{"a":0} {"a":"x"}`,
  ],
  [`{{ default "x" .none }}{{ default "x" "" }}{{ default "x" "y" }}{{ .nope | default "z" }}`, "xxyz"],
  [
    `{{ empty "" }} {{ empty .l }} {{ coalesce .none "" "c" }} {{ ternary "a" "b" true }} {{ false | ternary "a" "b" }}`,
    "true false c a b",
  ],
  [`{{ all 1 "" }} {{ any 1 "" }}`, "false true"],
  [`{{ quote "a" .none 3 }} {{ squote "a" 1 }} {{ cat "a" 1 .none "b" }}`, `"a" "3" 'a' '1' a 1 b`],
  [`{{ upper "a" }}{{ lower "B" }}{{ title "hello world" }}{{ untitle "Ab" }}{{ repeat 2 "x" }}`, "AbHello Worldabxx"],
  [
    `{{ trim " a " }}|{{ trimAll "$" "$5$" }}|{{ trimPrefix "my-" .name }}|{{ trimSuffix "-name" .name }}`,
    "a|5|name|my",
  ],
  [
    `{{ trunc 3 "abcdef" }} {{ trunc -3 "abcdef" }} {{ substr 1 3 "abcdef" }} {{ abbrev 5 "abcdefgh" }} {{ nospace "a b" }}`,
    "abc def bc ab... ab",
  ],
  [
    `{{ contains "am" .name }} {{ hasPrefix "my" .name }} {{ hasSuffix "x" .name }} {{ replace "-" "_" .name }}`,
    "true true false my_name",
  ],
  [`[{{ indent 2 .text }}][{{ nindent 2 .text }}]`, "[  one\n  two][\n  one\n  two]"],
  [
    `{{ join "," .l }} {{ splitList "," "a,b" }} {{ (split "," "a,b")._1 }} {{ sortAlpha .l }} {{ snakecase "FirstName" }} {{ kebabcase "FirstName" }}`,
    "b,a,b [a b] b [a b b] first_name first-name",
  ],
  [
    `{{ plural "one" "many" 2 }} {{ initials "ab cd" }} {{ base "/a/b.txt" }} {{ ext "/a/b.txt" }} {{ directory "/a/b.txt" }}`,
    "many ac b.txt .txt /a/",
  ],
  [`{{ b64enc "hé" }} {{ b64dec "aMOp" }} {{ sha1sum "a" }}`, "aMOp hé 86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"],
  [
    `{{ add 1 2 "3" }} {{ add1 1 }} {{ sub 5 2 }} {{ mul 2 3 }} {{ div 7 2 }} {{ mod 7 2 }} {{ max 1 3 2 }} {{ min 2 1 }}`,
    "6 2 3 6 3 1 3 1",
  ],
  [
    `{{ int .five }} {{ int64 "7" }} {{ float64 "1.5" }} {{ atoi "12" }} {{ floor 1.7 }} {{ ceil 1.2 }} {{ round 1.255 1 }}`,
    "5 7 1.5 12 1 2 1.3",
  ],
  [`{{ until 3 }} {{ untilStep 5 1 -2 }}`, "[0 1 2] [5 3]"],
  [
    `{{ first .l }} {{ last .l }} {{ rest .l }} {{ initial .l }} {{ append .l "c" }} {{ prepend .l "c" }}`,
    "b b [a b] [b a] [b a b c] [c b a b]",
  ],
  [
    `{{ uniq .l }} {{ without .l "b" }} {{ has "a" .l }} {{ reverse .l }} {{ concat .l (list 1) }} {{ compact (list "" 1) }} {{ chunk 2 .l }}`,
    "[b a] [a] true [b a b] [b a b 1] [1] [[b a] [b]]",
  ],
  [
    `{{ dict "a" 1 "b" }} {{ get .m "a" }} {{ get .m "zz" }}| {{ hasKey .m "a" }} {{ keys .m | sortAlpha }} {{ pick .m "a" }} {{ omit .m "b" "deep" }}`,
    "map[a:1 b:] 1 | true [a b deep] map[a:1] map[a:1]",
  ],
  [
    `{{ dig "deep" "x" "d" .m }} {{ dig "no" "x" "d" .m }} {{ values (dict "a" 1) }} {{ pluck "a" .m .m }}`,
    "[1 y] d [1] [1 1]",
  ],
  [
    `{{ merge (dict "a" 1) (dict "a" 2 "b" 3) }} {{ mergeOverwrite (dict "a" 1) (dict "a" 2) }}`,
    "map[a:1 b:3] map[a:2]",
  ],
  [`{{ toJson .m }}`, `{"a":"1","b":2,"deep":{"n":null,"x":[1,"y"]}}`],
  [
    `{{ toJson "<a&b>" }} {{ toRawJson "<" }} {{ toJSON .none }} {{ (fromJSON "{\\"a\\":[1]}").a }} {{ (fromJson "[2]") }}`,
    `"\\u003ca\\u0026b\\u003e" "<" {} [1] [2]`,
  ],
  [`{{ toYaml .m }}`, `a: "1"\nb: 2\ndeep:\n  "n": null\n  x:\n  - 1\n  - "y"`],
  [
    `{{ kindOf .m }} {{ kindOf .l }} {{ kindIs "string" .name }} {{ typeOf .five }} {{ deepEqual .l .l }} {{ toString 5 }}`,
    "map slice true float64 true 5",
  ],
  [
    `{{ isset .m "a" }} {{ isset .none "a" }} {{ valueOrDefault .none "v" }} {{ toLower "AB" }} {{ omitNil .m.deep | toJson }}`,
    `true false v ab {"x":[1,"y"]}`,
  ],
  ["{{ max }} {{ min }} {{ mul 4611686018427387904 4 }} {{ add1 9223372036854775807 }}", "0 0 0 -9223372036854775808"],
];

for (const [source, expected] of CASES) {
  test(`Sprig: ${source}`, () => assert.equal(render(source), expected));
}

for (const [source, message] of [
  [`{{ fail "no way" }}`, /t:1: .*error calling fail: no way/],
  [`{{ upper 3 }}`, /wrong type for value; expected string; got int/],
  [`{{ upper .none }}`, /invalid value; expected string/],
  [`{{ div 1 0 }}`, /divide by zero/],
  [`{{ repeat 100000000 "abc" }}`, /more than 1048576 letters/],
  [`{{ until 10000000 }}`, /more than 100000 items/],
  [`{{ first 3 }}`, /Cannot first on type int/],
  [`{{ fromJSON "{" }}`, /not JSON/],
  [`{{ get 3 "a" }}`, /expected map/],
  [`{{ ternary 1 2 3 }}`, /expected bool/],
] as const) {
  test(`Sprig refuses ${source}`, () => assert.throws(() => render(source), message));
}

test("texts from pods cost no more than their length", () => {
  const run = (template: string, x: string, list: readonly string[] = []) => {
    const functions = SPRIG_FUNCTIONS;
    const start = process.cpuUsage();
    try {
      compileTemplate(template, { name: "t", functions }).execute(toValue({ x, list }));
    } catch (thrown) {
      assert.ok(thrown instanceof TemplateError);
    }
    const { user, system } = process.cpuUsage(start);
    assert.ok(user + system < 1_000_000, `${template}: ${user + system} us`);
  };
  run("{{ camelcase .x }}", "A".repeat(200_000));
  run("{{ trim .x }}", `a${" ".repeat(200_000)}b`);
  run("{{ base .x }}", `${"/".repeat(200_000)}b`);
  run("{{ b32dec .x }}", `${"=".repeat(200_000)}b`);
  run("{{ regexMatch .x .x }}", "(a|b)*".repeat(20_000));
  run("{{ toDate .x .x }}", "2006".repeat(20_000));
  run("{{ semverCompare .x .x }}", " ".repeat(200_000));
  run("{{ indent 100 .x }}", "\n".repeat(200_000));
  const names = Array.from({ length: 20_000 }, (_, i) => `name-${i}`);
  run("{{ uniq .list | len }}", "", names);
});
