/**
 * Each outside part is silent forever, in turn, on the real core and a virtual clock. Every turn ends by its deadline,
 * with an error that names the silent part, and harms no other turn.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import { Mailbox } from "../../src/agents/base/mailbox/mailbox.ts";
import { ATTEMPT_TIMEOUT_MS } from "../../src/agents/base/mailbox/mailbox-limits.ts";
import type { RuntimeContext } from "../../src/agents/conversation/context.ts";
import {
  MAX_RESUME_PAUSE_MS,
  MODEL_ATTEMPTS,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import { resumePause } from "../../src/agents/conversation/core/isolation.ts";
import { conversationMedia } from "../../src/agents/conversation/effects/media.ts";
import { AGENT_TIMEOUT_MS, agentPart } from "../../src/agents/conversation/inbound/create-conversation.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { AttachmentStore } from "../../src/attachments/attachment-store.ts";
import { OBJECT_TIMEOUT_MS, objectsInTime } from "../../src/attachments/objects-in-time.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { MemoryObjectStore } from "../../src/ports/node/memory-object-store.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { ObjectStore } from "../../src/ports/object-store.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";
import type { BatchCaller, TaskExecutor, ToolInvocation } from "../../src/protocol/executor-api.ts";
import type { Content } from "../../src/shared/content.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { MortalClock } from "../simulation/clocks.ts";
import { callPayloads, textPayloads } from "../support/chat-replies.ts";
import { messageOfAda, recordOf } from "../support/records.ts";

const errors = vi.spyOn(console, "error");
beforeEach(() => void errors.mockImplementation(() => undefined));
afterEach(() => void errors.mockReset());

const never = () => new Promise<never>(() => undefined);
const SECOND = 1_000;
const TOOL_TIMEOUT_MS = 20 * SECOND;
/** The executor counts as silent this long after a tool's own time limit. */
const MARGIN_MS = 30 * SECOND;
const GIVEN_UP = (TOOL_TIMEOUT_MS + MARGIN_MS) / SECOND;

const tool = (name: string, effect: ToolEffect) =>
  defineTool({
    name,
    description: "Answers.",
    input: z.object({}),
    effect,
    timeoutMs: TOOL_TIMEOUT_MS,
    execute: async () => "done",
  });
const LIBRARY = defineLibrary("lib", {
  tools: [tool("pure", "pure"), tool("idempotent", "idempotent"), tool("once", "once")],
});

/** The silent model: each kind of message gets a kind of silence, and any other message an answer. */
function fetchOf(
  body: { messages: { role: string; content: string }[] },
  signal: AbortSignal,
): Promise<Response> {
  const last = body.messages.findLast(({ role }) => role === "user")?.content ?? "";
  const isAnswered = body.messages.at(-1)?.role === "tool";
  const headers = { headers: { "content-type": "text/event-stream" } };
  const stream = (payloads: string[], isOpen: boolean) =>
    new Response(
      new ReadableStream({
        start(controller) {
          for (const payload of payloads)
            controller.enqueue(new TextEncoder().encode(`data: ${payload}\n\n`));
          if (!isOpen) controller.close();
        },
      }),
      headers,
    );
  asked.push(last);
  if (last === "connect") {
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }
  if (last === "headers") return Promise.resolve(stream([], true));
  if (last === "token") return Promise.resolve(stream(textPayloads("One token ").slice(0, 1), true));
  const tools = last.match(/^call (.*)$/)?.[1]?.split(" ") ?? [];
  return Promise.resolve(
    tools.length > 0 && !isAnswered
      ? stream(
          callPayloads(
            "",
            tools.map((name) => [name, {}]),
          ),
          false,
        )
      : stream(textPayloads("Fine."), false),
  );
}

/** The messages that the model received, in order. */
const asked: string[] = [];

/** A conversation that can be woken in another life. */
class World {
  readonly clock = new VirtualClock();
  readonly #database = new NodeSqlDatabase();
  readonly #keyValue = new NodeKeyValue(this.#database);
  readonly #ids = seededIds(7, this.clock);
  readonly code = new DeployedCode([LIBRARY]);
  #life = new MortalClock(this.clock);
  runtime: ConversationRuntime;

  private constructor(private readonly ports: Partial<RuntimeContext>) {
    this.runtime = this.#begin();
  }

  static async open(ports: (world: World) => Partial<RuntimeContext> = () => ({})): Promise<World> {
    const given: Partial<RuntimeContext> = {};
    const world = new World(given);
    Object.assign(given, ports(world));
    world.runtime = world.#begin();
    const persona = {
      identity: { systemPrompt: "Test." },
      tools: { toolIds: ["lib/pure", "lib/idempotent", "lib/once"] },
    };
    const profile = { provider: "openai", modelId: "m", baseUrl: "http://provider/v1" } as const;
    const chain = await resolveChain(new Registry(world.code), persona, profile);
    await world.runtime.create(recordOf(chain, { createdAt: world.clock.now() }));
    return world;
  }

  #begin(): ConversationRuntime {
    this.#life.die();
    this.#life = new MortalClock(this.clock);
    return new ConversationRuntime({
      database: this.#database,
      keyValue: this.#keyValue,
      clock: this.#life,
      ids: this.#ids,
      gateway: createModelGateway({
        secret: () => undefined,
        clock: this.#life,
        fetch: async (_url, init) =>
          fetchOf(JSON.parse(await new Response(init.body).text()), init.signal as AbortSignal),
      }),
      adapters: adapterFor,
      executor: localExecutor(this.code, this.#life),
      gate: allowAll,
      ...noMail,
      armWakeup: async () => undefined,
      publish: () => undefined,
      ...this.ports,
    });
  }

  /** The actor dies and wakes. */
  async die(): Promise<void> {
    this.runtime = this.#begin();
    await this.runtime.wake();
  }

  async say(content: Content): Promise<string> {
    return (await this.runtime.accept(messageOfAda(content))).turnId;
  }

  /** Runs until the turn has ended. Returns it, with the seconds that it took. */
  async end(id: string): Promise<TurnView & { seconds: number }> {
    const queries = new ConversationQueries(this.runtime.store);
    for (let events = 0; ; events++) {
      const turn = queries.turn(this.runtime.state, id);
      if (turn.status !== "active") return { ...turn, seconds: (turn.latencyMs ?? 0) / SECOND };
      if (events > 500) throw new Error("The turn never ends.");
      await this.clock.advance(SECOND);
      this.runtime.reconcile();
    }
  }

  /** Returns how a message of a healthy neighbour ends, and how many seconds it takes. */
  async neighbour(): Promise<unknown> {
    const { status, seconds } = await this.end(await this.say("Are you there?"));
    return { status, seconds };
  }
}

const WELL = { status: "completed", seconds: 0 };

describe("A43 A71 a model that is silent for ever", () => {
  test.each([
    ["takes the connection and never answers", "connect"],
    ["answers with headers only", "headers"],
    ["stops after one token", "token"],
  ])("and %s: three attempts of a minute, then a typed error", async (_, message) => {
    const world = await World.open();
    const silent = await world.say(message);
    expect(await world.neighbour()).toEqual(WELL);
    const turn = await world.end(silent);
    expect(turn).toMatchObject({ status: "failed", error: { code: "MODEL_FAILED", retriable: true } });
    expect(turn.error?.message).toContain("timeout");
    expect(turn.calls).toMatchObject([{ outcome: { attempts: MODEL_ATTEMPTS, errorCategory: "timeout" } }]);
    expect(turn.seconds).toBe(MODEL_ATTEMPTS * 60 + 0.5 + 1);
    expect(await world.neighbour()).toEqual(WELL);
  });

  test("ISOLATE-2 and kills its actor again and again: the turn beside it begins with its first outcome", async () => {
    const world = await World.open();
    const turns = [await world.say("token"), await world.say("headers")];
    for (let crash = 0; crash < 4; crash++) {
      await world.clock.advance(MAX_RESUME_PAUSE_MS);
      await world.die();
    }
    asked.length = 0;
    // Only the outcome of its neighbour starts the second turn: no heartbeat comes before it.
    await world.clock.advance(60 * SECOND);
    expect(asked).toEqual(["token"]);
    await world.clock.advance(resumePause(4));
    expect(asked).toEqual(["token", "headers"]);
    for (const id of turns) expect((await world.end(id)).error?.code).toBe("MODEL_FAILED");
  });

  test("and never answers a life that woke after a crash either", async () => {
    const world = await World.open();
    const silent = await world.say("token");
    await world.clock.advance(10 * SECOND);
    await world.die();
    expect(await world.neighbour()).toEqual(WELL);
    const turn = await world.end(silent);
    expect(turn).toMatchObject({ status: "failed", error: { code: "MODEL_FAILED" } });
    expect(turn.seconds).toBe(10 + MODEL_ATTEMPTS * 60 + 0.5 + 1);
  });
});

/** An executor that is silent about some calls. `real` runs the others. */
type Silence = (real: TaskExecutor) => TaskExecutor["run"];
/** Each silence with the seconds until its turn is given up. */
const SILENCES: [how: string, seconds: number, silence: Silence][] = [
  ["never answers", GIVEN_UP, () => never],
  [
    "runs everything, and waits in vain for its reports to be taken",
    10,
    (real) => (calls, caller) => real.run(calls, { ...caller, report: never }),
  ],
  [
    "answers for all calls but the last, and never ends",
    GIVEN_UP,
    (real) => async (calls, caller) => {
      await real.run(calls.slice(0, -1), caller);
      await never();
    },
  ],
  [
    "reports progress, and then nothing",
    GIVEN_UP,
    () => async (calls: ToolInvocation[], caller: BatchCaller) => {
      const operationId = calls.at(-1)?.operationId ?? "";
      await caller.report([{ operationId, progress: "soon" }]);
      await never();
    },
  ],
];

describe("BATCH-6 A71 an executor that is silent for ever", () => {
  const open = (silence: Silence) =>
    World.open(({ code, clock }) => {
      const real = localExecutor(code, clock);
      const silent = silence(real);
      return {
        executor: {
          run: (calls, caller) =>
            calls.some(({ tool }) => tool.id === "idempotent")
              ? silent(calls, caller)
              : real.run(calls, caller),
        },
      };
    });

  test.each(SILENCES)("and %s: the turn continues without a result", async (_, seconds, silence) => {
    const world = await open(silence);
    const silent = await world.say("call pure idempotent");
    const other = await world.say("call once");
    const well = await world.end(other);
    expect(well).toMatchObject({ status: "completed" });
    expect(well).not.toHaveProperty("issues");
    const turn = await world.end(silent);
    expect(turn).toMatchObject({ status: "completed", seconds });
    expect(turn.moves.at(-2)).toMatchObject({
      toolResult: { success: false, error: { code: "INTERNAL_ERROR", retriable: true } },
    });
    expect(await world.neighbour()).toEqual(WELL);
    expect(world.clock.pending).toBe(0);
  });

  test.each(SILENCES)("and %s, also to a life that woke after a crash", async (_, seconds, silence) => {
    const world = await open(silence);
    const silent = await world.say("call pure idempotent");
    await world.clock.advance(5 * SECOND);
    await world.die();
    const turn = await world.end(silent);
    expect(turn).toMatchObject({ status: "completed", seconds: 5 + seconds });
    expect(await world.neighbour()).toEqual(WELL);
  });
});

describe("MAIL-5 another actor that is silent for ever", () => {
  test("and takes no envelope: other turns continue, and each attempt ends by its deadline", async () => {
    let attempts = 0;
    const database = new NodeSqlDatabase();
    const world = await World.open(({ clock }) => {
      const mailbox = new Mailbox({
        database,
        keyValue: new NodeKeyValue(database),
        clock,
        checkStorage: () => undefined,
        whenArmed: () => Promise.resolve(),
        self: () => ({ kind: "conversation", tenant: "test", id: "conv_test" }),
        deliver: () => {
          attempts += 1;
          return never();
        },
        arm: () => Promise.resolve(),
        directory: () => null,
      });
      const body = { operationId: `op_${seededIds(1, clock).ulid()}`, type: "work", body: {} };
      return {
        listing: {
          announce: () => [mailbox.send({ ...body, to: { kind: "agent", tenant: "test", id: "silent" } })],
          note: async () => undefined,
        },
      };
    });
    await world.clock.advance(0);
    expect(attempts).toBe(1);
    expect(await world.neighbour()).toEqual(WELL);
    await world.clock.advance(ATTEMPT_TIMEOUT_MS);
    expect(world.clock.pending, "no timer waits for the attempt any more").toBe(0);
    expect(await world.neighbour()).toEqual(WELL);
  });

  test("during the creation of a conversation: the request fails in time", async () => {
    const clock = new VirtualClock();
    for (const agent of [never, async () => ({ persona: never })]) {
      const refused = agentPart(clock, agent).catch((error: unknown) => error);
      await clock.advance(AGENT_TIMEOUT_MS);
      expect(await refused).toMatchObject({ code: "UNAVAILABLE", retriable: true });
      expect(clock.pending).toBe(0);
    }
  });
});

describe("OBJTIME-1 MEDIA-3 attachments that are silent for ever", () => {
  const id = "att_01ARZ3NDEKTSV4RRFFQ69G5FAV";
  const content: Content = [
    { type: "image", url: `attachment:${id}` },
    { type: "text", text: "What is this?" },
  ];

  /** A conversation with an attachment. Its store answers only the first `answers` questions. */
  async function open(answers: number) {
    let asked = 0;
    const objects = new MemoryObjectStore();
    const silenced: ObjectStore = {
      put: never,
      delete: never,
      list: never,
      head: (key) => (++asked > answers ? never() : objects.head(key)),
      get: (key, range) => (++asked > answers ? never() : objects.get(key, range)),
    };
    const owner = { tenant: "test", conversationId: "conv_test" };
    const bytes = new Uint8Array([1]);
    await new AttachmentStore(objects).put(owner, { id, mediaType: "image/png", bytes });
    return World.open(({ clock }) =>
      conversationMedia(new AttachmentStore(objectsInTime(silenced, clock)), () => ({
        tenant: "test",
        conversationId: "conv_test",
      })),
    );
  }

  test.each<[string, (objects: ObjectStore) => Promise<unknown>]>([
    ["write", (objects) => objects.put("key", new Uint8Array([1]), { contentType: "image/png" })],
    ["look-up", (objects) => objects.head("key")],
    ["read", (objects) => objects.get("key")],
    ["deletion", (objects) => objects.delete("key")],
  ])("end each %s in time", async (_, ask) => {
    const clock = new VirtualClock();
    const silent: ObjectStore = { put: never, head: never, get: never, delete: never, list: never };
    const answer = ask(objectsInTime(silent, clock)).catch((error: unknown) => error);
    await clock.advance(OBJECT_TIMEOUT_MS);
    expect(await answer).toMatchObject({ code: "UNAVAILABLE", retriable: true });
  });

  test("refuse a message in time: its turn does not begin", async () => {
    const world = await open(0);
    const refused = world.say(content).catch((error: unknown) => error);
    expect(await world.neighbour()).toEqual(WELL);
    await world.clock.advance(OBJECT_TIMEOUT_MS);
    expect(await refused).toMatchObject({ code: "UNAVAILABLE", retriable: true });
    expect(world.runtime.state.turns).toBe(1);
  });

  test.each([
    ["looked up", 1],
    ["read", 2],
  ])(
    "fail the attempts of a turn with an attachment that cannot be %s, and no other turn",
    async (_, answers) => {
      const world = await open(answers);
      const silent = await world.say(content);
      expect(await world.neighbour()).toEqual(WELL);
      const turn = await world.end(silent);
      expect(turn).toMatchObject({ status: "failed", error: { code: "MODEL_FAILED", retriable: true } });
      expect(turn.seconds).toBe((MODEL_ATTEMPTS * OBJECT_TIMEOUT_MS) / SECOND + 0.5 + 1);
    },
  );
});
