/** The forms of questions to a person, as the console makes them from the schema of the answer. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answerOf, errorsAt, FORM, fieldsOf } from "../../app/src/runs/gate-form.ts";
import { RunLog } from "../../app/src/runs/run-log.ts";
import type { GateView } from "../../src/client/index.ts";

const schema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 20, title: "Full name" },
    about: { type: "string", description: "A few words." },
    age: { type: "integer" },
    born: { type: "string", format: "date" },
    agreed: { type: "boolean" },
    size: { enum: ["s", 2, null] },
    tags: { type: "array", items: { type: "string" }, default: [] },
    other: { anyOf: [{ type: "string" }, { type: "number" }] },
  },
  required: ["name", "age"],
} satisfies GateView["schema"];

const input = fieldsOf({ kind: "human.input", schema });

describe("the form of a question", () => {
  it("has a field for each member, of its type, and JSON for anything deeper", () => {
    expect(input.map(({ pointer, label, kind, isRequired }) => [pointer, label, kind, isRequired])).toEqual([
      ["/name", "Full name", "line", true],
      ["/about", "About", "text", false],
      ["/age", "Age", "number", true],
      ["/born", "Born", "date", false],
      ["/agreed", "Agreed", "boolean", false],
      ["/size", "Size", "choice", false],
      ["/tags", "Tags", "json", false],
      ["/other", "Other", "json", false],
    ]);
    expect(input.find(({ pointer }) => pointer === "/tags")?.initial).toBe("[]");
  });

  it("takes any answer as JSON if the schema lists no members", () => {
    for (const open of [{}, { type: "object" }, { $ref: "#/$defs/a", $defs: { a: { type: "string" } } }]) {
      const fields = fieldsOf({ kind: "human.input", schema: open });
      expect(fields.map(({ pointer, kind }) => [pointer, kind])).toEqual([["", "json"]]);
      expect(answerOf(fields, { "": "[1]" })).toEqual({ answer: [1] });
    }
    const text = fieldsOf({ kind: "human.input", schema: { type: "string" } });
    expect(answerOf(text, { "": "[1]" })).toEqual({ answer: "[1]" });
  });

  it("makes the answer from the texts, without empty texts", () => {
    const texts = {
      "/name": "Ada",
      "/age": "36",
      "/agreed": "false",
      "/size": "2",
      "/tags": "",
      "/about": " ",
    };
    expect(answerOf(input, texts)).toEqual({ answer: { name: "Ada", age: 36, agreed: false, size: 2 } });
    expect(answerOf(input, { "/age": "many", "/other": "{" })).toEqual({
      errors: new Map([
        ["/name", "Enter a value."],
        ["/age", "Enter a number, such as 12.5."],
        ["/other", expect.stringMatching(/^This is not JSON: /)],
      ]),
    });
  });

  it("keeps every text and every number unchanged", () => {
    const fields = fieldsOf({
      kind: "human.input",
      schema: { type: "object", properties: { "a/b~c": { type: "string" }, n: { type: "number" } } },
    });
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        (text, number) => {
          const made = answerOf(fields, { "/a~1b~0c": text, "/n": String(number) });
          const expected = { n: Number(String(number)), ...(text.trim() === "" ? {} : { "a/b~c": text }) };
          expect(made).toEqual({ answer: expected });
        },
      ),
    );
  });

  it("gives a review the members of its changes, and omits the changes if all are empty", () => {
    const review = (changes: GateView["schema"]) =>
      fieldsOf({
        kind: "human.review",
        schema: { type: "object", properties: { approved: {}, comment: { type: "string" }, changes } },
      });
    const fields = review({
      type: "object",
      properties: { subject: { type: "string" } },
      required: ["subject"],
    });
    expect(fields.map(({ pointer, isRequired }) => [pointer, isRequired])).toEqual([
      ["/comment", false],
      ["/changes/subject", false],
    ]);
    expect(answerOf(fields, {}, { approved: false })).toEqual({ answer: { approved: false } });
    expect(answerOf(fields, { "/comment": "Ok.", "/changes/subject": "B" }, { approved: true })).toEqual({
      answer: { approved: true, comment: "Ok.", changes: { subject: "B" } },
    });
    expect(review({}).map(({ pointer, kind }) => [pointer, kind])).toEqual([
      ["/comment", "text"],
      ["/changes", "json"],
    ]);
  });

  it("shows each problem that the server found at its field, and the others at the form", () => {
    const issues = [
      { path: "/answer/age", message: "is too small" },
      { path: "/answer/tags/0", message: "is no text" },
      { path: "/answer/tags/1", message: "is no text" },
      { path: "/answer/ages", message: "is unknown" },
      { path: "/answer", message: "is incomplete" },
    ];
    expect([...errorsAt(input, issues)]).toEqual([
      ["/age", "is too small"],
      ["/tags", "/0: is no text\n/1: is no text"],
      [FORM, "/ages: is unknown\nis incomplete"],
    ]);
    const whole = fieldsOf({ kind: "human.input", schema: {} });
    expect([...errorsAt(whole, [{ path: "/answer/a", message: "is wrong" }])]).toEqual([
      ["", "/a: is wrong"],
    ]);
  });
});

describe("the log of a run", () => {
  const time = "2026-11-25T12:00:00.000Z";

  it("keeps the person who answered", () => {
    const log = new RunLog();
    log.add({ seq: 1, time, type: "token.created", token: 0, node: "ask" });
    log.add({ seq: 2, time, type: "gate.opened", token: 0, node: "ask", data: { prompt: "May I?" } });
    log.add({ seq: 3, time, type: "gate.opened", data: { prompt: "More time?" } });
    const answered = (by: string, answer: unknown) => ({ by, answer }) as { by: string; answer: null };
    log.add({ seq: 4, time, type: "gate.answered", data: answered("ada", { approved: true }) });
    log.add({ seq: 5, time, type: "gate.answered", token: 0, node: "ask", data: answered("ben", [1]) });
    expect(log.answers).toEqual([{ by: "ada", time, value: { approved: true }, approved: true }]);
    expect(log.visits("ask").tokens[0]?.answer).toEqual({ by: "ben", time, value: [1] });
    log.add({ seq: 6, time, type: "token.completed", token: 0, node: "ask" });
  });
});
