/** The conversation engine: lifecycle, turns, history and planning, hooks, failures, streams, correlation. */
import { describe, expect, expectTypeOf, it, test, vi } from "vitest";
import type { ConversationStore } from "../../src/engine/conversation-store.ts";
import {
  type Conversation,
  type ConversationEngineConfig,
  type ConversationRecord,
  type ConversationTurn,
  createConversationEngine,
  createHistoryBuilder,
  InMemoryConversationStore,
  type MessageRole,
  type NewMessage,
  ProviderCallError,
  type ProviderStreamChunk,
  type RequestOutcome,
  type Role,
  type RunTurn,
  type TurnEvent,
} from "../../src/engine/index.ts";
import { newGate } from "../support/openai-server.ts";
import { ScriptedAdapter, StreamingAdapter, textMessage } from "../support/scripted-adapter.ts";

const NOW = Date.UTC(2026, 0, 1);

/** A clock that advances one second per read. */
const tickingClock = () => {
  let now = NOW;
  return { now: () => (now += 1_000) };
};

/** Creates an engine, over a scripted adapter by default. */
function setUp(config: Partial<ConversationEngineConfig> & { adapter?: ScriptedAdapter } = {}) {
  const { adapter = new ScriptedAdapter(), ...rest } = config;
  const store = new InMemoryConversationStore();
  const hookErrors: [hook: string, error: unknown][] = [];
  const engine = createConversationEngine({
    defaultAgent: "helper",
    store,
    providers: { scripted: adapter },
    defaultModels: { scripted: "model-1" },
    clock: tickingClock(),
    onCallbackError: (error, hook) => void hookErrors.push([hook, error]),
    ...rest,
  });
  /** Creates a conversation with a user message. */
  const started = async (content: unknown = "Hello") =>
    (await engine.createConversation({ initialMessages: [{ role: "user", content }] })).id;
  const run = async (options: Partial<RunTurn> = {}) =>
    engine.runTurn({ conversationId: options.conversationId ?? (await started()), ...options });
  /** Returns the latest turn of a conversation, and the error of running it. */
  const failing = async (options: Partial<RunTurn> = {}) => {
    const conversationId = options.conversationId ?? (await started());
    const error = await engine.runTurn({ conversationId, ...options }).then(
      () => expect.unreachable("The turn succeeded."),
      (thrown: unknown) => thrown,
    );
    const [turn] = await store.listTurns(conversationId, { limit: 1, order: "desc" });
    if (turn === undefined) throw new Error("No turn was stored.");
    return { error, turn, messages: await store.getMessages(conversationId) };
  };
  return { engine, store, adapter, hookErrors, started, run, failing };
}

const user = (content: unknown): NewMessage => ({ role: "user", content });
const contentsOf = (messages: readonly { content: unknown }[]) => messages.map(({ content }) => content);

async function eventsOf(events: AsyncIterable<TurnEvent>): Promise<TurnEvent[]> {
  const all: TurnEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const chunksOf = (events: readonly TurnEvent[]) =>
  events.flatMap((event): ProviderStreamChunk[] => (event.type === "chunk" ? [event.chunk] : []));
const turnOf = (events: readonly TurnEvent[]) =>
  events.flatMap((event) => (event.type === "turn" ? [event.turn] : []))[0];

describe("conversations", () => {
  it("C1 a conversation without messages is stored, and the hook is called once", async () => {
    const created: string[] = [];
    const { engine, store } = setUp({ hooks: { onConversationCreated: ({ id }) => void created.push(id) } });
    const conversation = await engine.createConversation();
    expect(conversation).toEqual({
      id: expect.stringMatching(/^conv_[0-9A-Z]{26}$/),
      agent: "helper",
      createdAt: "2026-01-01T00:00:01.000Z",
      updatedAt: "2026-01-01T00:00:01.000Z",
    });
    expect(await store.getConversation(conversation.id)).toEqual(conversation);
    expect(await engine.getConversation(conversation.id)).toEqual(conversation);
    expect(await store.getMessages(conversation.id)).toEqual([]);
    expect(created).toEqual([conversation.id]);
  });

  it("C1 initial messages get ids, times and the new conversation, whatever they say of theirs", async () => {
    const { engine, store } = setUp();
    const options = { agent: "writer", subjectId: "ann", title: "A title", metadata: { cohort: "b" } };
    const { id, ...facts } = await engine.createConversation({
      ...options,
      initialMessages: [
        { role: "system", content: "Be brief." },
        { ...user("Hi"), id: "own", conversationId: "elsewhere" },
      ],
    });
    expect(facts).toMatchObject(options);
    expect(await store.getMessages(id)).toEqual([
      {
        id: expect.stringMatching(/^msg_/),
        conversationId: id,
        role: "system",
        content: "Be brief.",
        createdAt: facts.createdAt,
      },
      { id: "own", conversationId: id, role: "user", content: "Hi", createdAt: facts.createdAt },
    ]);
  });

  it("C1 messages that cannot be stored make no conversation", async () => {
    const created: unknown[] = [];
    const { engine, store } = setUp({ hooks: { onConversationCreated: (one) => void created.push(one) } });
    const spied: string[] = [];
    store.createConversation = async ({ id }) => void spied.push(id);
    await expect(engine.createConversation({ initialMessages: [user(1n)] })).rejects.toMatchObject({
      code: "INVALID_INPUT",
    });
    expect([created, spied]).toEqual([[], []]);
  });

  it("C1 C11 a hook that throws after the conversation was stored has no effect", async () => {
    const { engine, hookErrors } = setUp({
      hooks: {
        onConversationCreated: async () => {
          throw new Error("on purpose");
        },
      },
    });
    const { id } = await engine.createConversation();
    expect(await engine.getConversation(id)).not.toBeNull();
    expect(hookErrors).toEqual([["onConversationCreated", new Error("on purpose")]]);
  });

  it("C2 an unknown conversation is null, and operations on it fail", async () => {
    const { engine, store, adapter } = setUp();
    expect(await engine.getConversation("conv_unknown")).toBeNull();
    const missing = { code: "NOT_FOUND", message: 'There is no conversation "conv_unknown".' };
    await expect(engine.runTurn({ conversationId: "conv_unknown" })).rejects.toMatchObject(missing);
    await expect(eventsOf(engine.streamTurn({ conversationId: "conv_unknown" }))).rejects.toMatchObject(
      missing,
    );
    await expect(engine.appendMessages("conv_unknown", [user("Hi")])).rejects.toMatchObject(missing);
    expect(await store.listTurns("conv_unknown")).toEqual([]);
    expect(await store.getConversation("conv_unknown")).toBeNull();
    expect(adapter.asked).toEqual([]);
  });

  it("C4 appended messages are after existing messages, even if the clock went back", async () => {
    let now = NOW;
    const { engine, store, started } = setUp({ clock: { now: () => now } });
    const id = await started("first");
    now -= 60_000;
    await engine.appendMessages(id, [user("second"), user("third")]);
    await engine.runTurn({ conversationId: id });
    expect(contentsOf(await store.getMessages(id))).toEqual(["first", "second", "third", "Answer 1."]);
  });
});

describe("turns", () => {
  it("C5 C14 a turn runs, then has succeeded: input, output, record, and the conversation's time", async () => {
    const { engine, store, adapter, started } = setUp();
    const id = await started();
    const before = await engine.getConversation(id);
    const gate = newGate();
    adapter.answer(
      gate.wait.then(() => ({
        ...textMessage("Hi."),
        usage: { inputTokens: 3, outputTokens: 1 },
        raw: { odd: 1n },
      })),
    );
    const running = engine.runTurn({
      conversationId: id,
      triggerType: "user_message",
      metadata: { route: "a" },
    });
    while (adapter.asked.length === 0) await new Promise(setImmediate);
    const [during] = await store.listTurns(id);
    expect(during).toMatchObject({
      status: "running",
      outputMessages: [],
      providerCalls: [{ provider: "scripted" }],
    });
    expect(during?.providerCalls[0]).not.toHaveProperty("finishedAt");
    gate.open();
    const turn = await running;
    expect(turn).toMatchObject({
      id: expect.stringMatching(/^turn_[0-9A-Z]{26}$/),
      conversationId: id,
      agent: "helper",
      status: "succeeded",
      triggerType: "user_message",
      metadata: { route: "a" },
      inputMessages: [{ content: "Hello" }],
      outputMessages: [{ role: "assistant", content: "Hi.", conversationId: id }],
    });
    const { startedAt, finishedAt } = turn;
    expect(Date.parse(finishedAt ?? "")).toBeGreaterThan(Date.parse(startedAt));
    expect(await store.getTurn(id, turn.id)).toEqual(turn);
    expect(await store.getMessages(id)).toEqual([...turn.inputMessages, ...turn.outputMessages]);
    const after = await engine.getConversation(id);
    expect(after?.createdAt).toBe(before?.createdAt);
    expect(Date.parse(after?.updatedAt ?? "")).toBeGreaterThan(Date.parse(before?.updatedAt ?? ""));
  });

  it("C5 a turn's input is all since the assistant last spoke, without the instructions", async () => {
    const { engine, adapter } = setUp();
    const { id } = await engine.createConversation({
      initialMessages: [{ role: "system", content: "Be brief." }, user("one"), user("two")],
    });
    const first = await engine.runTurn({ conversationId: id });
    expect(contentsOf(first.inputMessages)).toEqual(["one", "two"]);
    await engine.appendMessages(id, [{ role: "system", content: "Now in French." }, user("three")]);
    const second = await engine.runTurn({ conversationId: id, agent: "translator" });
    expect(contentsOf(second.inputMessages)).toEqual(["Now in French.", "three"]);
    expect(second.agent).toBe("translator");
    const third = await engine.runTurn({ conversationId: id });
    expect(third.inputMessages).toEqual([]);
    expect(contentsOf(adapter.asked[2]?.request.messages ?? [])).toHaveLength(7);
  });

  it("C5 ENGINE-5 a store that cannot write the end at once is written step by step", async () => {
    const store = new InMemoryConversationStore();
    const stepwise = new Proxy<ConversationStore>(store, {
      get(target, name) {
        const member: unknown = name === "completeTurn" ? undefined : Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    const { engine, started } = setUp({ store: stepwise });
    const conversationId = await started();
    const turn = await engine.runTurn({ conversationId });
    expect(await store.getTurn(conversationId, turn.id)).toEqual(turn);
    expect(turn).toMatchObject({ status: "succeeded", outputMessages: [{ content: "Answer 1." }] });
    const contents = async () => contentsOf(await store.getMessages(conversationId));
    expect(await contents()).toEqual(["Hello", "Answer 1."]);
    expect((await store.getConversation(conversationId))?.updatedAt).toBe(turn.finishedAt);
    store.updateConversation = () => Promise.reject(new Error("disk full"));
    await engine.runTurn({ conversationId }).catch(() => {});
    const [last] = await store.listTurns(conversationId, { limit: 1, order: "desc" });
    expect(last).toMatchObject({ status: "failed", outputMessages: [{ content: "Answer 2." }] });
    expect(await contents()).toEqual(["Hello", "Answer 1.", "Answer 2."]);
  });

  it("C5 concurrent messages and changes of the title are both kept", async () => {
    const { engine, store, adapter, started } = setUp();
    const id = await started();
    const record = await store.getConversation(id);
    if (record === null) throw new Error("no conversation");
    adapter.answer(async () => {
      await store.updateConversation({ ...record, title: "New" });
      return textMessage("Hi.");
    });
    await engine.runTurn({ conversationId: id });
    expect(await engine.getConversation(id)).toMatchObject({ title: "New" });
  });

  it("C6 ENGINE-3 an adapter that throws: failed, with message and provider, the hook, and the same error thrown", async () => {
    const seen: unknown[] = [];
    const failure = new Error("refused for sk-abcdefghij123456");
    const { failing, adapter } = setUp({
      hooks: { afterTurnError: (turn, error) => void seen.push([turn.status, turn.error, error]) },
    });
    adapter.answer(failure);
    const { error, turn, messages } = await failing();
    expect(error).toBe(failure);
    expect(turn).toMatchObject({
      status: "failed",
      finishedAt: expect.any(String),
      outputMessages: [],
      error: { message: "refused for [redacted]", provider: "scripted" },
      providerCalls: [{ outcome: { ok: false, errorCategory: "unknown", attempts: 1 } }],
    });
    expect(turn.providerCalls[0]?.finishedAt).toBeDefined();
    expect(seen).toEqual([["failed", turn.error, failure]]);
    expect(contentsOf(messages)).toEqual(["Hello"]);
  });

  it("C6 ENGINE-3 the failure of an adapter is stored without a secret, too", async () => {
    const { failing, adapter } = setUp();
    const message = "refused for sk-abcdefghij123456 \ud800";
    adapter.answer(
      new ProviderCallError({ category: "auth", message, retriable: false, provider: "openai" }),
    );
    const { turn } = await failing();
    const told = "refused for [redacted] \ufffd";
    expect(turn.error).toMatchObject({ message: told, raw: { category: "auth", message: told } });
  });

  it("C6 a conversation continues after a failed turn", async () => {
    const { engine, adapter, started, failing } = setUp();
    const conversationId = await started();
    adapter.answer(new Error("once"));
    await failing({ conversationId });
    const turn = await engine.runTurn({ conversationId });
    expect(turn).toMatchObject({ status: "succeeded", inputMessages: [{ content: "Hello" }] });
  });

  test.each<[string, Partial<ConversationEngineConfig>, object]>([
    [
      "planner",
      { planner: { planTurn: () => Promise.reject(new Error("no plan")) } },
      { message: "no plan" },
    ],
    [
      "history",
      { historyBuilder: { buildHistory: () => Promise.reject(new Error("no past")) } },
      { message: "no past" },
    ],
    [
      "beforeTurn",
      { hooks: { beforeTurn: () => Promise.reject(new Error("not allowed")) } },
      { message: "not allowed", provider: "scripted" },
    ],
    [
      "no model",
      { defaultModels: {} },
      { code: "INVALID_INPUT", message: expect.stringContaining("defaultModels") },
    ],
    ["no plan", { planner: { planTurn: () => JSON.parse('{"provider":7}') } }, { code: "INVALID_INPUT" }],
    [
      "no history",
      { historyBuilder: { buildHistory: () => JSON.parse('[{"role":"robot"}]') } },
      { code: "INVALID_INPUT" },
    ],
  ])(
    "C6 a failure before the call fails the turn too, and no call is recorded: %s",
    async (_, config, error) => {
      const { failing, adapter } = setUp(config);
      const { turn } = await failing();
      expect(turn).toMatchObject({ status: "failed", error, providerCalls: [] });
      expect(adapter.asked).toEqual([]);
    },
  );

  it("C6 ENGINE-5 output that cannot be stored fails the turn, and is not in the conversation", async () => {
    const { failing, adapter } = setUp();
    adapter.answer({
      messages: [
        { role: "assistant", content: "fine" },
        { role: "assistant", content: 1n },
      ],
    });
    const { turn, messages } = await failing();
    expect(turn).toMatchObject({
      status: "failed",
      outputMessages: [],
      error: { code: "INVALID_INPUT" },
      providerCalls: [{ outcome: { ok: true } }],
    });
    expect(contentsOf(messages)).toEqual(["Hello"]);
  });

  it("C6 ENGINE-4 a value of an adapter or a hook that cannot be stored fails the turn, and is not in it", async () => {
    const odd = { odd: 1n };
    const { failing, adapter } = setUp();
    adapter.answer({ ...textMessage("Hi."), call: { responseMetadata: odd } });
    const failed = { status: "failed", error: { code: "INVALID_INPUT" }, finishedAt: expect.any(String) };
    const { turn, messages } = await failing();
    expect(turn).toMatchObject({ ...failed, providerCalls: [{ outcome: { ok: false } }] });
    expect(messages).toHaveLength(1);
    const failure = { category: "auth", message: "no", retriable: false, provider: "openai" } as const;
    adapter.answer(new ProviderCallError(failure, { responseMetadata: odd }));
    expect((await failing()).turn).toMatchObject({
      error: { code: "MODEL_FAILED", message: "no" },
      providerCalls: [{ outcome: { errorCategory: "auth" } }],
    });
    adapter.answer(JSON.parse("{}"));
    expect((await failing()).turn).toMatchObject(failed);
    const hooked = setUp({ hooks: { beforeTurn: (given) => void Object.assign(given, { metadata: odd }) } });
    expect((await hooked.failing()).turn).toMatchObject({ ...failed, providerCalls: [] });
  });

  it("C6 a failure that cannot be stored is reported with the first failure", async () => {
    const { store, adapter, run } = setUp();
    const failure = new Error("first");
    adapter.answer(failure);
    const full = new Error("disk full");
    let writes = 0;
    const update = store.updateTurn.bind(store);
    store.updateTurn = (turn) => (++writes > 1 ? Promise.reject(full) : update(turn));
    await expect(run()).rejects.toMatchObject({ errors: [failure, full] });
  });
});

describe("history and planning", () => {
  it("C7 the adapter sees the builder's choice, and the record has its size", async () => {
    const { engine, adapter, started } = setUp({ historyBuilder: createHistoryBuilder({ maxMessages: 2 }) });
    const id = await started("one");
    await engine.appendMessages(id, [{ role: "assistant", content: "two" }, user("three")]);
    const turn = await engine.runTurn({ conversationId: id });
    expect(contentsOf(adapter.asked[0]?.request.messages ?? [])).toEqual(["two", "three"]);
    expect(turn.providerCalls[0]?.requestMetadata).toMatchObject({ messages: 2, truncated: true });
  });

  it("C7 HISTORY-3 instructions that lead the conversation stay", async () => {
    const { engine, adapter } = setUp({
      historyBuilder: createHistoryBuilder({ maxTurns: 1, maxMessages: 2 }),
    });
    const { id } = await engine.createConversation({
      initialMessages: [
        ...[{ role: "system" as const, content: "Be brief." }, user("old")],
        ...[{ role: "assistant" as const, content: "yes" }, user("new")],
      ],
    });
    await engine.runTurn({ conversationId: id });
    expect(contentsOf(adapter.asked[0]?.request.messages ?? [])).toEqual(["Be brief.", "new"]);
  });

  it.each([
    [1, ["Be brief.", "Be kind.", "three"]],
    [3, ["Be brief.", "Be kind.", "three"]],
    [4, ["Be brief.", "Be kind.", "two", "three"]],
  ])("C7 HISTORY-3 a limit of %i holds for instructions and the rest together", async (maxMessages, sent) => {
    const { engine, adapter } = setUp({ historyBuilder: createHistoryBuilder({ maxMessages }) });
    const instructions = ["Be brief.", "Be kind."].map((content) => ({ role: "system" as const, content }));
    const { id } = await engine.createConversation({
      initialMessages: [...instructions, user("one"), user("two"), user("three")],
    });
    await engine.runTurn({ conversationId: id });
    expect(contentsOf(adapter.asked[0]?.request.messages ?? [])).toEqual(sent);
  });

  it("C7 a custom builder gets conversation, messages, turn and agent", async () => {
    const seen: unknown[] = [];
    const { adapter, run } = setUp({
      historyBuilder: {
        async buildHistory({ conversation, messages, nextTurnId, agent }) {
          seen.push(conversation.agent, messages.length, nextTurnId, agent);
          return [{ role: "user", content: "something else" }];
        },
      },
    });
    const turn = await run({ agent: "other" });
    expect(seen).toEqual(["helper", 1, turn.id, "other"]);
    expect(adapter.asked[0]?.request.messages).toEqual([{ role: "user", content: "something else" }]);
  });

  it("C8 different hints choose different providers and models", async () => {
    const [one, two] = [new ScriptedAdapter("one"), new ScriptedAdapter("two")];
    const { run } = setUp({
      providers: { one, two },
      planner: {
        planTurn: async ({ hints, agent, conversation, messages }) => ({
          provider: hints?.hard === true ? "two" : "one",
          model: `${agent}-${conversation.agent}-${messages.length}`,
          parameters: { temperature: 0 },
        }),
      },
    });
    const easy = await run();
    const hard = await run({ hints: { hard: true } });
    expect([easy, hard].map(({ providerCalls: [call] }) => [call?.provider, call?.model])).toEqual([
      ["one", "helper-helper-1"],
      ["two", "helper-helper-1"],
    ]);
    expect(two.asked[0]?.request).toMatchObject({ model: "helper-helper-1", parameters: { temperature: 0 } });
  });

  it("C8 the default planner follows the hints `provider`, `model` and `parameters`", async () => {
    const [one, two] = [new ScriptedAdapter("one"), new ScriptedAdapter("two")];
    const { run } = setUp({ providers: { one, two }, defaultModels: { one: "a", two: "b" } });
    await run({ hints: { provider: "two", parameters: { top_p: 1 } } });
    await run({ hints: { model: "c" } });
    expect(two.asked[0]?.request).toMatchObject({ model: "b", parameters: { top_p: 1 } });
    expect(one.asked[0]?.request.model).toBe("c");
  });

  it("C9 without hints the configured default model answers", async () => {
    const { adapter, run } = setUp();
    const { providerCalls } = await run();
    expect(adapter.asked[0]?.request.model).toBe("model-1");
    expect(providerCalls).toMatchObject([{ provider: "scripted", model: "model-1" }]);
  });

  it("C10 an unknown provider: the turn has failed, and its error lists it and the configured providers", async () => {
    const { failing } = setUp();
    const { error, turn } = await failing({ hints: { provider: "elsewhere" } });
    expect(turn).toMatchObject({
      status: "failed",
      error: {
        code: "UNSUPPORTED",
        message: 'The provider "elsewhere" is not configured; configured: "scripted".',
        provider: "elsewhere",
      },
    });
    expect(error).toMatchObject({ code: "UNSUPPORTED" });
  });
});

describe("hooks", () => {
  /** Hooks that record their start and end. Each really waits. */
  const told = (log: string[]) => {
    const hook = (name: string) => async () => {
      log.push(`${name}…`);
      await new Promise(setImmediate);
      log.push(name);
    };
    return {
      onConversationCreated: hook("created"),
      beforeTurn: hook("before"),
      afterTurnSuccess: hook("success"),
      afterTurnError: hook("error"),
    };
  };

  it("C11 hooks run in order, and each is awaited", async () => {
    const log: string[] = [];
    const adapter = new ScriptedAdapter();
    const sendChat = adapter.sendChat.bind(adapter);
    adapter.sendChat = (request, options) => {
      log.push("call");
      return sendChat(request, options);
    };
    const { engine, failing } = setUp({ adapter, hooks: told(log) });
    const { id } = await engine.createConversation();
    await engine.runTurn({ conversationId: id });
    expect(log).toEqual(["created…", "created", "before…", "before", "call", "success…", "success"]);
    log.length = 0;
    adapter.answer(new Error("no"));
    await failing({ conversationId: id });
    expect(log).toEqual(["before…", "before", "call", "error…", "error"]);
  });

  it("C11 hooks see the present turn and its conversation; `beforeTurn` may only add metadata", async () => {
    const seen: unknown[] = [];
    const see = (turn: ConversationTurn) => void seen.push([turn.status, turn.outputMessages.length]);
    const { run } = setUp({
      hooks: {
        beforeTurn(turn, { conversation }) {
          see(turn);
          turn.metadata = { ...turn.metadata, by: conversation.agent };
          turn.agent = "changed";
        },
        afterTurnSuccess(turn) {
          see(turn);
          turn.status = "failed";
        },
      },
    });
    const turn = await run({ metadata: { route: "a" } });
    expect(turn).toMatchObject({
      status: "succeeded",
      agent: "helper",
      metadata: { route: "a", by: "helper" },
    });
    expect(seen).toEqual([
      ["running", 0],
      ["succeeded", 1],
    ]);
  });

  it("C11 ENGINE-4 an exception of an after-hook is reported, and changes no outcome", async () => {
    const throws = async () => {
      throw new Error("on purpose");
    };
    const hooks = { afterTurnSuccess: throws, afterTurnError: throws };
    const { run, failing, adapter, store, hookErrors } = setUp({ hooks });
    const turn = await run();
    expect(await store.getTurn(turn.conversationId, turn.id)).toMatchObject({ status: "succeeded" });
    adapter.answer(new Error("first"));
    const { error } = await failing();
    expect(error).toEqual(new Error("first"));
    expect(hookErrors.map(([hook]) => hook)).toEqual(["afterTurnSuccess", "afterTurnError"]);
  });

  it("C11 ENGINE-4 an exception of the handler for hook failures changes no outcome either", async () => {
    const throws = () => {
      throw new Error("on purpose");
    };
    const hooks = { onConversationCreated: throws, afterTurnSuccess: throws };
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const { run, store } = setUp({ hooks, onCallbackError: throws });
    const turn = await run();
    expect(await store.getTurn(turn.conversationId, turn.id)).toMatchObject({ status: "succeeded" });
    expect(log).toHaveBeenCalledTimes(2);
    log.mockRestore();
  });
});

describe("cancelling", () => {
  it("ENGINE-6 a signal that aborts in mid-call cancels the turn, though the provider does not listen", async () => {
    const { adapter, engine, store, started } = setUp();
    adapter.answer(new Promise(() => {}));
    const abort = new AbortController();
    const conversationId = await started();
    const running = engine.runTurn({ conversationId, signal: abort.signal });
    while (adapter.asked.length === 0) await new Promise(setImmediate);
    const reason = new Error("enough");
    abort.abort(reason);
    await expect(running).rejects.toBe(reason);
    const [turn] = await store.listTurns(conversationId);
    expect(turn).toMatchObject({
      status: "cancelled",
      error: { code: "CANCELLED", message: "enough" },
      providerCalls: [{ outcome: { ok: false, errorCategory: "canceled", attempts: 1 } }],
    });
    expect(adapter.asked[0]?.options.signal.aborted).toBe(true);
  });

  it("ENGINE-6 a signal that has aborted before: a cancelled turn, and no call", async () => {
    const { failing, adapter } = setUp();
    const { turn } = await failing({ signal: AbortSignal.abort() });
    expect(turn).toMatchObject({ status: "cancelled", providerCalls: [] });
    expect(adapter.asked).toEqual([]);
  });

  it("ENGINE-6 a reader who leaves cancels the turn, and the provider's stream ends", async () => {
    const adapter = new StreamingAdapter([{ delta: "a" }, { delta: "b" }]);
    const { engine, store, started } = setUp({ adapter });
    const conversationId = await started();
    for await (const _ of engine.streamTurn({ conversationId })) break;
    expect(await store.listTurns(conversationId)).toMatchObject([
      { status: "cancelled", outputMessages: [] },
    ]);
    expect(adapter.isOver).toBe(true);
    expect(contentsOf(await store.getMessages(conversationId))).toEqual(["Hello"]);
  });

  it("ENGINE-6 a signal that aborts a stalled stream", async () => {
    const adapter = new StreamingAdapter([{ delta: "a" }, new Promise(() => {})]);
    const { engine, store, started } = setUp({ adapter });
    const conversationId = await started();
    const abort = new AbortController();
    const events = engine.streamTurn({ conversationId, signal: abort.signal })[Symbol.asyncIterator]();
    await events.next();
    const next = events.next();
    abort.abort();
    await expect(next).rejects.toMatchObject({ name: "AbortError" });
    expect(await store.listTurns(conversationId)).toMatchObject([{ status: "cancelled" }]);
  });
});

describe("streams", () => {
  it("C12 an adapter without `streamChat` is called by `sendChat`, and its messages arrive as chunks", async () => {
    const { engine, adapter, started } = setUp();
    adapter.answer({ ...textMessage("Whole."), usage: { totalTokens: 4 } });
    const events = await eventsOf(engine.streamTurn({ conversationId: await started() }));
    expect(chunksOf(events)).toMatchObject([
      { delta: "Whole.", isMessageComplete: true, usage: { totalTokens: 4 } },
    ]);
    expect(turnOf(events)).toMatchObject({
      status: "succeeded",
      outputMessages: [{ content: "Whole." }],
      providerCalls: [{ usage: { totalTokens: 4 }, requestMetadata: { "ai.streaming": false } }],
    });
  });

  it("C12 an adapter that claims to stream, and cannot, runs its turn without streaming", async () => {
    class Loud extends ScriptedAdapter {
      override readonly supportsStreaming = true;
    }
    const { engine, started } = setUp({ adapter: new Loud() });
    const events = await eventsOf(engine.streamTurn({ conversationId: await started() }));
    expect(turnOf(events)?.outputMessages).toMatchObject([{ content: "Answer 1." }]);
  });

  it("C12 an adapter that claims not to stream runs its turn without streaming", async () => {
    class Quiet extends StreamingAdapter {
      override readonly supportsStreaming = false;
    }
    const adapter = new Quiet([{ delta: "never" }]);
    const { engine, started } = setUp({ adapter });
    const events = await eventsOf(engine.streamTurn({ conversationId: await started() }));
    expect(turnOf(events)?.outputMessages).toMatchObject([{ content: "Answer 1." }]);
  });

  it("C13 deltas, the flag of completion and the final usage arrive, and make the turn", async () => {
    const chunks: ProviderStreamChunk[] = [
      { delta: "Hel" },
      { delta: "lo", raw: { n: 1 } },
      { isMessageComplete: true },
      { usage: { inputTokens: 1, outputTokens: 2 } },
    ];
    const { engine, store, started } = setUp({ adapter: new StreamingAdapter(chunks) });
    const conversationId = await started();
    const events = await eventsOf(engine.streamTurn({ conversationId }));
    expect(chunksOf(events)).toEqual(chunks);
    const turn = turnOf(events);
    expect(events.at(-1)).toEqual({ type: "turn", turn });
    expect(turn).toMatchObject({
      status: "succeeded",
      outputMessages: [{ role: "assistant", content: "Hello" }],
      providerCalls: [
        { usage: { inputTokens: 1, outputTokens: 2 }, requestMetadata: { "ai.streaming": true } },
      ],
    });
    expect(await store.listTurns(conversationId)).toEqual([turn]);
  });

  it("C13 chunks arrive while the reply is not complete", async () => {
    const gate = newGate();
    const adapter = new StreamingAdapter([{ delta: "first" }, gate.wait, { delta: " second" }]);
    const { engine, started } = setUp({ adapter });
    const events = engine.streamTurn({ conversationId: await started() })[Symbol.asyncIterator]();
    expect(await events.next()).toEqual({ done: false, value: { type: "chunk", chunk: { delta: "first" } } });
    gate.open();
    await events.next();
    const { value } = await events.next();
    expect(value).toMatchObject({ type: "turn", turn: { outputMessages: [{ content: "first second" }] } });
  });

  it("C13 ENGINE-7 several messages, whole messages, and parts among the deltas", async () => {
    const call = { type: "tool-call", id: "c", name: "add", arguments: { a: 1 } };
    const adapter = new StreamingAdapter([
      { delta: "Let me " },
      { delta: { type: "text", text: "see." } },
      { delta: { type: "reasoning", text: "not a part" } },
      { delta: call },
      { isMessageComplete: true },
      { delta: "ignored, since the whole comes" },
      { isMessageComplete: true, message: { role: "assistant", content: "whole", providerMessageId: "p" } },
      { delta: "unfinished" },
    ]);
    const { engine, started } = setUp({ adapter });
    const turn = turnOf(await eventsOf(engine.streamTurn({ conversationId: await started() })));
    expect(turn?.outputMessages).toMatchObject([
      { content: [{ type: "text", text: "Let me see." }, call] },
      { content: "whole", providerMessageId: "p" },
      { content: "unfinished" },
    ]);
  });

  it("C13 text before a reset is not in the message", async () => {
    const adapter = new StreamingAdapter([{ delta: "void" }, { isReset: true }, { delta: "kept" }]);
    const { engine, started } = setUp({ adapter });
    const turn = turnOf(await eventsOf(engine.streamTurn({ conversationId: await started() })));
    expect(turn?.outputMessages).toMatchObject([{ content: "kept" }]);
  });

  it("C13 a stream that breaks fails the turn, and its text is in no conversation", async () => {
    const adapter = new StreamingAdapter([{ delta: "half" }, new Error("broken")]);
    const { engine, store, started } = setUp({ adapter });
    const conversationId = await started();
    await expect(eventsOf(engine.streamTurn({ conversationId }))).rejects.toThrow("broken");
    expect(await store.listTurns(conversationId)).toMatchObject([
      { status: "failed", outputMessages: [], providerCalls: [{ outcome: { ok: false } }] },
    ]);
    expect(await store.getMessages(conversationId)).toHaveLength(1);
  });
});

describe("records and correlation", () => {
  it("C14 ENGINE-4 a record has its id, times, usage, outcome and correlation", async () => {
    const { adapter, run } = setUp();
    const outcome: RequestOutcome = {
      ...({
        ok: true,
        status: 200,
        errorCategory: "none",
        attempts: 2,
        startedAt: 1,
        finishedAt: 2,
      } as const),
      rateLimitFeedback: { remainingRequests: 9, isRateLimited: false, rawHeaders: {} },
    };
    const call = { outcome, requestId: "req_1", cost: 0.25, responseMetadata: { finishReason: "stop" } };
    adapter.answer({ ...textMessage("Hi."), usage: { inputTokens: 1 }, call });
    const turn = await run();
    const [record] = turn.providerCalls;
    expect(record).toEqual({
      id: expect.stringMatching(/^call_[0-9A-Z]{26}$/),
      conversationId: turn.conversationId,
      turnId: turn.id,
      ...{ provider: "scripted", model: "model-1", operation: "chat" },
      correlationId: `${turn.conversationId}:${turn.id}`,
      requestMetadata: expect.objectContaining({ messages: 1, truncated: false }),
      ...call,
      usage: { inputTokens: 1 },
      startedAt: expect.any(String),
      finishedAt: expect.any(String),
    });
  });

  it("C14 an adapter without an outcome gets an outcome with its times, from before its call to after it", async () => {
    const clock = tickingClock();
    const { adapter, run } = setUp({ clock });
    let during = 0;
    adapter.answer(async () => {
      during = clock.now();
      return textMessage("Hi.");
    });
    const [record] = (await run()).providerCalls;
    expect(Date.parse(record?.startedAt ?? "")).toBeLessThan(during);
    expect(Date.parse(record?.finishedAt ?? "")).toBeGreaterThan(during);
    expect(record?.outcome).toEqual({
      ...{ ok: true, errorCategory: "none", attempts: 1 },
      startedAt: Date.parse(record?.startedAt ?? ""),
      finishedAt: Date.parse(record?.finishedAt ?? ""),
    });
  });

  it("C15 the adapter can build a context of agent, run id, four labels and metadata", async () => {
    const { adapter, run } = setUp();
    const turn = await run({ agent: "writer", metadata: { cohort: "b" } });
    const { conversationId, id: turnId } = turn;
    expect(adapter.asked[0]?.options.buildAgentContext()).toEqual({
      agent: "writer",
      runId: `${conversationId}:${turnId}`,
      labels: { conversationId, turnId, provider: "scripted", model: "model-1" },
      metadata: { cohort: "b" },
    });
  });

  it("C16 the parent is the run of the previous turn, even if it failed, or the caller's", async () => {
    const { engine, adapter, started, failing } = setUp();
    const conversationId = await started();
    const first = await engine.runTurn({ conversationId });
    adapter.answer(new Error("no"));
    const { turn: second } = await failing({ conversationId });
    const third = await engine.runTurn({ conversationId });
    const fourth = await engine.runTurn({ conversationId, parentCorrelationId: "conv_x:turn_y" });
    const parents = [first, second, third, fourth].map(
      ({ providerCalls: [call] }) => call?.parentCorrelationId,
    );
    const runOf = ({ id }: ConversationTurn) => `${conversationId}:${id}`;
    expect(parents).toEqual([undefined, runOf(first), runOf(second), "conv_x:turn_y"]);
    expect(adapter.asked.map(({ options }) => options.parentCorrelationId)).toEqual(parents);
    expect(adapter.asked[0]?.options.correlationId).toBe(runOf(first));
  });

  it("has the type names of agent-conversation-core", () => {
    expectTypeOf<Conversation>().toEqualTypeOf<ConversationRecord>();
    expectTypeOf<Role>().toEqualTypeOf<MessageRole>();
  });

  it("C17 the adapter and the record have the extensions", async () => {
    const { adapter, run } = setUp();
    const { providerCalls } = await run({ requestClass: "batch" });
    const extensions = {
      "ai.provider": "scripted",
      "ai.model": "model-1",
      "ai.request_type": "chat",
      "ai.streaming": false,
      "request.class": "batch",
    };
    expect(adapter.asked[0]?.options.extensions).toEqual(extensions);
    expect(providerCalls[0]?.requestMetadata).toMatchObject(extensions);
  });
});
