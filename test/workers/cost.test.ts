/**
 * The budget table of the design as counting tests (H5): statements and rows of a conversation's own work, counted at
 * its ports on real Durable Object storage. The SDK's own statements and the wake-up job are not in these numbers.
 */

import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import { Mailbox } from "../../src/agents/base/mailbox/mailbox.ts";
import { NEW_STATE } from "../../src/agents/conversation/core/state.ts";
import { turnEvents } from "../../src/agents/conversation/core/turn-events.ts";
import { seedEvents } from "../../src/agents/conversation/inbound/seed-history.ts";
import { Subscribers } from "../../src/agents/conversation/inbound/subscribers.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { step } from "../../src/library/tasks/step.ts";
import type { SessionEvent } from "../../src/memory/session/session-event.ts";
import type { ToolSpec } from "../../src/model/context.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import { allowAll } from "../../src/policy/gate.ts";
import type { TitlePolicy } from "../../src/policy/titles.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import { DurableKeyValue, DurableSqlDatabase } from "../../src/ports/workers/durable-storage.ts";
import { CONVERSATION_OPENED } from "../../src/protocol/agent-api.ts";
import type { VersionChain } from "../../src/protocol/definitions.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { turnId } from "../../src/protocol/ids.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { callPayloads, repliesSoFar, scriptedFetch, textPayloads } from "../support/chat-replies.ts";
import { CostCounter } from "../support/counting.ts";
import { countingStorage } from "../support/counting-storage.ts";
import { recordOf } from "../support/records.ts";
import { hasSideCall } from "../support/running-work.ts";

const tool = (name: string, effect: "pure" | "once") =>
  defineTool({
    name,
    description: "Doubles a number.",
    input: z.object({ n: z.number() }),
    effect,
    execute: ({ n }) => ({ doubled: n * 2 }),
  });
/** A tool over a task of so many steps. Each step doubles the number. */
const steps = (name: string, count: number) =>
  defineTool({
    name,
    description: "Doubles a number again and again.",
    target: {
      task: defineTask({
        id: `${name}_task`,
        input: z.object({ n: z.number() }),
        steps: Array.from({ length: count }, (_, index) =>
          step(`step_${index}`, {
            action: { kind: "update_context", values: { n: "input.n * 2" } },
            outputMapping: { "output.n": "result.n" },
          }),
        ),
      }),
    },
  });
const code = new DeployedCode([
  defineLibrary("cost", {
    tools: [tool("double", "pure"), tool("charge", "once"), steps("short", 1), steps("long", 32)],
  }),
]);

/** `call NAME N` makes N rounds of that tool; anything else is answered with 200 characters. */
const provider = scriptedFetch((body) => {
  const text = body.messages.findLast(({ role }) => role === "user")?.content ?? "";
  const [, name, rounds] = /^call (\w+) (\d)$/.exec(text) ?? [];
  if (name !== undefined && repliesSoFar(body) < Number(rounds)) return callPayloads("", [[name, { n: 1 }]]);
  return textPayloads("a".repeat(200));
});

type Cost = CostCounter["cost"];

/** A conversation over real storage, its ports counted. */
class CountedConversation {
  readonly counter = new CostCounter();
  runtime: ConversationRuntime;
  announce = noMail.listing.announce;
  titles: TitlePolicy = () => "none";
  /** Actors may subscribe. */
  takesSubscribers = true;
  #ended = () => {};

  constructor(
    readonly storage: DurableObjectStorage,
    private readonly chain: VersionChain,
  ) {
    this.runtime = this.#open();
  }

  /** A runtime that has yet to read its state, as after a wake. */
  reopen(): void {
    this.runtime = this.#open();
  }

  /** Creates the conversation, with a history if there is one. Returns the cost. */
  create(history?: readonly SessionEvent[]): Cost {
    return this.#costOf(() => {
      expect(this.runtime.exists).toBe(false);
      void this.runtime.create(
        recordOf(undefined, {
          id: "conv_cost",
          agents: [{ id: "assistant", chain: this.chain }],
          createdAt: systemClock.now(),
        }),
        history === undefined ? {} : { history },
      );
    });
  }

  /** Sends the envelope to the agent; it stays in transit. */
  tellAgent(): [Promise<void>] {
    const counted = countingStorage(this.storage, this.counter);
    const mailbox = new Mailbox({
      database: new DurableSqlDatabase(counted),
      keyValue: new DurableKeyValue(counted),
      clock: systemClock,
      checkStorage: () => undefined,
      whenArmed: () => Promise.resolve(),
      self: () => ({ kind: "conversation", tenant: "test", id: "conv_cost" }),
      deliver: () => new Promise(() => undefined),
      arm: () => Promise.resolve(),
      directory: () => null,
    });
    const sent = mailbox.send({
      operationId: `op_${systemIds.ulid()}`,
      to: { kind: "agent", tenant: "test", id: "assistant" },
      type: CONVERSATION_OPENED,
      body: {},
    });
    return [sent];
  }

  async turn(content: string, tools?: ToolSpec[]): Promise<Cost> {
    const end = new Promise<void>((resolve) => {
      this.#ended = resolve;
    });
    this.counter.reset();
    await this.runtime.accept({
      type: "conversation.user.message",
      id: crypto.randomUUID(),
      caller: { type: "user", userId: "ada" },
      data: { content, ...(tools === undefined ? {} : { tools }) },
    });
    await end;
    const { cost } = this.counter;
    expect(this.runtime.store.turn(this.runtime.state.turns)?.status).toBe("completed");
    return cost;
  }

  #costOf(work: () => void): Cost {
    this.counter.reset();
    work();
    return this.counter.cost;
  }

  #open(): ConversationRuntime {
    const counted = countingStorage(this.storage, this.counter);
    const stores = { database: new DurableSqlDatabase(counted), keyValue: new DurableKeyValue(counted) };
    const given = { ...noMail, ...stores, clock: systemClock, queries: { replay: () => expect.fail() } };
    const runtime = () => this.runtime;
    const subscribers = new Subscribers({
      ...given,
      get runtime() {
        return runtime();
      },
    });
    return new ConversationRuntime({
      ...stores,
      ...(this.takesSubscribers ? { subscribers } : {}),
      clock: systemClock,
      ids: systemIds,
      gateway: createModelGateway({ secret: () => undefined, fetch: provider, clock: systemClock }),
      adapters: adapterFor,
      executor: localExecutor(code, systemClock),
      gate: allowAll,
      ...noMail,
      listing: { announce: (record) => this.announce(record), note: async () => undefined },
      titles: (conversation) => this.titles(conversation),
      armWakeup: async () => undefined,
      publish: (frames: Frame[]) => {
        if (frames.some(({ type }) => type === "turn.completed" || type === "turn.failed")) this.#ended();
      },
    });
  }
}

/** A fresh conversation inside a Durable Object. */
async function inFreshConversation<Value>(
  body: (conversation: CountedConversation) => Promise<Value>,
  memory: { contextTokens?: number } = {},
): Promise<Value> {
  const profile = { provider: "openai", modelId: "scripted", baseUrl: "http://provider/v1" } as const;
  const toolIds = ["cost/double", "cost/charge", "cost/short", "cost/long"];
  const persona = { identity: { systemPrompt: "Test." }, memory, tools: { toolIds } };
  const chain = await resolveChain(new Registry(code), persona, profile);
  return runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), (_instance, { storage }) =>
    body(new CountedConversation(storage, chain)),
  );
}

/** Puts finished turns into the history through the conversation's own store, in bulk. */
function seedHistory({ runtime, storage }: CountedConversation, messages: number): void {
  const count = messages / 2;
  const content = "x".repeat(200);
  storage.transactionSync(() => {
    for (let n = 1; n <= count; n++) {
      const at = n * 1000;
      const reply = { item: 1, text: content, finishReason: "stop" as const, at };
      const turn = {
        n,
        stem: systemIds.ulid().slice(0, 19),
        agentId: "assistant",
        caller: { type: "user" as const, userId: "ada" },
        input: content,
        status: "completed" as const,
        createdAt: at,
        completedAt: at,
        firstSeq: n * 6 - 4,
        snapshotSeq: n * 6 - 5,
        events: { from: (n - 1) * 2, count: 2 },
        items: 2,
        call: null,
        replies: [reply],
        operations: [],
        recoveries: 0,
        issues: {},
      };
      runtime.store.turns.put(turn);
      runtime.store.events.append("assistant", turn.events.from, turnEvents(turn));
      const entries = [
        { type: "turn.started", turn: n },
        { type: "message.user", turn: n, item: 0 },
        { type: "message.started", turn: n, item: 1 },
        { type: "message.completed", turn: n, item: 1 },
        { type: "turn.completed", turn: n },
        { type: "turn.finalized", turn: n },
      ] as const;
      runtime.store.journal.append(
        { seq: turn.firstSeq, at, entries: [...entries] },
        { ...NEW_STATE, turns: n, sessions: { assistant: n * 2 }, active: [] },
      );
    }
  });
}

describe("H5 constant cost", () => {
  test("H5 first use: 7 statements and 8 rows beyond the SDK's own", async () => {
    const cost = await inFreshConversation(async (conversation) => conversation.create());
    expect(cost.statements).toBe(7);
    expect(cost.rowsWritten).toBe(8);
  });

  test("H5 first use with the envelope to the agent: 4 statements and 1 row more", async () => {
    const cost = await inFreshConversation(async (conversation) => {
      conversation.announce = () => conversation.tellAgent();
      return conversation.create();
    });
    expect(cost.statements).toBe(11);
    expect(cost.rowsWritten).toBe(9);
  });

  test("H5 TITLE-4 an automatic title adds one statement and one row to the first turn, and nothing to later turns", async () => {
    const costs = (source: ReturnType<TitlePolicy>) =>
      inFreshConversation(async (conversation) => {
        conversation.titles = () => source;
        conversation.create();
        return [await conversation.turn("hello"), await conversation.turn("hello")];
      });
    const [[first, later], [titled, afterwards]] = [await costs("none"), await costs("message")];
    expect(titled?.statements).toBe((first?.statements ?? 0) + 1);
    expect(titled?.rowsWritten).toBe((first?.rowsWritten ?? 0) + 1);
    expect(afterwards).toEqual(later);
  });

  test("H5 SEED-1 a seeded history costs a row an event, and one statement for all of them", async () => {
    const messages = Array.from({ length: 100 }, (): ContextMessage => ({ role: "user", content: "Hi." }));
    const origin = { sessionId: "assistant", userId: "ada", now: systemClock.now(), ids: systemIds };
    const { plain, seeded } = await inFreshConversation(async (first) => {
      const cost = first.create();
      const other = (conversation: CountedConversation) =>
        Promise.resolve(conversation.create(seedEvents(messages, origin)));
      return { plain: cost, seeded: await inFreshConversation(other) };
    });
    expect(seeded.rowsWritten).toBe(plain.rowsWritten + messages.length);
    expect(seeded.statements).toBe(plain.statements + 1);
  });

  test("H5 CLIENTTOOL-1 the tools of a message cost no statement until they are called", async () => {
    const tools = [{ name: "ask", description: "Asks.", inputSchema: { type: "object" } }];
    const cost = await inFreshConversation(async (conversation) => {
      conversation.create();
      await conversation.turn("warm up");
      return conversation.turn("hello", tools);
    });
    expect(cost).toEqual({ statements: 7, rowsWritten: 7, rowsRead: 6 });
  });

  test("H5 a chat completion: a conversation in no list with four messages of history, and its turn", async () => {
    const cost = await inFreshConversation(async (conversation) => {
      const said = ["user", "assistant", "user", "assistant"] as const;
      const options = { sessionId: "assistant", userId: "ada", now: systemClock.now(), ids: systemIds };
      const history = seedEvents(
        said.map((role) => ({ role, content: "x".repeat(200) })),
        options,
      );
      return { created: conversation.create(history), turn: await conversation.turn("hello") };
    });
    expect([cost.created.rowsWritten, cost.turn.rowsWritten]).toEqual([12, 7]);
    expect(cost.created.statements + cost.turn.statements).toBe(16);
  });

  test("COMMIT-2 H5 a plain turn in an open conversation: at most 8 statements and 8 rows", async () => {
    const cost = await inFreshConversation(async (conversation) => {
      conversation.create();
      await conversation.turn("warm up");
      return conversation.turn("hello");
    });
    expect(cost).toEqual({ statements: 7, rowsWritten: 7, rowsRead: 6 });
  });

  test("H5 SELFCOMPACT-2 a turn pays for no compaction that it does not start; the first compaction costs 4 rows", async () => {
    const cost = await inFreshConversation(
      async (conversation) => {
        conversation.create();
        const turns = [await conversation.turn("x ".repeat(400))];
        while (!hasSideCall(conversation.runtime)) turns.push(await conversation.turn("x ".repeat(400)));
        await expect.poll(() => hasSideCall(conversation.runtime)).toBe(false);
        const { statements, rowsWritten } = conversation.counter.cost;
        return { before: turns.at(-2), whole: { statements, rowsWritten } };
      },
      { contextTokens: 2_000 },
    );
    expect(cost.before).toMatchObject({ statements: 7, rowsWritten: 7 });
    // The turn, and the compaction: its journal row, its event with the entry in the index, and the index itself.
    expect(cost.whole.rowsWritten).toBe(7 + 4);
    expect(cost.whole.statements).toBe(7 + 7);
  });

  test("E23 H5 SUBSCRIBER-6 a turn without subscribers costs no statement and no row for them, also after a wake", async () => {
    const [without, able] = await inFreshConversation(async (conversation) => {
      conversation.create();
      await conversation.turn("Hello");
      const turn = async (takesSubscribers: boolean) => {
        conversation.takesSubscribers = takesSubscribers;
        conversation.reopen();
        return [await conversation.turn("Hello"), await conversation.turn("Hello")];
      };
      return [await turn(false), await turn(true)];
    });
    expect(able.map(({ statements, rowsWritten }) => [statements, rowsWritten])).toEqual(
      without.map(({ statements, rowsWritten }) => [statements, rowsWritten]),
    );
  });

  test("H5 a turn with three rounds of a pure tool: 13 statements and at most 24 rows", async () => {
    const cost = await inFreshConversation((conversation) => {
      conversation.create();
      return conversation.turn("call double 3");
    });
    expect(cost.statements).toBe(13);
    expect(cost.rowsWritten).toBeLessThanOrEqual(24);
  });

  test("H5 a turn with three rounds of a once tool commits before and after each: 19 statements, 25 rows", async () => {
    const cost = await inFreshConversation((conversation) => {
      conversation.create();
      return conversation.turn("call charge 3");
    });
    expect(cost.statements).toBe(19);
    expect(cost.rowsWritten).toBe(25);
  });

  test("H5 a task costs the statements and rows of a tool of code, whatever its steps, and at most 256 bytes a step", async () => {
    const costOf = (name: string) =>
      inFreshConversation(async (conversation) => {
        conversation.create();
        const { statements, rowsWritten } = await conversation.turn(`call ${name} 1`);
        const before = conversation.storage.sql.databaseSize;
        // So many that the rounding to pages of 4 KiB does not decide.
        const turns = 40;
        for (let n = 0; n < turns; n++) await conversation.turn(`call ${name} 1`);
        const bytes = (conversation.storage.sql.databaseSize - before) / turns;
        return { cost: [statements, rowsWritten], bytes };
      });
    const [double, short, long] = [await costOf("double"), await costOf("short"), await costOf("long")];
    expect(short.cost).toEqual(double.cost);
    expect(long.cost).toEqual(double.cost);
    expect((long.bytes - short.bytes) / 31).toBeLessThanOrEqual(256);
  });

  test("H5 a turn costs the same at 10 and at 10 000 messages, and a wake reads only active turns", async () => {
    const at = (messages: number) =>
      inFreshConversation(async (conversation) => {
        conversation.create();
        seedHistory(conversation, messages);
        conversation.reopen();
        conversation.counter.reset();
        expect(conversation.runtime.state.turns).toBe(messages / 2);
        const wake = conversation.counter.cost;
        const first = await conversation.turn("hello");
        const plain = await conversation.turn("hello");
        return { wake, first, plain, rounds: await conversation.turn("call double 3") };
      });
    const [few, some, many] = [await at(10), await at(100), await at(10_000)];
    for (const { wake, first, plain, rounds } of [few, some, many]) {
      expect(wake).toEqual({ statements: 2, rowsWritten: 0, rowsRead: 1 });
      expect({ ...first, rowsRead: 0 }).toEqual({ statements: 8, rowsWritten: 7, rowsRead: 0 });
      expect(plain).toEqual(few.plain);
      expect(rounds).toEqual(few.rounds);
    }
    // Only the first turn after a wake reads the window: 20 turns, full from 40 messages on.
    expect(many.first.rowsRead).toBe(some.first.rowsRead);
  });

  test("H5 JOURNALTURN-2 the journal of a turn reads the same rows at 10 and at 10 000 messages", async () => {
    const rowsAt = (messages: number) =>
      inFreshConversation(async (conversation) => {
        conversation.create();
        seedHistory(conversation, messages);
        conversation.reopen();
        await conversation.turn("call charge 3");
        const { counter, runtime } = conversation;
        const queries = new ConversationQueries(runtime.store);
        const read = (n: number) => {
          const turn = turnId(runtime.store.turns.facts(n) ?? expect.fail());
          counter.reset();
          const { items, nextCursor } = queries.journal(runtime.state, { turn });
          expect(nextCursor).toBeUndefined();
          return { types: items.map(({ type }) => type), rows: counter.cost.rowsRead };
        };
        return { early: read(3), last: read(messages / 2 + 1) };
      });
    const [few, many] = [await rowsAt(10), await rowsAt(10_000)];
    expect(many).toEqual(few);
    expect(many.early.types).toContain("turn.finalized");
    expect(many.last.types.filter((type) => type === "tool.completed")).toHaveLength(3);
    expect(many.early.rows).toBeLessThanOrEqual(12);
    expect(many.last.rows).toBeLessThanOrEqual(20);
  });

  test("H5 a turn of two 200-character messages stores at most 1 500 bytes", async () => {
    const bytes = await inFreshConversation(async (conversation) => {
      conversation.create();
      // So many that the rounding to pages of 4 KiB does not decide.
      const turns = 1_200;
      await conversation.turn("y".repeat(200));
      const before = conversation.storage.sql.databaseSize;
      for (let n = 0; n < turns; n++) await conversation.turn("y".repeat(200));
      return (conversation.storage.sql.databaseSize - before) / turns;
    });
    expect(bytes).toBeLessThanOrEqual(1_500);
  });
});
