/** Repeated calls: a note at the third equal result, and an answer without tools after the fifth. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { fittedMoves } from "../../src/agents/conversation/core/planning/moves.ts";
import {
  isStuck,
  type RepeatableCall,
  repeatNotes,
} from "../../src/agents/conversation/core/planning/repeats.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import { SteeredConversation } from "../support/steered-model.ts";

/** One call in the reply with this index. */
function called(reply: number, input: JsonObject = { n: 1 }, result: Json = "same", more: object = {}) {
  const call = {
    name: "look",
    input,
    mode: "sync",
    reply,
    result: { tool_call_id: `${reply}`, success: true, result },
  };
  return { ...call, ...more } as RepeatableCall;
}

const notesAfter = (calls: RepeatableCall[], replies: number) => repeatNotes(calls, replies).length;

describe("which calls are repeated", () => {
  test("REPEAT-1 tool, input and result are equal, whatever the order of members", () => {
    const two = [called(0, { a: 1, b: { c: 2, d: 3 } }), called(1, { b: { d: 3, c: 2 }, a: 1 })];
    expect(notesAfter([...two, called(2, { a: 1, b: { c: 2, d: 3 } })], 3)).toBe(1);
    expect(notesAfter([...two, called(2, { a: 1, b: { c: 2 } })], 3)).toBe(0);
    expect(notesAfter([...two, called(2, { a: 1, b: { c: 2, d: 3 } }, "other")], 3)).toBe(0);
    expect(notesAfter([...two, called(2, { a: 1, b: { c: 2, d: 3 } }, "same", { name: "see" })], 3)).toBe(0);
  });

  test("REPEAT-1 equal calls of one reply count once, and so do late results of one cycle", () => {
    expect(notesAfter(Array(5).fill(called(2)), 3)).toBe(0);
    expect(notesAfter([called(0), called(1), called(2), called(2)], 3)).toBe(1);
    const late = (delivered?: number) => called(0, {}, "late", { mode: "async", delivered });
    expect(notesAfter([late(3), late(3), late(3)], 3)).toBe(0);
    expect(notesAfter([late(1), late(2), late(3)], 3)).toBe(1);
    expect(notesAfter([late(1), late(2), late()], 3)).toBe(0);
  });

  test("REPEAT-1 REPEAT-2 REPEAT-3 REPEAT-4 notes and the end follow from the counts of equal calls before, in every history", () => {
    const history = fc.array(
      fc.array(fc.record({ n: fc.nat(1), result: fc.nat(1) }), { minLength: 1, maxLength: 3 }),
      { maxLength: 14 },
    );
    fc.assert(
      fc.property(history, (rounds) => {
        const calls = rounds.flatMap((round, reply) =>
          round.map(({ n, result }) => called(reply, { n }, result)),
        );
        for (let replies = 0; replies <= rounds.length; replies++) {
          const kinds = new Set((rounds[replies - 1] ?? []).map((call) => JSON.stringify(call)));
          const times = [...kinds].map(
            (kind) =>
              rounds.slice(0, replies).filter((round) => round.some((call) => JSON.stringify(call) === kind))
                .length,
          );
          expect(notesAfter(calls, replies)).toBe(times.filter((count) => count >= 3).length);
          expect(isStuck(calls, replies)).toBe(times.some((count) => count >= 5));
          const before = calls.filter(({ reply }) => reply < replies);
          expect(repeatNotes(calls, replies)).toEqual(repeatNotes(before, replies));
        }
      }),
    );
  });

  test("MOVES-2 REPEAT-2 a note belongs to the round of its results, which are no stubs", () => {
    const result = (id: string): ContextMessage => ({
      role: "tool",
      toolCallId: id,
      content: JSON.stringify("word ".repeat(2_000)),
    });
    const asks = (id: string): ContextMessage => ({
      role: "assistant",
      content: "",
      toolCalls: [{ id, name: "look", arguments: {} }],
    });
    const [note] = repeatNotes([called(0), called(1), called(2)], 3);
    if (note === undefined) throw new Error("There is no note.");
    const fitted = fittedMoves([asks("a"), result("a"), asks("b"), result("b"), note], 1_000);
    expect(fitted[1]?.content).toContain("Left out");
    expect(fitted[3]?.content).not.toContain("Left out");
    expect(fitted[4]).toBe(note);
  });
});

test("REPEAT-3 a later cycle gets the tools back, until the call is repeated once more", async () => {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    effect: "pure",
    input: z.object({}),
    execute: async () => "nothing",
  });
  const dig = defineTool({
    name: "dig",
    description: "Digs in the background.",
    effect: "idempotent",
    async: true,
    input: z.object({}),
    execute: () => new Promise((resolve) => (found = resolve)),
  });
  let found: (gold: string) => void = () => undefined;
  const room = await SteeredConversation.create(defineLibrary("mine", { tools: [look, dig] }));
  const id = await room.say("Find gold.");
  (await room.request()).call(["dig", {}]);
  for (let n = 0; n < 5; n++) (await room.request()).call(["look", {}]);
  const stuck = await room.request();
  expect(stuck.body.tool_choice).toBe("none");
  stuck.answer("Nothing yet.");
  await room.until(({ type }) => type === "turn.waiting");
  found("gold");
  const next = await room.request();
  expect(next.body.tool_choice).toBe("auto");
  expect(JSON.stringify(next.messages).startsWith(JSON.stringify(stuck.messages).slice(0, -1))).toBe(true);
  next.call(["look", {}]);
  const last = await room.request();
  expect(last.body.tool_choice).toBe("none");
  expect(last.messages.at(-1)).toMatchObject({ role: "system", content: expect.stringContaining("6 times") });
  last.answer("Gold.");
  await room.until(({ type }) => type === "turn.completed");
  expect(room.turn(id).answer).toBe("Gold.");
});
