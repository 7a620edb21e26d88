/** What Sprig 3.3 gave for these templates, family by family. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { compileTemplate } from "../template.ts";
import { SPRIG_FUNCTIONS } from "./sprig.ts";

function render(source: string): string {
  return compileTemplate(source, { name: "t", functions: SPRIG_FUNCTIONS }).execute({});
}

const FAMILIES: Readonly<Record<string, readonly (readonly [source: string, expected: string])[]>> = {
  "regular expressions": [
    ['{{ regexMatch "^a+$" "aaa" }} {{ regexMatch "(" "x" }}', "true false"],
    [
      '{{ regexFind "[0-9]+" "ab12c3" }} {{ regexFindAll "a" "banana" 2 }} {{ regexFindAll "x*" "axb" -1 }}',
      "12 [a a] [ x ]",
    ],
    [
      // biome-ignore lint/suspicious/noTemplateCurlyInString: Go's names of groups
      '{{ regexReplaceAll "(\\\\w+)-(\\\\w+)" "ab-cd ef-gh" "$2-${1}x$$" }} {{ regexReplaceAll "(?P<first>\\\\w)\\\\w" "abcd" "${first}" }}',
      "cd-abx$ gh-efx$ ac",
    ],
    ['{{ regexReplaceAll "x*" "axb" "-" }} {{ regexReplaceAllLiteral "a" "ba" "$1" }}', "-a-b- b$1"],
    [
      '{{ regexSplit "," "a,b,,c," -1 | toJson }} {{ regexSplit "" "abc" -1 | toJson }} {{ regexSplit "b" "abc" 0 | toJson }} {{ regexSplit "," "a,b,c" 2 | toJson }}',
      '["a","b","","c",""] ["a","b","c"] null ["a","b,c"]',
    ],
    [
      '{{ regexQuoteMeta "1.2*(3)[a]{b}^$|?+" }} {{ mustRegexFind "a." "xab" }}',
      "1\\.2\\*\\(3\\)\\[a\\]\\{b\\}\\^\\$\\|\\?\\+ ab",
    ],
  ],
  dates: [
    [
      '{{ dateInZone "Mon, 02 Jan 2006 15:04:05 MST" 1700000000 "UTC" }} {{ dateInZone "_2 January 06 3:04pm 002" 951782400 "UTC" }}',
      "Tue, 14 Nov 2023 22:13:20 UTC 29 February 00 12:00am 060",
    ],
    [
      '{{ dateInZone "2006-01-02T15:04:05.000Z07:00 -0700" 1720000000 "Europe/Berlin" }} {{ htmlDateInZone 0 "Nowhere/X" }}',
      "2024-07-03T11:46:40.000+02:00 +0200 1970-01-01",
    ],
    [
      '{{ toDate "2006-01-02T15:04:05Z07:00" "2020-02-29T12:34:56+02:00" }} {{ toDate "2006-01-02" "2017-02-30" }}',
      "2020-02-29 12:34:56 +0200 +0200 0001-01-01 00:00:00 +0000 UTC",
    ],
    [
      '{{ toDate "Jan 2, 2006 at 3:04pm (MST)" "Feb 3, 2013 at 7:54pm (UTC)" | unixEpoch }} {{ (toDate "06-1-2 Z07" "70-3-4 Z").Unix }}',
      "1359921240 5356800",
    ],
    [
      '{{ toDate "2006-01-02 Z07" "2020-01-01 Z" | dateModify "-1.5h" | date_modify "10s" | unixEpoch }} {{ toDate "2006-01-02 Z07" "2020-01-01 Z" | dateModify "bad" | unixEpoch }}',
      "1577831410 1577836800",
    ],
    ['{{ toDate "2006-01-02T15:04:05Z07:00" "2020-02-29T12:34:56.789Z" | toJson }}', '"2020-02-29T12:34:56.789Z"'],
    [
      '{{ duration "3695" }} {{ durationRound "2h10m5s" }} {{ durationRound "2400h" }} {{ durationRound "1s" }} {{ durationRound "9000h" }}',
      "1h1m35s 2h 3mo 0s 1y",
    ],
  ],
  versions: [
    ['{{ semverCompare ">1.2" "1.2.9" }}', "false"],
    ['{{ semverCompare ">=1.2.3" "1.2.3" }}', "true"],
    ['{{ semverCompare "~1.2.3" "1.2.9" }}', "true"],
    ['{{ semverCompare "~1" "1.9.0" }}', "true"],
    ['{{ semverCompare "^1.2" "2.0.0" }}', "false"],
    ['{{ semverCompare "^0.2.3" "0.3.0" }}', "false"],
    ['{{ semverCompare "^0.0.3" "0.0.4" }}', "false"],
    ['{{ semverCompare "1.2.x" "1.2.7" }}', "true"],
    ['{{ semverCompare "<=1.2" "1.2.9" }}', "true"],
    ['{{ semverCompare "!=1.2" "1.2.9" }}', "false"],
    [
      '{{ semverCompare ">=1.2, <2 || 3.x" "3.4.0" }} {{ semverCompare "1.2 - 1.4.5" "1.4.6" }} {{ semverCompare ">=1.2.0" "1.3.0-beta" }} {{ semverCompare ">=1.2.3-0" "1.2.3-beta.1" }}',
      "true false false true",
    ],
    [
      '{{ $v := semver "v1.2.3-alpha.1+b.2" }}{{ $v.Major }} {{ $v.Minor }} {{ $v.Patch }} {{ $v.Prerelease }} {{ $v.Metadata }} {{ $v }}',
      "1 2 3 alpha.1 b.2 1.2.3-alpha.1+b.2",
    ],
  ],
  words: [
    [
      '{{ camelcase "http_server" }} {{ camelcase "HTTPServer" }} {{ camelcase "_foo__bar_" }} {{ camelcase "" }}',
      "HttpServer Httpserver _Foo_Bar_ ",
    ],
    [
      '{{ snakecase "HTTP20xOK" }} {{ snakecase "simpleXMLParser" }} {{ kebabcase "foo_bar_" }} {{ kebabcase "v1Beta2" }}',
      "http_20x_ok simple_xml_parser foo-bar- v1-beta2",
    ],
    [
      '{{ swapcase "Foo bar" }} {{ wrap 5 "Hello World and averylongword" }} {{ wrapWith 5 "|" "Hello averylongword" }}',
      "fOO BAR Hello\nWorld\nand\naverylongword Hello|avery|longw|ord",
    ],
    [
      '{{ abbrevboth 5 10 "1234 5678 9123" }} {{ abbrevboth 9 10 "1234 5678 9123" }} {{ abbrevboth 0 10 "1234 5678 9123" }} {{ hello }} {{ trimall "$" "$5$" }}',
      "...5678... ...78 9123 1234 56... Hello! 5",
    ],
    [
      '{{ splitn "$" 2 "a$b$c" }} {{ (splitn "$" 2 "a$b$c")._1 }} {{ splitn "$" -1 "a$b" }}',
      "map[_0:a _1:b$c] b$c map[_0:a _1:b]",
    ],
  ],
  "paths and URLs": [
    [
      '{{ clean "/a/b/../c/./d//" }} {{ clean "../../x" }} {{ clean "" }} {{ dir "/a/b" }} {{ dir "a" }} {{ base "/" }} {{ isAbs "/a" }} {{ osExt "x.tar.gz" }}',
      "/a/c/d ../../x . /a . / true .gz",
    ],
    [
      '{{ urlParse "http://user:pw@[::1]:8080/path%20x?q=1#frag" | toJson }}',
      '{"fragment":"frag","host":"[::1]:8080","hostname":"::1","opaque":"","path":"/path x","query":"q=1","scheme":"http","userinfo":"user:pw"}',
    ],
    [
      '{{ urlParse "mailto:a@b.c" | urlJoin }} {{ urlJoin (dict "scheme" "http" "host" "h:80" "path" "p x" "query" "q=1" "userinfo" "u:p") }}',
      "mailto:a@b.c http://u:p@h:80/p%20x?q=1",
    ],
  ],
  codes: [
    [
      '{{ b32enc "hello" }} {{ b32dec "NBSWY3DP" }} {{ b32dec "1" }} {{ b64dec "!!" }} {{ adler32sum "hello world" }}',
      "NBSWY3DP hello illegal base32 data at input byte 0 illegal base64 data at input byte 0 436929629",
    ],
    [
      '{{ sha256sum "a" }} {{ sha512sum "" | trunc 16 }}',
      "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb cf83e1357eefb8bd",
    ],
  ],
  numbers: [
    [
      '{{ addf 1.5 2 "3.5" }} {{ add1f 1.5 }} {{ subf 7.5 2 }} {{ mulf 1.5 2 }} {{ divf 10 4 }} {{ maxf 1 2.5 }} {{ minf 1 0.5 }} {{ biggest 1 5 3 }}',
      "7 2.5 5.5 3 2.5 2.5 0.5 5",
    ],
    ["{{ seq 5 }}|{{ seq 5 2 }}|{{ seq 0 2 10 }}|{{ seq 0 -2 10 }}|{{ seq }}", "1 2 3 4 5|5 4 3 2|0 2 4 6 8 10||"],
    [
      '{{ int "3.9" }} {{ int "-3.9" }} {{ int "1." }} {{ int "1_000" }} {{ int "1e3" }} {{ int "08" }}',
      "3 -3 1 1000 0 0",
    ],
    ['{{ toDecimal "777" }} {{ toDecimal "9" }} {{ int "0x1F" }} {{ int "010" }} {{ int "12.0" }}', "511 0 31 8 12"],
  ],
  "lists and maps": [
    [
      "{{ slice (list 1 2 3) 1 }} {{ slice (list 1 2 3) 1 2 }} {{ slice (list) 0 }} {{ mustFirst (list 1 2) }} {{ mustWithout (list 1 2) 1 }}",
      "[2 3] [2] <no value> 1 [2]",
    ],
    [
      '{{ $a := dict "x" (dict "y" 1) }}{{ $b := deepCopy $a }}{{ $_ := set $b.x "y" 2 }}{{ $a }} {{ $b }}',
      "map[x:map[y:1]] map[x:map[y:2]]",
    ],
    [
      '{{ typeIsLike "int" 1 }} {{ mustToRawJson "<" }} {{ mustMergeOverwrite (dict "a" 1) (dict "a" 2) }}',
      'true "<" map[a:2]',
    ],
  ],
};

for (const [family, cases] of Object.entries(FAMILIES)) {
  describe(`Sprig's ${family}`, () => {
    for (const [source, expected] of cases) test(source, () => assert.equal(render(source), expected));
  });
}

for (const [source, message] of [
  ['{{ mustRegexMatch "(" "x" }}', /error calling mustRegexMatch: .*missing closing \)/],
  ['{{ regexFind "(" "x" }}', /missing closing \)/],
  ['{{ semver "1.2.3.4" }}', /invalid semantic version/],
  ['{{ semverCompare "nonsense" "1.2.3" }}', /improper constraint: nonsense/],
  ['{{ mustToDate "2006-01-02" "nope" }}', /parsing time "nope" as "2006-01-02"/],
  ["{{ unixEpoch 5 }}", /expected time.Time; got int/],
  ['{{ toDate "2006" "2020" | mustDateModify "bad" }}', /invalid duration "bad"/],
  ['{{ date "2006" "today" }}', /expected time.Time; got string/],
  ['{{ urlParse "http://h/%zz" }}', /unable to parse url/],
  ['{{ urlJoin (dict "scheme" 3) }}', /must be of type string, but int found/],
  ['{{ slice "abc" 1 }}', /list should be type of slice or array but string/],
  ["{{ slice (list 1) 0 9 }}", /out of bounds/],
  ["{{ now }}", /function "now" not defined/],
  ['{{ env "HOME" }}', /function "env" not defined/],
] as const) {
  test(`Sprig refuses ${source}`, () => assert.throws(() => render(source), message));
}
