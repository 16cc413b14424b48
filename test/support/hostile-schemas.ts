/** Hostile schemas and patterns: attachments of a message, and the replies that make them expensive. */

export interface HostileCase {
  /** The schema of a turn's answer. */
  schema: object;
  /** The model's reply that is checked against it. */
  reply: unknown;
}

const range = <Item>(count: number, item: (n: number) => Item) =>
  Array.from({ length: count }, (_, n) => item(n));
const inObject = (part: object, more: object = {}) => ({ type: "object", properties: { a: part }, ...more });
const nested = (levels: number): object => (levels === 0 ? {} : { a: nested(levels - 1) });
const twice = (name: string) => ({ allOf: [{ $ref: `#/$defs/${name}` }, { $ref: `#/$defs/${name}` }] });
const defs = Object.fromEntries(range(9, (n) => [`d${n}`, n === 8 ? { minLength: 1 } : twice(`d${n + 1}`)]));

const LEVELS = 180;
/** Definitions that each refer to the next. The last definition evaluates a name. */
const marksOf = (name: string) =>
  Object.fromEntries(
    range(LEVELS, (n) => [
      `d${n}`,
      n === LEVELS - 1 ? { properties: { [name]: true } } : { $ref: `#/$defs/d${n + 1}` },
    ]),
  );

/** Schemas that double, compare or describe very much. */
export const HOSTILE_SCHEMAS: Readonly<Record<string, HostileCase>> = {
  "doubles at each level of the value": {
    schema: inObject({ allOf: [{ $ref: "#" }, { $ref: "#" }] }),
    reply: nested(60),
  },
  "doubles by references": {
    schema: inObject({ items: { $ref: "#/$defs/d0" } }, { $defs: defs }),
    reply: { a: range(5_000, String) },
  },
  "has an identifier under an unknown keyword": {
    schema: inObject(
      { $ref: "#/$defs/x" },
      { $defs: { x: {} }, foo: { $id: "#/$defs/x", pattern: "^(a+)+$" } },
    ),
    reply: { a: `${"a".repeat(40)}!` },
  },
  "has marks of a validator": {
    schema: inObject(
      { $ref: "#/$defs/x", __absolute_ref__: "#/$defs/y" },
      { $defs: { x: {}, y: { pattern: "^(a+)+$" } } },
    ),
    reply: { a: `${"a".repeat(40)}!` },
  },
  "applies itself": { schema: inObject({}, { allOf: [{ $ref: "#" }] }), reply: {} },
  "tries very many alternatives": {
    schema: inObject({ items: { anyOf: range(900, (n) => ({ const: n + 0.5 })) } }),
    reply: { a: range(10_000, (n) => n) },
  },
  "compares all items": {
    schema: inObject({ uniqueItems: true }),
    reply: { a: range(20_000, (n) => ({ n })) },
  },
  "compares with a long list": {
    schema: inObject({ items: { enum: range(5_000, (n) => `k${n}`) } }),
    reply: { a: range(20_000, (n) => `x${n}`) },
  },
  "finds very many violations": {
    schema: inObject({ additionalProperties: { type: "object", required: range(500, (n) => `k${n}`) } }),
    reply: { a: Object.fromEntries(range(10_000, (n) => [`k${n}`, {}])) },
  },
  "evaluates members by combinations": {
    schema: inObject({
      anyOf: range(400, (n) => ({ properties: { [`k${n}`]: {} } })),
      unevaluatedProperties: false,
    }),
    reply: { a: Object.fromEntries(range(10_000, (n) => [`k${n}`, 1])) },
  },
  "divides by tiny numbers": {
    schema: inObject({ items: { multipleOf: 5e-324 } }),
    reply: { a: range(20_000, (n) => 1e308 - n) },
  },
  "has very many parts": {
    schema: {
      type: "object",
      properties: Object.fromEntries(range(3_000, (n) => [`p${n}`, { anyOf: [{}, {}] }])),
    },
    reply: Object.fromEntries(range(3_000, (n) => [`p${n}`, 1])),
  },
};

const text = (pattern: string, value: string): HostileCase => ({
  schema: inObject({ pattern }),
  reply: { a: value },
});

/** Patterns that take a backtracking engine exponential time, or that are large. */
export const HOSTILE_PATTERNS: Readonly<Record<string, HostileCase>> = {
  "a repeated repetition": text("^(a+)+$", `${"a".repeat(20_000)}!`),
  "a negated property": text("^(?:[^\\p{L}]+)+$", `${"1".repeat(31)}a`),
  "a negated property and a long text": text("^(?:[^\\p{L}]+)+$", `${"1".repeat(200_000)}a`),
  "equal alternatives": text("^(?:a|a)*$", `${"a".repeat(10_000)}!`),
  "many optional parts": text(`^${"a?".repeat(100)}${"a".repeat(100)}$`, "a".repeat(100)),
  "many states": text("(?:a|b)*a(?:a|b){200}[cd]", "ab".repeat(600)),
  "many boundaries": text("(?:\\b.?){100}[xy]", "a ".repeat(400)),
  "a large program": text("(?:[a-c]|[d-f]){300}[xy]", "ad".repeat(200)),
  properties: text("(?:\\p{L}|\\p{N}){60}[!?]", "a1".repeat(100)),
  names: {
    schema: {
      type: "object",
      patternProperties: Object.fromEntries(range(100, (n) => [`^(?:a|b)*${n}$`, {}])),
    },
    reply: Object.fromEntries(range(2_000, (n) => [`${"ab".repeat(10)}x${n}`, 1])),
  },
  "as many as are accepted": {
    schema: {
      type: "object",
      properties: Object.fromEntries(range(24, (n) => [`p${n}`, { pattern: `^(?:[a-c${n}]|d){130}$` }])),
    },
    reply: Object.fromEntries(range(24, (n) => [`p${n}`, "ad".repeat(64)])),
  },
  "a large class": text(
    `[${range(120, (n) => `\\u{${(0x10000 + 3 * n).toString(16)}}`)
      .join("")
      .slice(0, 480)}]`,
    "a".repeat(10_000),
  ),
  "a lookahead in the middle": text("^(?:a(?=a)|a)*$", "a".repeat(50)),
  "a back-reference": text("^(a+)\\1+$", "a".repeat(50)),
};

/** The number of tools that a sender brings with a schema of `HOSTILE_CALLS`; a reply calls each of them once. */
export const HOSTILE_TOOLS = 4;

/** A schema that a call's arguments are checked against, and do not fit. */
const inCall = (part: object, more: object = {}) => inObject(part, { required: ["missing"], ...more });

/** Schemas of tools, and the arguments of each call. */
export const HOSTILE_CALLS: Readonly<Record<string, HostileCase>> = {
  "very many lookaheads": {
    schema: inCall({ items: { pattern: `^${"(?=)".repeat(122)}` } }),
    reply: { a: range(20_000, () => "") },
  },
  "very many lookaheads that find": {
    schema: inCall({ items: { pattern: `^${"(?!b)".repeat(99)}` } }),
    reply: { a: range(20_000, () => "a") },
  },
  "as many lookaheads as are accepted": {
    schema: inCall({ items: { pattern: `^${"(?=)".repeat(10)}` } }),
    reply: { a: range(20_000, () => "") },
  },
  "very many patterns of names": {
    schema: inCall({
      patternProperties: Object.fromEntries(
        range(1_200, (n) => [`${String.fromCharCode(0x4e00 + n)}?`, true]),
      ),
    }),
    reply: { a: Object.fromEntries(range(2_000, (n) => [String.fromCharCode(0x100 + n), 1])) },
  },
  "many patterns of names": {
    schema: inCall({
      patternProperties: Object.fromEntries(range(150, (n) => [`${String.fromCharCode(0x4e00 + n)}?`, true])),
    }),
    reply: { a: Object.fromEntries(range(2_000, (n) => [String.fromCharCode(0x100 + n), 1])) },
  },
  "a short pattern": { schema: inCall({ items: { pattern: "b" } }), reply: { a: range(40_000, () => "") } },
  "a boundary": { schema: inCall({ items: { pattern: "\\b" } }), reply: { a: range(40_000, () => "") } },
  "multiples of a decimal": {
    schema: inCall({ items: { multipleOf: 0.1 } }),
    reply: { a: range(20_000, (n) => n + 0.5) },
  },
  "marks of whole numbers": {
    schema: inCall(
      { items: { $ref: "#/$defs/d0", unevaluatedProperties: false } },
      { $defs: marksOf("1023") },
    ),
    reply: { a: range(300, () => ({ 1023: 1 })) },
  },
  "names that depend on names": {
    schema: inCall({ items: { dependentSchemas: Object.fromEntries(range(900, (n) => [`k${n}`, true])) } }),
    reply: { a: range(2_000, () => ({})) },
  },
  "lists of types": {
    schema: inCall({ items: { allOf: range(900, () => ({ type: ["null", "object", "array", "string"] })) } }),
    reply: { a: range(2_000, () => 1.5) },
  },
  "lengths of long texts": {
    schema: inCall({ allOf: range(900, () => ({ minLength: 1 })) }),
    reply: { a: "\u00e9".repeat(100_000) },
  },
};
