/**
 * Hostile bodies against the reader of bodies: within its bounds, it accepts exactly the texts that `JSON.parse`
 * accepts.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readJson } from "../../src/http/base/body.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { parseBody, parseJson, parseJsonText } from "../../src/shared/json.ts";
import { MAX_VALUES, shapeProblem } from "../../src/shared/json-shape.ts";
import { FIXED_BODIES, HOSTILE_SHAPES, hostileBodies, jsonDepth, valuesIn } from "../support/hostile-json.ts";

type Outcome = { value: unknown } | { code: string };

/** The expected value of the body, by the platform's own decoder and parser. */
function expected(bytes: Uint8Array): Outcome {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    return { code: "INVALID_JSON" };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { code: "INVALID_JSON" };
  }
  // SAFETY: JSON.parse gives JSON.
  if (jsonDepth(value, 64) > 64) return { code: "INVALID_JSON" };
  if (valuesIn(value) > MAX_VALUES) return { code: "TOO_LARGE" };
  return isWellFormed(value) ? { value } : { code: "INVALID_INPUT" };
}

/** `JSON.stringify` escapes only lone surrogates in this way. */
function isWellFormed(value: unknown): boolean {
  return !/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(JSON.stringify(value));
}

function outcome(read: () => unknown): Outcome {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof DramatisError) return { code: error.code };
    throw error;
  }
}

describe("BODY-2 a hostile body", () => {
  it.each(FIXED_BODIES.map((bytes) => [Buffer.from(bytes).toString("latin1").slice(0, 40), bytes] as const))(
    "%j is read as JSON.parse reads it, or refused",
    (_name, bytes) => {
      expect(outcome(() => parseBody(bytes))).toEqual(expected(bytes));
    },
  );

  it("is read as JSON.parse reads it, or refused, whatever it is", () => {
    let read = 0;
    let refused = 0;
    fc.assert(
      fc.property(hostileBodies, (bytes) => {
        const found = outcome(() => parseBody(bytes));
        expect(found).toEqual(expected(bytes));
        if ("value" in found) read += 1;
        else refused += 1;
      }),
      { numRuns: 400 },
    );
    expect(Math.min(read, refused), `read ${read}, refused ${refused}`).toBeGreaterThan(20);
  });

  it("is bounded when it arrives in pieces, and read alike however it is cut", async () => {
    const LIMIT = 100_000;
    const pieces = fc.integer({ min: 1, max: 50_000 });
    await fc.assert(
      fc.asyncProperty(hostileBodies, pieces, async (bytes, size) => {
        const body = new ReadableStream({
          start(controller) {
            for (let start = 0; start < bytes.length; start += size)
              controller.enqueue(bytes.slice(start, start + size));
            controller.close();
          },
        });
        const init = { method: "POST", body, duplex: "half" };
        const found = await readJson(new Request("http://localhost/", init), LIMIT).then(
          (value) => ({ value }),
          (error: unknown) => {
            if (error instanceof DramatisError) return { code: error.code };
            throw error;
          },
        );
        expect(found).toEqual(bytes.length > LIMIT ? { code: "TOO_LARGE" } : expected(bytes));
      }),
      { numRuns: 100 },
    );
  });

  it("pollutes no prototype", () => {
    for (const bytes of FIXED_BODIES) outcome(() => parseBody(bytes));
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
    const text = '{"__proto__":{"admin":true}}';
    const value = parseBody(new TextEncoder().encode(text)) as object;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(value)).toEqual(["__proto__"]);
  });
});

describe("JSON-1 a text", () => {
  const numbers = (count: number, step: number) => Array.from({ length: count }, (_, n) => String(n * step));
  const keys = (names: readonly string[]) => `{${names.map((name) => `"${name}":0`).join(",")}}`;

  it.each(Object.entries(HOSTILE_SHAPES))(
    "of a hostile shape is refused before it is parsed: %s",
    (_, text) => {
      expect(outcome(() => parseJsonText(text, "The text"))).toEqual({
        code: expect.stringMatching(/^(TOO_LARGE|INVALID_JSON)$/),
      });
      expect(parseJson(text)).toBeUndefined();
    },
  );

  it("with numbers in quotes is read if they do not collide, or are few or equal", () => {
    const escaped = numbers(3_000, 65_536).map((name) => name.replace(/./, (digit) => `\\u003${digit}`));
    for (const [text, isRead] of [
      [keys(numbers(20_000, 1)), true],
      [keys(numbers(20_000, 10)), true],
      [keys(numbers(1_000, 65_536)), true],
      [JSON.stringify(Array.from({ length: 40_000 }, (_, n) => String((n % 3) * 1_024))), true],
      [keys(numbers(3_000, 65_536)), false],
      [keys(numbers(3_000, 1_024)), false],
      [keys(escaped), false],
      [JSON.stringify(numbers(3_000, 65_536)), false],
      [JSON.stringify(numbers(3_000, 65_536).map((text) => `n${text}`)), true],
    ] as const)
      expect(shapeProblem(text, 64) === null, text.slice(0, 60)).toBe(isRead);
  });

  it("may have a name and a text for each value, and no more texts", () => {
    const members = Array.from({ length: MAX_VALUES }, (_, n) => `"k${n}":""`);
    expect(shapeProblem(`{${members.join(",")}}`, 64)).toBeNull();
    expect(shapeProblem('""'.repeat(2 * MAX_VALUES), 64)).toBeNull();
    expect(shapeProblem('""'.repeat(2 * MAX_VALUES + 1), 64)?.code).toBe("TOO_LARGE");
  });

  it("is measured as its value is: by its values and its depth, whatever its strings contain", () => {
    const strings = fc.string({ unit: fc.constantFrom(...'[]{},:"\\ab1 é') });
    const { value } = fc.letrec<{ value: unknown }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 6, depthSize: "large" },
        strings,
        fc.integer(),
        fc.array(tie("value")),
        fc.dictionary(strings, tie("value"), { noNullPrototype: true }),
      ),
    }));
    fc.assert(
      fc.property(value, fc.integer({ min: 0, max: 6 }), (given, maxDepth) => {
        const text = JSON.stringify(given);
        // SAFETY: generated as JSON.
        const isDeep = jsonDepth(given, maxDepth) > maxDepth;
        expect(shapeProblem(text, maxDepth)?.code).toBe(isDeep ? "INVALID_JSON" : undefined);
      }),
    );
    for (const [count, code] of [
      [MAX_VALUES - 1, undefined],
      [MAX_VALUES + 1, "TOO_LARGE"],
    ] as const)
      expect(shapeProblem(JSON.stringify(Array(count).fill("[,")), 64)?.code).toBe(code);
  });
});

describe("JSON-2 a text with objects that have whole numbers as names", () => {
  const list = (count: number, object: string) => `[${Array(count).fill(object).join(",")}]`;
  const object = (names: readonly (string | number)[]) => `{${names.map((name) => `"${name}":0`).join(",")}}`;
  const upTo = (count: number, step = 1) => Array.from({ length: count }, (_, n) => n * step);
  const nested = (name: string) => `${`{"${name}":`.repeat(50)}1${"}".repeat(50)}`;

  it.each<[string, string]>([
    ["in a list", list(25_000, object([1_023]))],
    ["in each other", list(900, nested("1023"))],
    ["smaller", list(20_000, object([200]))],
    ["escaped", list(900, nested("\\u0031\\u00302\\u0033"))],
    ["with space before the colon", list(2_000, '{"1023" \n\t\r: 1}')],
    ["several, each within reach of the previous", list(400, object([1_023, 2_500]))],
    ["in descending order", list(400, object([2_500, 1_023]))],
    ["with a first number", list(200, object([0, 4_999]))],
    ["beside other names", list(2_000, '{"a":"\\"", "1023":[{"b":1}], "c":{"1":2}}')],
  ])("is refused if copies would have many empty places: %s", (_, text) => {
    expect(shapeProblem(text, 64)).toEqual({
      code: "TOO_LARGE",
      what: expect.stringContaining("few members"),
    });
  });

  it.each<[string, string]>([
    ["one large object", object(upTo(40_000))],
    ["objects like lists", list(400, object(upTo(100)))],
    ["each tenth number", list(10, object(upTo(1_000, 10)))],
    ["numbers 0 and 100", list(300, object([0, 1, 100]))],
    ["one number many times", list(400, object(Array(100).fill(1_023)))],
    ["years", list(10_000, object([2_024]))],
    ["ids", list(300, object(upTo(100).map((n) => 48_213 + 977 * n)))],
    ["codes of answers", list(500, object([200, 400, 404, 500]))],
    ["no canonical numbers", list(10_000, object(["01023", "1023.0", "-1", "1e3"]))],
    ["texts instead of names", list(20_000, '"1023"')],
  ])("is read if copies are small: %s", (_, text) => {
    expect(shapeProblem(text, 64)).toBeNull();
  });
});
