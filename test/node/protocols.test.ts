/** The encoders of other protocols, over random logs of turns, read by the protocols' own clients and by our own decoder. */
import { readUIMessageStream, type UIMessage, type UIMessageChunk, uiMessageChunkSchema } from "ai";
import fc from "fast-check";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import { ResponseStream } from "openai/lib/responses/ResponseStream";
import { ulid } from "ulid";
import { describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { ReplyAccumulator } from "../../src/adapters/reply.ts";
import { type AnswerEvent, AnswerReader, answerCount, answerOf } from "../../src/compat/answer.ts";
import { ChatChunkEncoder, chatCompletion } from "../../src/compat/openai/chat-chunks.ts";
import { chatInput, completionSchema } from "../../src/compat/openai/chat-request.ts";
import { mayRetry } from "../../src/compat/openai/errors.ts";
import {
  type AnswerAddress,
  conversationOfKey,
  parseCallId,
  parseResponseId,
  responseId,
  startedAt,
  toolCallId,
} from "../../src/compat/openai/ids.ts";
import { callArguments } from "../../src/compat/openai/input.ts";
import { ignoredFields } from "../../src/compat/openai/request-fields.ts";
import { ResponseEventEncoder } from "../../src/compat/openai/response-events.ts";
import { responseObject } from "../../src/compat/openai/response-object.ts";
import { responseInput, responseOptions, responseSchema } from "../../src/compat/openai/response-request.ts";
import { SentText } from "../../src/compat/sent-text.ts";
import { UiMessageEncoder } from "../../src/compat/ui-message/chunks.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { MoveView } from "../../src/protocol/move-schemas.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { validate } from "../../src/shared/validation.ts";
import { jsonValues } from "../support/json-values.ts";
import { openResponse, openResponseEvent } from "../support/open-responses.ts";

const RUNS = { numRuns: 100 };
const CONVERSATION = "conv_01JD0000000000000000000000";
const TURN = "turn_01JD0000000000000000000000";
const TIME = "2026-03-01T10:00:00.000Z";
const ULID = "01JD00000000000000000000";

/** A reply of a model: texts of withdrawn attempts, the final text, and its calls. */
interface ReplyPlan {
  attempts: string[];
  text: string;
  /** The points where deltas are cut. The complete message contains the rest. */
  cuts: number[];
  calls: { name: string; isClient: boolean; isFailed: boolean; input: JsonObject }[];
}

interface TurnPlan {
  replies: ReplyPlan[];
  isFailed: boolean;
  /** It failed because it was stopped, in the middle of its last reply. */
  isStopped: boolean;
}

const texts = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.constantFrom("", " ", "\n\n", "Once upon a time.", "Once", "😀😀"),
);
const reply: fc.Arbitrary<ReplyPlan> = fc
  .record({
    text: texts,
    other: fc.array(texts, { maxLength: 2 }),
    prefixes: fc.array(fc.nat(12), { maxLength: 2 }),
    cuts: fc.array(fc.nat(12), { maxLength: 4 }),
    calls: fc.array(
      fc.record({
        name: fc.constantFrom("look", "save"),
        isClient: fc.boolean(),
        isFailed: fc.boolean(),
        input: fc.dictionary(
          fc.constantFrom("a", "b"),
          jsonValues({ maxDepth: 1 }),
        ) as fc.Arbitrary<JsonObject>,
      }),
      { minLength: 1, maxLength: 3 },
    ),
    isDiverging: fc.boolean(),
  })
  .map(({ other, prefixes, isDiverging, ...plan }) => ({
    ...plan,
    attempts: isDiverging ? other : prefixes.map((length) => [...plan.text].slice(0, length).join("")),
  }));
const turns: fc.Arbitrary<TurnPlan> = fc
  .record({
    before: fc.array(reply, { maxLength: 3 }),
    last: reply,
    isFailed: fc.boolean(),
    isStopped: fc.boolean(),
  })
  .map(({ before, last, isFailed, isStopped }) => ({
    replies: [...before, { ...last, text: last.text.trim() === "" ? "Done." : last.text, calls: [] }],
    isFailed,
    isStopped: isFailed && isStopped,
  }));

const FAILED = { code: "MODEL_FAILED", message: "No.", retriable: false };
const STOPPED = { code: "CANCELLED", message: "The turn was stopped.", retriable: true };

const opId = (reply: number, call: number) => `op_${ULID}${reply}${call}`;
const msgId = (reply: number) => `msg_${ULID}0${reply}`;

/** The turn's log as frames: `isLive` has the deltas and the retracted texts; a replay has only the final texts. */
function framesOf({ replies, isFailed, isStopped }: TurnPlan, isLive = true): Frame[] {
  const base = { v: 1, turnId: TURN, time: TIME } as const;
  const frames: Frame[] = [
    { ...base, type: "turn.started", data: { agentId: "guide" } },
    { ...base, type: "message.user", messageId: `msg_${ULID}99`, data: { content: "Hello" } },
  ];
  replies.forEach(({ attempts, text, cuts, calls }, index) => {
    const message = { ...base, messageId: msgId(index) };
    const isLast = index === replies.length - 1;
    frames.push({ ...message, type: "message.started", data: { agentId: "guide" } });
    for (const attempt of isLive ? attempts : []) {
      frames.push(...deltas(message, attempt, cuts));
      frames.push({ ...message, type: "message.reset", data: { reason: "retry" } });
    }
    if (isLive) frames.push(...deltas(message, text, cuts).slice(0, cuts.length));
    if (isLast && isFailed && !isStopped) return;
    const interim = calls.length > 0 ? { interim: true as const } : {};
    const stopped = isLast && isStopped ? { stopped: true as const } : {};
    frames.push({
      ...message,
      type: "message.completed",
      data: { agentId: "guide", content: text, ...interim, ...stopped },
    });
    calls.forEach(({ name, input, isClient }, call) => {
      const data = { name, input, async: false, ...(isClient ? { client: true as const } : {}) };
      frames.push({ ...base, type: "tool.requested", operationId: opId(index, call), data });
    });
    const results = (ofClient: boolean) =>
      calls.flatMap(({ isClient, isFailed: failed }, call): Frame[] => {
        const operation = { ...base, operationId: opId(index, call) };
        if (isClient !== ofClient) return [];
        if (!failed) return [{ ...operation, type: "tool.completed", data: { result: call } }];
        const error = { code: "EXECUTION_FAILED", message: "No.", retriable: false };
        return [{ ...operation, type: "tool.failed", data: { error } }];
      });
    frames.push(...results(false));
    if (calls.some(({ isClient }) => isClient)) {
      frames.push({ ...base, type: "turn.waiting", data: { reason: "client-tools" } }, ...results(true));
    }
  });
  frames.push(
    isFailed
      ? { ...base, type: "turn.failed", data: { error: isStopped ? STOPPED : FAILED } }
      : { ...base, type: "turn.completed", data: {} },
  );
  return frames.map((frame, index) =>
    frame.type === "message.delta" ? frame : { ...frame, seq: index + 2 },
  );
}

function deltas(
  base: Pick<Frame, "v" | "time"> & { turnId: string; messageId: string },
  text: string,
  cuts: number[],
) {
  const ends = [...new Set(cuts.map((cut) => [...text].slice(0, cut).join("").length))].sort((a, b) => a - b);
  return [...ends, text.length].flatMap((end, index): Frame[] => {
    const offset = ends[index - 1] ?? 0;
    const piece = text.slice(offset, end);
    return piece === "" ? [] : [{ ...base, type: "message.delta", data: { offset, text: piece } }];
  });
}

function viewOf({ replies, isFailed, isStopped }: TurnPlan): TurnView {
  const whole = isFailed && !isStopped ? replies.slice(0, -1) : replies;
  const moves = whole.flatMap(({ text, calls }, index): Omit<MoveView, "sequence">[] => {
    const finishReason = calls.length > 0 ? "tool_calls" : "stop";
    const stopped = isStopped && index === replies.length - 1 ? { stopped: true } : {};
    const raw = { text, toolCalls: [], finishReason, usage: { inputTokens: 3, outputTokens: 1 }, ...stopped };
    if (calls.length === 0) return [{ id: msgId(index), raw, createdAt: TIME }];
    return calls.map(({ name, input, isClient, isFailed: failed }, call) => ({
      id: opId(index, call),
      ...(call === 0 ? { raw } : {}),
      createdAt: TIME,
      toolCall: {
        operationId: opId(index, call),
        name,
        toolId: null,
        input,
        ...(isClient ? { client: true as const } : {}),
      },
      toolResult: { success: !failed },
    }));
  });
  return {
    id: TURN,
    status: isFailed ? "failed" : "completed",
    agentId: "guide",
    createdAt: TIME,
    completedAt: TIME,
    ...(isFailed ? { error: isStopped ? STOPPED : FAILED } : {}),
    conversationId: CONVERSATION,
    answer: isFailed ? null : (replies.at(-1)?.text ?? null),
    correlationId: "corr-0",
    caller: { type: "user", userId: "ada" },
    input: "Hello",
    userMessageId: `msg_${ULID}99`,
    agentMessageIds: [],
    replyToMessageId: null,
    contextAssemblyRunId: null,
    memoryExtractionRunId: null,
    latencyMs: 0,
    usage: null,
    cost: null,
    spent: { tokens: 0, usd: 0, toolCalls: 0, modelCalls: 0 },
    calls: [],
    moves: moves.map((move, index) => ({ ...move, sequence: index + 1 })),
  };
}

const addressOf = (index: number, finalOnly = false): AnswerAddress => ({
  conversationId: CONVERSATION,
  turnId: TURN,
  index,
  finalOnly,
});

function eventsOf(
  plan: TurnPlan,
  part: number,
  options: { finalOnly?: boolean; isLive?: boolean } = {},
): AnswerEvent[] {
  const reader = new AnswerReader(addressOf(part, options.finalOnly));
  return framesOf(plan, options.isLive).flatMap((frame) => reader.push(frame));
}

/** The texts of an answer's messages as they were sent. */
function sentTexts(events: readonly AnswerEvent[]): string[] {
  const sent = new Map<string, string>();
  for (const event of events) {
    if (event.type === "text") sent.set(event.messageId, (sent.get(event.messageId) ?? "") + event.text);
  }
  return [...sent.values()];
}

/** Each answer of a random turn without retracted texts. */
function answers(check: (plan: TurnPlan, part: number, events: AnswerEvent[]) => void | Promise<void>) {
  return fc.assert(
    fc.asyncProperty(turns, async (plan) => {
      for (let part = 0; part < answerCount(viewOf(plan)); part++) {
        const events = eventsOf(plan, part);
        if (answerOf(viewOf(plan), addressOf(part))?.status !== "completed") continue;
        if (events.at(-1)?.type === "end") await check(plan, part, events);
      }
    }),
    RUNS,
  );
}

async function* iterate<Value>(values: readonly Value[]) {
  yield* values;
}

const lines = (values: readonly object[]) =>
  new ReadableStream({
    start(controller) {
      for (const value of values) controller.enqueue(new TextEncoder().encode(`${JSON.stringify(value)}\n`));
      controller.close();
    },
  });

describe("SentText", () => {
  test("PREFIX-1, PREFIX-2, PREFIX-3 the sent pieces begin the text, whatever was withdrawn, or the reader is informed that they do not", () => {
    fc.assert(
      fc.property(reply, fc.array(fc.nat(12)), ({ attempts, text }, cuts) => {
        const sentText = new SentText();
        let sent = "";
        const take = (piece: string | null) => {
          sent += piece ?? "";
          return piece !== null;
        };
        const base = { v: 1, turnId: TURN, messageId: msgId(0), time: TIME } as const;
        for (const attempt of [...attempts, text]) {
          sentText.reset();
          for (const { data } of deltas(base, attempt, cuts)) {
            const { offset, text: piece } = data as { offset: number; text: string };
            // A repeated delta is ignored.
            expect(sentText.add(offset + piece.length + 1, "a gap")).toBe("");
            if (!take(sentText.add(offset, piece)) || sentText.add(offset, piece) !== "") {
              expect(attempt.startsWith(sent)).toBe(false);
              return;
            }
          }
          expect(attempt.startsWith(sent) || sent.startsWith(attempt) || attempt.trim() === "").toBe(true);
          if (sent !== "") expect(sent.trim()).not.toBe("");
        }
        expect(take(sentText.complete(text))).toBe(text.startsWith(sent));
        if (text.startsWith(sent)) expect(sent).toBe(text);
      }),
      RUNS,
    );
  });
});

describe("AnswerReader", () => {
  test("PREFIX-1 all sent pieces of an answer equal its final text, or the stream ends in an error", () => {
    fc.assert(
      fc.property(turns, (plan) => {
        const { replies, isFailed } = plan;
        for (let part = 0; part < answerCount(viewOf(plan)); part++) {
          const events = eventsOf(plan, part);
          const last = events.at(-1);
          expect(events.filter(({ type }) => type === "end" || type === "failed")).toEqual([last]);
          if (last?.type === "failed") {
            expect(last.error.code === "REPLY_RESTARTED" || isFailed).toBe(true);
            continue;
          }
          const all = replies.map(({ text }) => text);
          for (const text of sentTexts(events)) expect(all).toContain(text);
        }
      }),
      RUNS,
    );
  });

  test("ANSWER-1 an answer is the same live and replayed, and as the finished turn has it", async () => {
    await answers((plan, part, events) => {
      const found = answerOf(viewOf(plan), addressOf(part));
      const replayed = eventsOf(plan, part, { isLive: false });
      const calls = (list: AnswerEvent[]) =>
        list.flatMap((event) => (event.type === "call" ? [event.call] : []));
      expect([sentTexts(replayed), calls(replayed)]).toEqual([sentTexts(events), calls(events)]);
      expect(found?.messages.map(({ content }) => content)).toEqual(sentTexts(events));
      expect(found?.calls).toEqual(calls(events));
      expect(found?.status).toBe("completed");
    });
  });

  test("ANSWER-3 the answer of a stopped turn is cancelled, with the shown text", () => {
    fc.assert(
      fc.property(turns, (plan) => {
        fc.pre(plan.isStopped);
        const view = viewOf(plan);
        const part = answerCount(view) - 1;
        for (const finalOnly of [false, true]) {
          const events = eventsOf(plan, part, { finalOnly, isLive: false });
          const found = answerOf(view, addressOf(part, finalOnly));
          expect(events.at(-1)).toEqual({ type: "failed", error: STOPPED });
          expect([found?.status, found?.error]).toEqual(["cancelled", STOPPED]);
          expect(found?.messages.map(({ content }) => content)).toEqual(sentTexts(events));
          expect(found?.messages.some(({ isStopped }) => isStopped)).toBe(!finalOnly);
        }
      }),
      RUNS,
    );
  });

  test("ANSWER-1 ANSWER-3 a turn that was stopped while tools of the agent ran beside the client's has no answer with calls", () => {
    const move = (n: number, toolCall: object, error?: object): MoveView =>
      ({
        id: opId(0, n),
        sequence: n + 1,
        ...(n === 0 ? { raw: { text: "", finishReason: "tool_calls" } } : {}),
        createdAt: TIME,
        toolCall: { operationId: opId(0, n), name: "look", toolId: null, input: {}, ...toolCall },
        toolResult: error === undefined ? { success: true } : { success: false, error },
      }) as MoveView;
    const cancelled = { code: "CANCELLED", message: "Stopped.", retriable: false };
    const stopped = viewOf({ replies: [], isFailed: true, isStopped: true });
    const during = { ...stopped, moves: [move(0, { client: true }, cancelled), move(1, {}, cancelled)] };
    expect(answerOf(during, addressOf(0))).toMatchObject({ status: "cancelled", calls: [] });
    const waiting = { ...stopped, moves: [move(0, { client: true }, cancelled), move(1, {})] };
    expect(answerOf(waiting, addressOf(0))).toMatchObject({ status: "completed", calls: [{ name: "look" }] });
    expect(answerOf(waiting, addressOf(1))).toMatchObject({ status: "cancelled", calls: [] });
  });

  test("ANSWER-2 of an answer that must be a single value, only the last message is sent, and it is never withdrawn", () => {
    fc.assert(
      fc.property(turns, (plan) => {
        const view = viewOf(plan);
        for (let part = 0; part < answerCount(view); part++) {
          const events = eventsOf(plan, part, { finalOnly: true });
          if (events.at(-1)?.type === "failed") expect(plan.isFailed).toBe(true);
          const found = answerOf(view, addressOf(part, true));
          expect(sentTexts(events)).toEqual(found?.messages.map(({ content }) => content));
          expect(found?.messages.length).toBeLessThanOrEqual(1);
        }
      }),
      RUNS,
    );
  });
});

describe("chat completions", () => {
  test("OAI-3, OAI-4 the chunks equal the completion, for the official client and for our own decoder", async () => {
    await answers(async (plan, part, events) => {
      const address = addressOf(part);
      const found = answerOf(viewOf(plan), address);
      if (found === null) throw new Error("The answer is there.");
      const encoder = new ChatChunkEncoder(address, "guide", true);
      const chunks = [
        ...encoder.start(),
        ...events.flatMap((event) => encoder.push(event)),
        ...encoder.end(found),
      ].filter((payload) => "choices" in payload);
      const whole = chatCompletion(address, "guide", found);
      const [choice] = whole.choices;
      expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual([
        choice?.finish_reason,
      ]);

      const decoder = adapterFor("openai").decoder();
      const reply = new ReplyAccumulator("openai");
      for (const chunk of chunks) for (const delta of decoder.push(JSON.stringify(chunk))) reply.add(delta);
      for (const delta of decoder.push("[DONE]")) reply.add(delta);
      const outcome = reply.outcome();
      if (!outcome.ok) throw new Error(outcome.error.message);
      expect(outcome.reply.text).toBe(choice?.message.content ?? "");
      expect(outcome.reply.toolCalls).toEqual(
        found.calls.map(({ operationId, name, input }) => ({
          id: toolCallId(CONVERSATION, operationId),
          name,
          arguments: JSON.parse(JSON.stringify(input)),
        })),
      );
      const read = await ChatCompletionStream.fromReadableStream(lines(chunks)).finalChatCompletion();
      expect(read.usage).toEqual(whole.usage);
      expect(read.choices[0]?.message.content ?? "").toBe(choice?.message.content ?? "");
      expect(read.choices[0]?.message.tool_calls ?? []).toMatchObject(choice?.message.tool_calls ?? []);
    });
  });
});

describe("calls in a history", () => {
  test("a number beyond the range of numbers is refused with its place, as it would be stored as null", () => {
    expect(callArguments('{"a": [1e308]}', "/x")).toEqual({ a: [1e308] });
    expect(() => callArguments('{"a": [1e400]}', "/x")).toThrow(
      expect.objectContaining({
        options: { errors: [{ path: "/x", message: expect.stringContaining("range of a double") }] },
      }),
    );
  });

  const chat = (text: string) => {
    const call = { id: "c", type: "function", function: { name: "f", arguments: text } };
    const messages = [
      { role: "assistant", tool_calls: [call] },
      { role: "user", content: "Hi." },
    ];
    return chatInput(completionSchema.parse({ model: "m", messages }));
  };
  const response = (text: string) => {
    const call = { type: "function_call", call_id: "c", name: "f", arguments: text };
    const input = [call, { role: "user", content: "Hi." }];
    return responseInput(responseSchema.parse({ model: "m", input }), false);
  };
  const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

  test.each([
    ["a value that is too deep", nested(65)],
    ["a value beyond the stack", nested(100_000)],
    ["half a character", '{"a":"\\ud800"}'],
    ["no object", "[]"],
    ["no JSON", "{"],
  ])("%s is refused at its field", (_, text) => {
    const refusal = (path: string) =>
      expect.objectContaining({
        code: "INVALID_INPUT",
        options: { errors: [{ path, message: expect.any(String) }] },
      });
    expect(() => chat(text)).toThrowError(refusal("/messages/0/tool_calls/0/function/arguments"));
    expect(() => response(text)).toThrowError(refusal("/input/0/arguments"));
    expect(chat(nested(64))).toMatchObject({ type: "message" });
  });

  test.each(["null", " null\n", ""])("REPLY-5 the text %j means a call without arguments", (text) => {
    const history = [{ role: "assistant", toolCalls: [{ id: "c", name: "f", arguments: {} }] }];
    expect(chat(text)).toMatchObject({ history });
    expect(response(text)).toMatchObject({ history });
  });

  test.each<[object, string]>([
    [{ type: "item_reference", id: "x" }, "/input/0: Must be a message with a known role, or have the type"],
    [{ role: "user", content: [{ type: "input_audio" }] }, "/input/0/content/0/type: Must be"],
    [{ type: "function_call", call_id: "c", name: "f" }, "/input/0/arguments: Is required"],
  ])("OAI-11 an item of another kind is refused with the kinds that are known: %j", (item, message) => {
    expect(() => validate(responseSchema, { input: [item] })).toThrow(message);
  });
});

test("OAI-14 functions stay in order, and all other tools are left out and named", () => {
  const kinds = fc.array(fc.constantFrom("function", "custom", "namespace", "web_search"), { maxLength: 8 });
  fc.assert(
    fc.property(kinds, (types) => {
      const tools = types.map((type, index) => ({ type, name: `t${index}` }));
      const request = { model: "guide", input: "Hello", tools };
      const functions = tools.filter(({ type }) => type === "function").map(({ name }) => name);
      if (tools.length > 0 && functions.length === 0) {
        expect(() => validate(responseSchema, request)).toThrow("/tools/0/type: Only functions");
        return;
      }
      const body = validate(responseSchema, request);
      expect((responseOptions(body).tools ?? []).map(({ name }) => name)).toEqual(functions);
      const others = tools.flatMap(({ type }, index) => (type === "function" ? [] : [`tools[${index}]`]));
      expect(ignoredFields(responseSchema, body)).toEqual(others);
    }),
    RUNS,
  );
});

describe("responses", () => {
  test("OAI-5, OAI-6 the events lead to the response, for the official client too", async () => {
    await answers(async (plan, part, events) => {
      const address = addressOf(part);
      const found = answerOf(viewOf(plan), address);
      if (found === null) throw new Error("The answer is there.");
      const encoder = new ResponseEventEncoder(address, "guide");
      const sent = [
        ...encoder.start(),
        ...events.flatMap((event) => encoder.push(event)),
        ...encoder.end(found),
      ];
      expect(sent.map((event) => event.sequence_number)).toEqual(sent.map((_, index) => index));
      const whole = responseObject(address, "guide", found);
      for (const event of sent) openResponseEvent.parse(event);
      openResponse.parse(whole);
      const done = sent.flatMap((event) => (event.type === "response.output_item.done" ? [event.item] : []));
      expect(done).toEqual(whole.output);
      const added = sent.flatMap((event) =>
        event.type === "response.output_item.added" ? [event.item.id] : [],
      );
      expect(added).toEqual(done.map(({ id }) => id));
      const read = await ResponseStream.fromReadableStream(lines(sent)).finalResponse();
      expect(read.output).toMatchObject(whole.output);
    });
  });

  test("OAI-1 ids resolve to their addresses, and a key to one conversation", async () => {
    const digits = fc.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/);
    fc.assert(
      fc.property(digits, digits, fc.nat(9999), fc.boolean(), (one, two, index, finalOnly) => {
        const address = { conversationId: `conv_${one}`, turnId: `turn_${two}`, index, finalOnly };
        expect(parseResponseId(responseId(address))).toEqual(address);
        const call = { conversationId: `conv_${one}`, operationId: `op_${two}` };
        const id = toolCallId(call.conversationId, call.operationId);
        expect([parseCallId(id), id.length <= 64]).toEqual([call, true]);
        expect([parseCallId(`${id}0`), parseCallId(id.toLowerCase()), parseResponseId(id)]).toEqual([
          null,
          null,
          null,
        ]);
      }),
      RUNS,
    );
    expect(startedAt(`turn_${ulid(1_700_000_000_123)}`)).toBe(1_700_000_000);
    const ids = await Promise.all(
      [
        ["a", "b", "c"],
        ["a", "b", "d"],
        ["ab", "", "c"],
        ["a", "bc", ""],
      ].map(([tenant = "", subject = "", key = ""]) => conversationOfKey("openai", tenant, subject, key)),
    );
    expect(new Set(ids).size).toBe(4);
    expect(ids[0]).toMatch(/^conv_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(await conversationOfKey("openai", "a", "b", "c")).toBe(ids[0]);
  });
});

describe("UI message streams", () => {
  const chunksOf = (plan: TurnPlan, isLive: boolean) => {
    const encoder = new UiMessageEncoder();
    return framesOf(plan, isLive).flatMap((frame) => encoder.push(frame));
  };

  async function read(plan: TurnPlan, isLive: boolean): Promise<UIMessage | undefined> {
    let last: UIMessage | undefined;
    // SAFETY: the test before holds each of these chunks against the SDK's schema.
    const chunks = chunksOf(plan, isLive).filter(({ type }) => type !== "error") as UIMessageChunk[];
    const stream = new ReadableStream<UIMessageChunk>({
      async start(controller) {
        for await (const chunk of iterate(chunks)) controller.enqueue(chunk);
        controller.close();
      },
    });
    for await (const message of readUIMessageStream({ stream, terminateOnError: true })) last = message;
    return last;
  }

  test("UISTREAM-1, UISTREAM-2 every chunk fits the SDK's schema, and the chunks are in order", async () => {
    await fc.assert(
      fc.asyncProperty(turns, async (plan) => {
        const schema = uiMessageChunkSchema();
        const chunks = chunksOf(plan, true);
        let depth = 0;
        let open: string | null = null;
        for (const chunk of chunks) {
          expect(await schema.validate?.(chunk)).toMatchObject({ success: true });
          if (chunk.type === "start-step") depth += 1;
          if (chunk.type === "finish-step") depth -= 1;
          if (chunk.type === "reset-step") open = null;
          if (chunk.type === "text-delta") expect(chunk.id).toBe(open);
          if (chunk.type === "text-start") {
            expect(open).toBeNull();
            open = chunk.id;
          }
          if (chunk.type === "text-end") open = null;
          expect(depth === 0 || depth === 1).toBe(true);
          if (chunk.type === "finish-step") expect(open).toBeNull();
        }
        expect(chunks[0]).toEqual({ type: "start", messageId: TURN });
        expect(chunks.at(-1)?.type).toBe(plan.isStopped ? "abort" : "finish");
        expect(chunks.filter(({ type }) => ["start", "finish", "abort"].includes(type))).toHaveLength(2);
      }),
      { numRuns: 60 },
    );
  });

  test("UISTREAM-6 requests for approval and their ends fit the SDK's schema, also for agents below", async () => {
    const encoder = new UiMessageEncoder();
    const frame = (type: string, operationId: string, data: object) =>
      encoder.push({ v: 1, type, time: "", turnId: TURN, operationId, data } as unknown as Frame);
    const ask = {
      operationId: "op_below",
      conversationId: "conv_b",
      agentId: "dev",
      name: "pay",
      expiresAt: "",
    };
    const of = { ...ask, input: { euros: 5 } };
    const large = { ...ask, operationId: "op_large" };
    const requested = { name: "x", input: {}, expiresAt: "" };
    const chunks = [
      ...frame("tool.requested", "op_own", { name: "transfer", input: { euros: 1 } }),
      ...frame("approval.requested", "op_own", requested),
      ...frame("approval.resolved", "op_own", { outcome: "approved" }),
      ...frame("tool.requested", "op_ask", { name: "ask_dev", input: { message: "Pay." } }),
      ...frame("approval.requested", "op_ask", { ...requested, of }),
      ...frame("approval.resolved", "op_ask", { outcome: "denied", of: ask }),
      // A person can only approve visible input.
      ...frame("approval.requested", "op_ask", { ...requested, of: large }),
      ...frame("approval.resolved", "op_ask", { outcome: "approved", of: large }),
    ];
    const schema = uiMessageChunkSchema();
    for (const chunk of chunks) expect(await schema.validate?.(chunk)).toMatchObject({ success: true });
    expect(chunks.slice(1)).toMatchObject([
      { type: "tool-input-available", toolCallId: "op_own", toolName: "transfer" },
      { type: "tool-approval-request", approvalId: "op_own", toolCallId: "op_own" },
      { type: "tool-output-available", toolCallId: "op_own", preliminary: true },
      { type: "tool-input-available", toolCallId: "op_ask", toolName: "ask_dev" },
      { type: "tool-input-available", toolCallId: "op_below", toolName: "pay", input: { euros: 5 } },
      { type: "tool-approval-request", approvalId: "op_below", toolCallId: "op_below" },
      { type: "tool-output-denied", toolCallId: "op_below" },
    ]);
  });

  test("UISTREAM-3 the final view is the turn, live and replayed", async () => {
    await fc.assert(
      fc.asyncProperty(turns, async (plan) => {
        fc.pre(!plan.isFailed);
        const [live, replayed] = [await read(plan, true), await read(plan, false)];
        expect(live?.parts).toEqual(replayed?.parts);
        const shown = live?.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
        expect(shown).toEqual(plan.replies.flatMap(({ text }) => (text === "" ? [] : [text])));
        const tools = live?.parts.flatMap((part) => (part.type === "dynamic-tool" ? [part.state] : []));
        expect(tools).toEqual(
          plan.replies.flatMap(({ calls }) =>
            calls.map(({ isFailed }) => (isFailed ? "output-error" : "output-available")),
          ),
        );
      }),
      { numRuns: 60 },
    );
  });
});

test.each([
  [429, false, true],
  [503, false, true],
  [503, true, false],
  [502, true, false],
  [500, false, false],
  [409, false, false],
  [404, false, null],
])("OAI-10 after %i, begun: %s, a client may retry: %s", (status, hasBegun, told) => {
  expect(mayRetry(status, hasBegun)).toBe(told);
});
