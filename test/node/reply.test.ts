/** Assembling a reply from deltas. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ReplyAccumulator, type ReplyOutcome } from "../../src/adapters/index.ts";
import type { ModelDelta } from "../../src/model/reply.ts";

function assemble(deltas: readonly ModelDelta[]): ReplyOutcome {
  const reply = new ReplyAccumulator("openai");
  for (const delta of deltas) reply.add(delta);
  return reply.outcome();
}

describe("assembling a reply", () => {
  test("REPLY-1 however the text is cut, surrogate pairs included", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.array(fc.nat(), { maxLength: 40 }), (whole, cuts) => {
        const reply = new ReplyAccumulator("openai");
        const ends = [...cuts.map((place) => place % (whole.length + 1)), whole.length].sort((a, b) => a - b);
        let from = 0;
        for (const end of ends) {
          reply.add({ type: "text", text: whole.slice(from, end) });
          expect(reply.partialText).toBe(whole.slice(0, end).toWellFormed());
          from = end;
        }
        reply.add({ type: "finish", reason: "stop" });
        expect(reply.outcome()).toMatchObject({ ok: true, reply: { text: whole } });
      }),
    );
  });

  test("REPLY-2 two calls with the same id are distinguished", () => {
    const call = (index: number, id?: string): ModelDelta => {
      return { type: "tool-call", index, name: "a", ...(id === undefined ? {} : { id }) };
    };
    const outcome = assemble([
      call(0, "x"),
      call(1, "x"),
      call(2, "call_3"),
      call(3),
      call(4, ""),
      { type: "finish", reason: "tool_calls" },
    ]);
    expect(outcome.ok && outcome.reply.toolCalls.map(({ id }) => id)).toEqual([
      "x",
      "x_2",
      "call_3",
      "call_3_2",
      "call_4",
    ]);
  });

  test("REPLY-3 without a finish it is a failure, and the first error wins", () => {
    expect(assemble([{ type: "text", text: "Hal" }])).toMatchObject({
      error: { category: "transient" },
    });
    const error = { category: "quota", message: "spent", retriable: false, provider: "openai" } as const;
    expect(
      assemble([
        { type: "finish", reason: "stop" },
        { type: "error", error },
      ]),
    ).toEqual({
      ok: false,
      error,
    });
  });

  test("REPLY-4 texts are well-formed", () => {
    const outcome = assemble([
      { type: "text", text: "a\ud800" },
      { type: "reasoning", text: "\udc00b" },
      { type: "tool-call", index: 0, name: "n", arguments: "\ud800" },
      { type: "finish", reason: "stop" },
    ]);
    expect(outcome).toMatchObject({
      reply: { text: "a\ufffd", reasoning: "\ufffdb", toolCalls: [{ invalidArguments: "\ufffd" }] },
    });
  });

  test.each([
    ["", { arguments: {} }],
    [" \n", { arguments: {} }],
    ['{"a":[1]}', { arguments: { a: [1] } }],
    ['{"a":', { arguments: {}, invalidArguments: '{"a":' }],
    ["[1]", { arguments: {}, invalidArguments: "[1]" }],
    ["null", { arguments: {} }],
    [" null\n", { arguments: {} }],
    [
      '{"a\\udc00":["\\ud83e",{"b":"\\ud83e\\udd8a"}]}',
      { arguments: { "a\ufffd": ["\ufffd", { b: "🦊" }] } },
    ],
    ['"{}"', { arguments: {}, invalidArguments: '"{}"' }],
    ['{"a":[-1e400]}', { arguments: {}, invalidArguments: '{"a":[-1e400]}' }],
  ])("arguments %j", (input, expected) => {
    const outcome = assemble([
      { type: "tool-call", index: 0, id: "c", name: "a", arguments: input.slice(0, 3) },
      { type: "tool-call", index: 0, arguments: input.slice(3) },
      { type: "finish", reason: "tool_calls" },
    ]);
    expect(outcome.ok && outcome.reply.toolCalls).toEqual([{ id: "c", name: "a", ...expected }]);
  });
});
