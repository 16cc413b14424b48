/** Templates in Liquid over JSON. */
import fc from "fast-check";
import { Liquid } from "liquidjs";
import { describe, expect, test } from "vitest";
import { ExpressionError } from "../../src/shared/expressions/values.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import { Meter, Spent } from "../../src/shared/json-schema/meter.ts";
import { checkBudget } from "../../src/shared/json-schema/violations.ts";
import { render, templateIssues } from "../../src/shared/templates/template.ts";
import {
  MAX_RENDERED_LENGTH,
  MAX_TEMPLATE_CODE,
  MAX_TEMPLATE_DEPTH,
  MAX_TEMPLATE_LENGTH,
  MAX_TEMPLATE_TAGS,
} from "../../src/shared/templates/template-limits.ts";
import { variablesOf } from "../../src/shared/templates/variables.ts";
import { shorten } from "../../src/shared/text.ts";
import { jsonValues } from "../support/json-values.ts";

const VALUES: JsonObject = {
  name: "Ann",
  count: 2,
  price: 2.5,
  yes: true,
  no: false,
  nothing: null,
  blankText: "  ",
  emptyText: "",
  emptyList: [],
  items: ["a", "b", "c"],
  numbers: [3, 1, 2],
  users: [
    { name: "Ann", age: 30, active: true },
    { name: "Bob", age: 20, active: false },
    { name: "Cem", age: 25 },
  ],
  nested: { list: [[1], [2, 3]], flag: true, name: "inner" },
  key: "flag",
  html: "<a href=\"x\">'&'</a>",
  sentence: "the quick brown fox",
};

const of = (source: string, values: JsonObject = VALUES, meter = checkBudget()) =>
  render(source, values, meter);

const reference = new Liquid();

/** Templates that mean the same here and in the library. */
const COMMON: [string, string][] = [
  ["Hello {{ name }}!", "Hello Ann!"],
  ["{{ users[0].name }}, {{ users.last.age }}, {{ nested['flag'] }}", "Ann, 25, true"],
  ["{{ nested[key] }} {{ items[-1] }} {{ items.size }} {{ nested.size }} {{ name.size }}", "true c 3 3 3"],
  ["{{ none }}{{ none.deeper[0] }}{{ nothing }}|", "|"],
  ["{{ items }} {{ numbers }} {{ price }} {{ yes }}", "abc 312 2.5 true"],
  ["{{ 'quoted' }}{{ \"it's\" }}{{ 1.5 }}{{ -2 }}{{ true }}{{ nil }}", "quotedit's1.5-2true"],
  ["{% if count > 1 %}many{% elsif count == 1 %}one{% else %}none{% endif %}", "many"],
  ["{% if count > 1 and name == 'Bob' or yes %}a{% else %}b{% endif %}", "a"],
  ["{% if no %}a{% elsif nothing %}b{% elsif emptyText %}c{% endif %}", "c"],
  ["{% if not no and yes %}a{% endif %}", "a"],
  ["{% if items contains 'b' %}a{% endif %}{% if name contains 'nn' %}b{% endif %}", "ab"],
  [
    "{% if emptyList == empty %}a{% endif %}{% if blankText == blank %}b{% endif %}{% if name != empty %}c{% endif %}",
    "abc",
  ],
  ["{% if nothing == nil %}a{% endif %}{% if none == nil %}b{% endif %}", "ab"],
  ["{% unless no %}a{% else %}b{% endunless %}{% unless yes %}c{% elsif yes %}d{% endunless %}", "ad"],
  ["{% case count %}{% when 1 %}one{% when 2, 3 %}few{% else %}many{% endcase %}", "few"],
  [
    "{% case name %}{% when 'Bob' or 'Ann' %}known{% endcase %}{% case none %}{% when 1 %}{% else %}else{% endcase %}",
    "knownelse",
  ],
  [
    "{% for item in items %}{{ forloop.index }}{{ item }}{% unless forloop.last %},{% endunless %}{% endfor %}",
    "1a,2b,3c",
  ],
  [
    "{% for item in items reversed %}{{ item }}{% endfor %}{% for i in items limit: 2 offset: 1 %}{{ i }}{% endfor %}",
    "cbabc",
  ],
  ["{% for i in (1..count) %}{{ i }}{% endfor %}{% for i in (3..1) %}x{% else %}none{% endfor %}", "12none"],
  ["{% for i in none %}x{% else %}none{% endfor %}{% for i in name %}{{ i }};{% endfor %}", "noneAnn;"],
  ["{% for pair in nested %}{{ pair[0] }} {% endfor %}", "list flag name "],
  [
    "{% for a in items %}{% for b in numbers %}{{ a }}{{ b }}{{ forloop.rindex0 }} {% endfor %}{% endfor %}",
    "a32 a11 a20 b32 b11 b20 c32 c11 c20 ",
  ],
  [
    "{% for i in (1..9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "13",
  ],
  ["{% assign x = name | upcase %}{{ x }}{% assign name = 'Bob' %}{{ name }}", "ANNBob"],
  ["{% capture x %}<{{ name }}>{% endcapture %}{{ x }}{{ x }}", "<Ann><Ann>"],
  ["a {%- if yes -%}  b  {%- endif -%}  c {{- name -}} d", "abcAnnd"],
  [
    "{% raw %}{{ name }} {% if %}{% endraw %}{% comment %}{{ name }}{% endcomment %}{% # a note %}",
    "{{ name }} {% if %}",
  ],
  ["{{ name | append: '!' | prepend: '>' }} {{ count | append: 'x' }}", ">Ann! 2x"],
  ["{{ 'hELLO w' | capitalize }} {{ name | downcase }} {{ name | upcase }}", "Hello w ann ANN"],
  ["[{{ ' a ' | strip }}] [{{ ' a ' | lstrip }}] [{{ ' a ' | rstrip }}]", "[a] [a ] [ a]"],
  ["{{ 'a-b-a' | replace: 'a', 'c' }} {{ 'a-b-a' | replace_first: 'a', 'c' }}", "c-b-c c-b-a"],
  ["{{ 'a-b-a' | remove: 'a' }} {{ 'a-b-a' | remove_first: 'a' }}", "-b- -b-a"],
  ["{{ 'a,b,,' | split: ',' | join: '+' }} {{ 'abc' | split: '' | join }}", "a+b a b c"],
  [
    "{{ sentence | truncate: 12 }} {{ sentence | truncate: 9, '' }} {{ name | truncate }}",
    "the quick... the quick Ann",
  ],
  ["{{ sentence | truncatewords: 2 }} {{ sentence | truncatewords: 2, '--' }}", "the quick... the quick--"],
  [
    "{{ name | slice: 1 }} {{ name | slice: 0, 2 }} {{ name | slice: -2, 2 }} {{ items | slice: 1, 2 | join: '' }}",
    "n An nn bc",
  ],
  ["{{ html | escape }}", "&lt;a href=&#34;x&#34;&gt;&#39;&amp;&#39;&lt;/a&gt;"],
  [
    "{{ count | plus: 3 }} {{ count | minus: 3 }} {{ count | times: 3 }} {{ '7' | divided_by: 2 }} {{ 7 | modulo: 4 }}",
    "5 -1 6 3.5 3",
  ],
  [
    "{{ -1.5 | abs }} {{ 1.2 | ceil }} {{ 1.8 | floor }} {{ 1.25 | round: 1 }} {{ 2.6 | round }}",
    "1.5 2 1 1.3 3",
  ],
  ["{{ 3 | at_least: 5 }} {{ 3 | at_most: 2 }} {{ none | plus: 1 }}", "5 2 1"],
  [
    "{{ items | first }}{{ items | last }}{{ items | size }}{{ name | size }}{{ items | join: ', ' }}",
    "ac33a, b, c",
  ],
  [
    "{{ items | reverse | join: '' }} {{ numbers | sort | join: '' }} {{ users | sort: 'age' | map: 'name' | join: ' ' }}",
    "cba 123 Bob Cem Ann",
  ],
  ["{{ 'a,b,a' | split: ',' | uniq | join: '' }} {{ items | concat: numbers | join: '' }}", "ab abc312"],
  [
    "{{ users | where: 'active' | map: 'name' }} {{ users | where: 'age', 20 | map: 'name' }} {{ users | map: 'active' | compact | size }}",
    "Ann Bob 2",
  ],
  ["{{ numbers | sum }} {{ users | sum: 'age' }}", "6 75"],
  [
    "{{ none | default: 'x' }}{{ emptyText | default: 'y' }}{{ no | default: 'z' }}{{ name | default: 'w' }}",
    "xyzAnn",
  ],
  ["{{ nested.list | json }} {{ name | json }}", '[[1],[2,3]] "Ann"'],
];

describe("F13 templates render like the library", () => {
  test.each(COMMON)("%s", (source, expected) => {
    expect(templateIssues(source)).toEqual([]);
    expect(of(source)).toBe(expected);
    expect(reference.parseAndRenderSync(source, structuredClone(VALUES))).toBe(expected);
  });
});

describe("TEMPLATE-1 F13 texts render as themselves, and values as plain text", () => {
  test.each(["", "Hello", "{ } { {x} }", "<b> & 'x' %} }}", "a\r\n\tb", "ünï😀"])("%j", (text) => {
    expect(of(text)).toBe(text);
  });

  test("a property: a text without tags renders as itself", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 200 }),
        jsonValues({ maxDepth: 3 }),
        (text, value) => {
          fc.pre(!/\{[{%]/.test(text));
          expect(templateIssues(text)).toEqual([]);
          expect(of(text, { value })).toBe(text);
        },
      ),
    );
  });

  test("a property: a value is never a template, and is never escaped", () => {
    const hostile = fc.oneof(
      fc.string(),
      fc.constantFrom("{{ name }}", "{% for i in (1..9) %}", "{% raw %}", "%}{{"),
    );
    fc.assert(
      fc.property(hostile, (value) => {
        expect(of("<{{ value }}>{% assign other = value %}{{ other }}", { value })).toBe(
          `<${value}>${value}`,
        );
      }),
    );
  });

  test("maps are JSON", () => {
    expect(of("{{ nested }} {{ users | slice: 1 }}")).toBe(
      '{"list":[[1],[2,3]],"flag":true,"name":"inner"} {"name":"Bob","age":20,"active":false}',
    );
    expect(of("{{ 'a😀b' | slice: 1 }}")).toBe("\ufffd");
  });
});

describe("TEMPLATE-2 F13 only own members are read", () => {
  test.each([
    "{{ name.constructor }}",
    "{{ __proto__ }}",
    "{{ nested.__proto__.polluted }}",
    "{% assign prototype = 1 %}",
    "{% for constructor in items %}{% endfor %}",
  ])("%s is refused", (source) => {
    expect(templateIssues(source)).toEqual([
      { path: "", message: expect.stringContaining("is not allowed") },
    ]);
  });

  test.each([
    "{{ nested['__proto__'] }}{{ nested[k] }}{{ nested[c] }}",
    "{{ toString }}{{ name.toString }}{{ items.join }}{{ nested.hasOwnProperty }}{{ valueOf }}",
    "{{ users | map: k }}{{ users | map: 'constructor' }}{{ users | where: k | size | minus: 0 | slice: 1 }}",
    "{{ items['length'] }}{{ name['length'] }}{{ items.concat }}",
  ])("%s is empty", (source) => {
    const values = JSON.parse('{"k": "__proto__", "c": "constructor", "nested": {"__proto__": {"a": 1}}}');
    expect(of(source, { ...VALUES, ...values })).toBe("");
    expect("a" in {}).toBe(false);
  });

  test("a property: every path reads only own members", () => {
    const inherited = [Object.prototype, Array.prototype, String.prototype].flatMap((prototype) =>
      Object.getOwnPropertyNames(prototype),
    );
    const names = fc.constantFrom(...inherited.filter((name) => name !== "at"));
    const path = fc.array(names, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.constantFrom("value", "value[0]", "'text'", "value.a"),
        path,
        jsonValues({ maxDepth: 3 }),
        (root, keys, value) => {
          const values: JsonObject = { value: JSON.parse(JSON.stringify(value)), keys };
          const before = JSON.stringify(values);
          const source = `{{ ${root}${keys.map((_, index) => `[keys[${index}]]`).join("")} }}`;
          let expected: unknown = {
            value: values.value,
            "value[0]": Array.isArray(values.value) ? values.value[0] : own(values.value, "0"),
            "'text'": "text",
            "value.a": own(values.value, "a"),
          }[root];
          for (const key of keys)
            expected =
              ["__proto__", "constructor", "prototype"].includes(key) || Array.isArray(expected)
                ? undefined
                : own(expected, key);
          const text = of(source, values);
          if (expected === undefined || expected === null) expect(text).toBe("");
          expect(JSON.stringify(values)).toBe(before);
        },
      ),
    );
  });
});

function own(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;
}

describe("TEMPLATE-3 F13 tags and filters stand on a list", () => {
  test.each([
    "{% include 'a' %}",
    "{% render 'a' %}",
    "{% layout 'a' %}{% block b %}{% endblock %}",
    "{% tablerow i in items %}{% endtablerow %}",
    "{% liquid echo name %}",
    "{% evil %}",
    "{{ 'now' | date: '%s' }}",
    "{{ items | sample }}",
    "{{ name | evil }}",
    "{{ name | constructor }}",
    "{{ name | toString }}",
    "{% constructor %}",
    "{{ name | sha256 }}",
    "{{ name | raw }}",
  ])("%s", (source) => {
    const message = expect.stringMatching(
      /^Syntax error: (tag "[a-z_]+" not found|undefined filter: \w+), line:1, col:\d+/,
    );
    expect(templateIssues(source, "/template")).toEqual([{ path: "/template", message }]);
    expect(() => of(source)).toThrow(ExpressionError);
  });
});

describe("TEMPLATE-5 F13 errors that do not depend on values are issues", () => {
  const issues: [string, RegExp][] = [
    ["{{ name", /output "{{ name" not closed, line:1, col:1/],
    ["{% if yes %}", /tag {% if yes %} not closed/],
    ["{{ }}", /invalid value expression/],
    ["{% for in items %}{% endfor %}", /illegal tag/],
    ["{% endif %}", /tag "endif" not found/],
    ["{{ name | append }}", /takes 1 arguments. It has 0/],
    ["{{ name | append: 'a', 'b' }}", /takes 1 arguments. It has 2/],
    ["{{ name | default: 'a', allow_false: true }}", /takes 1 arguments. It has 2/],
    ["{{ name | truncate: length: 2 }}", /takes no named arguments/],
    ["{{ name count }}", /need an operator between/],
    ["{{ == count }}", /needs a value on each side/],
    ["{{ ['name'] }}", /does not begin with a name/],
    ["{% for a in items cols: 2 %}{% endfor %}", /takes offset, limit and reversed, and not "cols"/],
    ["{% for a in items offset: continue %}{% endfor %}", /offset: continue is not supported/],
    ["a".repeat(MAX_TEMPLATE_LENGTH + 1), /at most 50000 characters/],
    ["{{a}}".repeat(MAX_TEMPLATE_TAGS + 1), /at most 1000 tags and outputs/],
    [`{{a${".b".repeat(MAX_TEMPLATE_CODE / 2)}}}`, /must have at most 10000 characters/],
    [
      "{%if a%}".repeat(MAX_TEMPLATE_DEPTH + 1) + "{%endif%}".repeat(MAX_TEMPLATE_DEPTH + 1),
      /Nests more than/,
    ],
    [`{{ a${"[a".repeat(MAX_TEMPLATE_DEPTH + 1)}${"]".repeat(MAX_TEMPLATE_DEPTH + 1)} }}`, /Nests more than/],
    [`{{${"(".repeat(4_900)} }}`, /Syntax error/],
  ];

  test.each(
    issues.map(([source, message]): [string, string, RegExp] => [shorten(source, 60), source, message]),
  )("%s", (_, source, message) => {
    expect(templateIssues(source)).toEqual([{ path: "", message: expect.stringMatching(message) }]);
    expect(() => of(source)).toThrow(message);
  });
});

const LIST: Json[] = Array.from({ length: 40_000 }, (_, index) => index);
const TEXT = "a".repeat(900_000);
const MAP = Object.fromEntries(LIST.map((item) => [`k${item}`, item]));
const DOUBLING = "{% assign x = x | append: x %}".repeat(60);

/** Templates that the parser's limits stop, or the budget of rendering. */
const HOSTILE: [string, string, Json][] = [
  [
    "loops in loops",
    "{% for a in x %}{% for b in x %}{% for c in x %}{% endfor %}{% endfor %}{% endfor %}",
    LIST,
  ],
  ["loops that write", "{% for a in x %}{% for b in x %}{{ x }}{% endfor %}{% endfor %}", LIST],
  ["a long range", "{% for a in (1..1000000000) %}{% endfor %}", null],
  ["a range beyond 2^53", "{% for a in (9007199254740992..9007199254740993) %}{% endfor %}", null],
  ["ranges in ranges", "{% for a in (1..99999) %}{% for a in (1..99999) %}{% endfor %}{% endfor %}", null],
  [
    "an infinite range",
    "{% assign a = '-1e400' %}{% for i in (a..'1e400') %}{{ x }}{% endfor %}{{ 1 | divided_by: 0 }}",
    null,
  ],
  ["a text that doubles", `${DOUBLING}{{ x }}`, "ab"],
  [
    "a captured text that doubles",
    `${"{% capture x %}{{ x }}{{ x }}{% endcapture %}".repeat(60)}{{ x }}`,
    "ab",
  ],
  ["a list that doubles", `${"{% assign x = x | concat: x %}".repeat(60)}{{ x }}`, ["ab"]],
  ["JSON of JSON", `${"{% assign x = x | json %}".repeat(60)}{{ x }}`, '\\"'],
  ["joining by long texts", "{% assign y = x | split: '' %}{{ y | join: x }}", TEXT],
  ["joining lists by long texts", "{{ y | join: x }}{{ list | join: x }}", TEXT],
  ["replacing by a long text", "{{ x | replace: 'a', x }}", TEXT],
  [
    "searching at every place",
    "{% assign y = x | slice: 1, 400000 | append: 'b' %}{% if x contains y %}{% endif %}",
    TEXT,
  ],
  ["splitting by nothing", "{% for i in (1..100) %}{% assign y = x | split: '' %}{% endfor %}", TEXT],
  ["escaping", `${"{% assign x = x | escape %}".repeat(40)}{{ x }}`, "&".repeat(10_000)],
  ["upper case", "{% for i in (1..99999) %}{% assign y = x | upcase %}{% endfor %}", TEXT],
  ["sorting", "{% for i in (1..99999) %}{% assign y = x | sort %}{% endfor %}", LIST],
  ["unequal lists", "{{ x | uniq }}", LIST.map((item) => [item])],
  ["a member of many", "{% for i in (1..99999) %}{{ x | map: 'a' | size }}{% endfor %}", LIST],
  ["counting words", "{% for i in (1..99999) %}{{ x | truncatewords: 2 }}{% endfor %}", "a ".repeat(400_000)],
  ["long output", "{% for i in (1..100) %}{{ x }}{% endfor %}", TEXT],
  ["the sizes of a map", "{% for i in (1..99999) %}{{ x.size }}{% endfor %}", MAP],
  ["comparing lists", "{% for i in (1..99999) %}{% if x == x %}{% endif %}{% endfor %}", LIST],
  ["comparing a map with empty", "{% for i in (1..99999) %}{% if x == empty %}{% endif %}{% endfor %}", MAP],
  [
    "comparing a text with blank",
    "{% for i in (1..99999) %}{% if x == blank %}{% endif %}{% endfor %}",
    " ".repeat(900_000),
  ],
  [
    "ordering long texts",
    "{% assign y = x | append: 'b' %}{% for i in (1..99999) %}{% if x < y %}{% endif %}{% endfor %}",
    TEXT,
  ],
  ["many outputs", "{{x}}".repeat(10_000), 1],
  ["many open blocks", "{%if x%}".repeat(6_250), 1],
  ["hidden nesting", `{%comment%}${"{%endx%}".repeat(400)}{%endcomment%}${"{%if x%}".repeat(400)}`, 1],
  ["brackets", `{{x${"[x".repeat(24_000)}}}`, 1],
  ["parentheses", `{{${"(".repeat(49_000)}}}`, 1],
  ["brackets within the limit of code", `{{x${"[x".repeat(4_900)}}}`, 1],
  ["delimiters", "{%".repeat(25_000), 1],
  ["endraw without end", `{%raw%}${"{%endraw ".repeat(5_500)}`, 1],
  ["operators", `{{x${" and x".repeat(8_000)}}}`, 1],
  ["quotes", `{{${"'".repeat(49_000)}}}`, 1],
  ["digits", `{{${"1".repeat(49_000)}a}}`, 1],
  ["trimming", `${" ".repeat(20_000)}{{-x-}}${" ".repeat(20_000)}{{-x-}}{%evil%}`, 1],
  ["lines", `${"\n".repeat(49_000)}{{`, 1],
];

describe("TEMPLATE-4 F13 hostile templates end within their steps", () => {
  test.each(HOSTILE)("%s", (_, source, x) => {
    const values = { x, list: LIST };
    let error: unknown;
    try {
      of(source, values);
    } catch (thrown) {
      error = thrown;
    }
    expect(error instanceof Spent || error instanceof ExpressionError).toBe(true);
  });

  test("blocks nest up to the limit", () => {
    const nested = (levels: number) => `${"{% if x %}".repeat(levels)}y${"{% endif %}".repeat(levels)}`;
    expect(of(nested(MAX_TEMPLATE_DEPTH), { x: 1 })).toBe("y");
    expect(templateIssues(nested(MAX_TEMPLATE_DEPTH + 1))).toHaveLength(1);
  });

  test("the longest template within the limits is rendered within the budget of a check", () => {
    const longest = `${"a".repeat(49_000)}${"{{ name | append: 'x' }}".repeat(40)}`;
    expect(of(longest).length).toBe(49_000 + 40 * 4);
    expect(() => of("{{ x }}{{ x }}", { x: TEXT })).toThrow(`more than ${MAX_RENDERED_LENGTH} characters`);
  });

  test("a property: for any template and values, the budget is checked before each result is built", () => {
    const value = fc.constantFrom(
      "x",
      "x.a",
      "x[0]",
      "y",
      "i",
      "1",
      "'ab'",
      "empty",
      "(1..i)",
      "forloop.index",
      "x.size",
    );
    const filter = fc.constantFrom(
      ...[
        "size",
        "json",
        "sort",
        "uniq",
        "reverse",
        "first",
        "join: y",
        "append: x",
        "split: ''",
        "map: 'a'",
      ],
      ...[
        "concat: x",
        "upcase",
        "default: y",
        "times: 9",
        "slice: 0, 9",
        "truncate: 3",
        "sum",
        "replace: 'a', y",
      ],
    );
    const chain = fc
      .tuple(value, fc.array(filter, { maxLength: 3 }))
      .map((parts) => parts.flat().join(" | "));
    const condition = fc
      .tuple(value, fc.constantFrom("==", "!=", "<", "contains", "and"), value)
      .map((parts) => parts.join(" "));
    const { block } = fc.letrec<{ block: string }>((tie) => ({
      block: fc.oneof(
        { depthSize: "small" },
        fc.constantFrom("text ", "{% break %}", "{% continue %}"),
        chain.map((one) => `{{ ${one} }}`),
        chain.map((one) => `{% assign y = ${one} %}`),
        tie("block").map((inner) => `{% capture y %}${inner}{% endcapture %}`),
        fc
          .tuple(condition, tie("block"), tie("block"))
          .map(([test, a, b]) => `{% if ${test} %}${a}{% else %}${b}{% endif %}`),
        fc
          .tuple(value, tie("block"), tie("block"))
          .map(([list, a, b]) => `{% for i in ${list} %}${a}${b}{% endfor %}`),
        fc
          .tuple(value, value, tie("block"))
          .map(([a, b, c]) => `{% case ${a} %}{% when ${b} %}${c}{% endcase %}`),
      ),
    }));
    fc.assert(
      fc.property(
        fc.array(block, { maxLength: 4 }),
        jsonValues({ maxDepth: 4 }),
        jsonValues({ maxDepth: 2 }),
        (blocks, x, y) => {
          const values = JSON.parse(JSON.stringify({ x, y }));
          const before = JSON.stringify(values);
          const source = blocks.join("");
          const meter = new Meter(30_000);
          try {
            expect(of(source, values, meter).length).toBeLessThanOrEqual(30_000 * 16);
          } catch (error) {
            if (!(error instanceof Spent)) expect(error).toBeInstanceOf(ExpressionError);
          }
          expect(meter.spent).toBeLessThanOrEqual(30_000);
          expect(JSON.stringify(values)).toBe(before);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  test("a property: any text is a template or has an issue, which rendering meets, too", () => {
    const piece = fc.constantFrom(
      ...[
        "{{",
        "}}",
        "{%",
        "%}",
        "{%-",
        "-%}",
        "if",
        "endif",
        "for",
        "in",
        "endfor",
        "raw",
        "endraw",
        "case",
        "when",
      ],
      ...[
        "x",
        ".",
        "[",
        "]",
        "(",
        "..",
        ")",
        "|",
        ":",
        ",",
        "'",
        '"',
        "==",
        "and",
        "not",
        "empty",
        "1",
        " ",
        "\n",
        "#",
      ],
      ...[
        "assign",
        "capture",
        "comment",
        "endcomment",
        "size",
        "append",
        "=",
        "\\",
        "😀",
        "else",
        "unless",
        "__proto__",
      ],
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const source = pieces.join(" ");
        const issues = templateIssues(source);
        try {
          of(source, { x: "value" });
          expect(issues).toEqual([]);
        } catch (error) {
          expect(error).toBeInstanceOf(ExpressionError);
        }
      }),
      { numRuns: 5_000 },
    );
  });
});

test.each<[string, string[]]>([
  ["plain", []],
  ["Dear {{ name | default: 'you' }}: {{ text }}", ["text"]],
  ["{% if a.b %}{{ a.c }}{% endif %}{{ d[e].f | append: g }}", ["d", "e", "g"]],
  ["{% for x in items %}{{ x }}{{ forloop.index }}{{ y }}{% endfor %}", ["items", "y"]],
  [
    "{% assign q = z %}{{ q }}{% case k %}{% when 1 %}{{ k }}{{ m }}{% else %}{{ n }}{% endcase %}",
    ["z", "m", "n"],
  ],
  ["{% capture c %}{{ v }}{% endcapture %}{{ c }}", ["v"]],
  ["{% unless u %}{{ w }}{% elsif o %}{{ o }}{% endunless %}{{ 'a' }}{{ true }}{{ u }}", ["w"]],
  ["{% comment %}{{ no }}{% endcomment %}{% raw %}{{ no }}{% endraw %}", []],
])("STEPREAD-3 %j cannot do without %j", (source, variables) => {
  expect(variablesOf(source).sort()).toEqual(variables.sort());
});
