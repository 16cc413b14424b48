/** What a thread of a channel posts, and when a post is repeated. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  afterAttempt,
  MAX_ATTEMPTS,
  partsOf,
  pauseMs,
  pressed,
  textOf as textAt,
} from "../../src/agents/channel/core/posts.ts";
import type { ChannelDelivery } from "../../src/protocol/channels.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { SubscribedFrame } from "../../src/protocol/subscribers.ts";

const error = { code: "ratelimited", message: "Later." };
const failed = (retryable: boolean): ChannelDelivery => ({ status: "failed", retryable, error });
const uncertain: ChannelDelivery = { status: "uncertain", error };

describe("CHANNEL-5 after an attempt", () => {
  test("a post is repeated only if it surely failed, or if a repetition shows no text twice", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 2 * MAX_ATTEMPTS }),
        fc.boolean(),
        fc.constantFrom(failed(true), failed(false), uncertain, { status: "delivered" } as const),
        (attempts, isRepeatable, result) => {
          const mayRepeat =
            result === uncertain ? isRepeatable : result.status === "failed" && result.retryable;
          const givenUp = {
            ...{ type: "given up", isSent: result === uncertain ? null : false },
            reason: "ratelimited: Later.",
          };
          const expected =
            result.status === "delivered"
              ? { type: "done" }
              : mayRepeat && attempts < MAX_ATTEMPTS
                ? { type: "again", pauseMs: pauseMs(attempts) }
                : givenUp;
          expect(afterAttempt({ attempts, isRepeatable }, result)).toEqual(expected);
        },
      ),
    );
  });

  test("the pause is as long as the platform asks", () => {
    const asked = { ...failed(true), retryAfterMs: 30_000 } as ChannelDelivery;
    expect(afterAttempt({ attempts: 1, isRepeatable: false }, asked)).toEqual({
      type: "again",
      pauseMs: 30_000,
    });
    const long = { ...asked, retryAfterMs: 30 * 86_400_000 } as ChannelDelivery;
    expect(afterAttempt({ attempts: 1, isRepeatable: false }, long)).toEqual({
      type: "again",
      pauseMs: 3_600_000,
    });
  });
});

describe("parts of a text", () => {
  test("are short, in order, and lose only blanks", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", " ", "\n", "🙂", "é"), maxLength: 80 }),
        fc.integer({ min: 2, max: 20 }),
        (text, max) => {
          const parts = partsOf(text, max);
          const plain = (value: string) => value.replaceAll(/\s/g, "");
          expect(plain(parts.join(""))).toBe(plain(text));
          for (const part of parts) {
            expect(part.length).toBeLessThanOrEqual(max);
            expect(part.isWellFormed()).toBe(true);
            expect(part.trim()).not.toBe("");
          }
        },
      ),
    );
  });

  test("end between words or lines", () => {
    expect(partsOf("one two three", 8)).toEqual(["one two", "three"]);
    expect(partsOf("short")).toEqual(["short"]);
    expect(partsOf("  ")).toEqual([]);
  });
});

const place = { conversationId: "conv_1" };
const textOf = (frame: SubscribedFrame, withInterim: boolean) => textAt(frame, withInterim, place);

describe("CHANNEL-4 the text of a frame", () => {
  const frame = (part: Pick<Frame, "type" | "data">) =>
    // SAFETY: the parts are those of the type.
    ({ v: 1, time: "2026-01-01T00:00:00Z", turnId: "turn_1", operationId: "op_1", ...part }) as Frame;
  const message = (content: string, interim?: true) =>
    frame({ type: "message.completed", data: { agentId: "guide", content, ...(interim && { interim }) } });

  test("of a message, without empty and interim texts", () => {
    expect(textOf(message("Hello."), false)).toEqual({ text: "Hello." });
    expect(textOf(message(" \n"), true)).toBeNull();
    expect(textOf(message("I look.", true), true)).toEqual({ text: "I look." });
    expect(textOf(message("I look.", true), false)).toBeNull();
  });

  test("of a frame without its data says where to read or answer", () => {
    const omitted = (type: "message.completed" | "approval.requested" | "turn.completed") =>
      textOf({ v: 1, time: "2026-01-01T00:00:00Z", turnId: "turn_1", type, omitted: true }, true);
    expect(omitted("message.completed")?.text).toContain("Read it in the console.");
    expect(omitted("approval.requested")).toEqual({
      text: expect.stringContaining("Answer in the console."),
    });
    expect(omitted("turn.completed")).toBeNull();
  });

  test("of a request for approval names the call to answer, also that of an agent below", () => {
    const data = { name: "ask", input: {}, expiresAt: "2026-01-02T00:00:00Z" };
    const own = textOf(
      frame({ type: "approval.requested", data: { ...data, name: "pay", input: { to: "Bob" } } }),
      true,
    );
    expect(own).toMatchObject({
      approval: { operationId: "op_1" },
      text: expect.stringContaining('"to": "Bob"'),
    });
    const long = textOf(
      frame({ type: "approval.requested", data: { ...data, input: { note: "x".repeat(9_000), to: "Eve" } } }),
      true,
    );
    expect(long?.approval).toBeUndefined();
    expect(long?.text).toContain("Answer in the console.");
    const of = { operationId: "op_2", name: "pay", input: { to: "Eve" } };
    const below = textOf(frame({ type: "approval.requested", data: { ...data, of } as never }), true);
    expect(below).toMatchObject({
      approval: { operationId: "op_2" },
      text: expect.stringContaining('"to": "Eve"'),
    });
  });

  const asked = (elicitation: object, more: object = {}) => {
    const data = { name: "order", input: { item: "pen" }, expiresAt: "2026-01-02T00:00:00Z", elicitation };
    return frame({ type: "approval.requested", data: { ...data, ...more } as never });
  };

  test("CHANNEL-9 of a question shows it, without buttons if the answer has values or an address", () => {
    const count = { type: "object", properties: { count: { type: "integer" } } };
    const form = asked({ message: "How many?\nAnd when?", schema: count, round: 1 });
    const text = textOf(form, true);
    expect(text).toEqual({ text: expect.stringContaining("> How many?\n> And when?") });
    expect(text?.text).toContain('"item": "pen"');
    expect(text?.text).toContain("Answer in the console.");
    const server = "https://agents.example.com/";
    expect(textAt(form, true, { ...place, server })?.text).toContain(
      "Answer in the console: https://agents.example.com/c/conv_1",
    );
    const url = textOf(asked({ message: "Sign in.", host: "login.example.com", round: 1 }), true);
    expect(url).toEqual({ text: expect.stringContaining("login.example.com") });
    for (const schema of [undefined, { type: "object", properties: {} }])
      expect(textOf(asked({ message: "Sure?", ...(schema && { schema }), round: 2 }), true)).toMatchObject({
        approval: { operationId: "op_1#2" },
        text: expect.stringContaining("> Sure?"),
      });
    const of = {
      operationId: "op_2",
      name: "order",
      input: {},
      elicitation: { message: "Whose?", round: 1 },
    };
    expect(textOf(asked({}, { of, elicitation: undefined }), true)).toMatchObject({
      approval: { operationId: "op_2#1" },
      text: expect.stringContaining("> Whose?"),
    });
    const { input: _, ...large } = of;
    expect(textOf(asked({}, { of: large }), true)).toEqual({
      text: expect.stringContaining("its input is too long for this place"),
    });
  });

  test("CHANNEL-9 of a workflow that waits for a person says where to answer", () => {
    const held = frame({ type: "work.held", data: { runId: "run_1" } });
    expect(textOf(held, true)).toEqual({ text: expect.stringContaining("Answer in the console.") });
    expect(textAt(held, true, { ...place, server: "https://agents.example.com" })?.text).toContain(
      "https://agents.example.com/runs/run_1",
    );
    expect(textOf(frame({ type: "work.held", data: {} }), true), "an agent, which asks itself").toBeNull();
  });

  test("CHANNEL-9 the id of a button has the round of its question", () => {
    expect(pressed("op_1", true)).toEqual({ operationId: "op_1", answer: { approved: true } });
    expect(pressed("op_1#2", true)).toEqual({
      operationId: "op_1",
      answer: { approved: true, round: 2, values: {} },
    });
    expect(pressed("op_1#2", false)).toEqual({ operationId: "op_1", answer: { approved: false, round: 2 } });
  });
});
