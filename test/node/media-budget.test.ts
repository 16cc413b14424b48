/** The memory for media in model calls: alone, and in real calls of a conversation on a virtual clock. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import { type ConversationMedia, conversationMedia } from "../../src/agents/conversation/effects/media.ts";
import { MediaBudget } from "../../src/agents/conversation/effects/media-budget.ts";
import { performModelCall } from "../../src/agents/conversation/effects/model-call.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { AttachmentStore } from "../../src/attachments/attachment-store.ts";
import { DeployedCode } from "../../src/library/deployed-code.ts";
import type { ModelGateway } from "../../src/model/gateway.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { MemoryObjectStore } from "../../src/ports/node/memory-object-store.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Content } from "../../src/shared/content.ts";
import { textPayloads } from "../support/chat-replies.ts";
import { localExecutor } from "../support/local-executor.ts";
import { noMail } from "../support/no-mail.ts";
import { messageOfAda, PLAIN_CHAIN, recordOf } from "../support/records.ts";

const MIB = 1024 * 1024;
const SECOND = 1_000;

describe("the budget", () => {
  test("G25 MEDIABUDGET-1 calls with media wait for each other, and fail as retriable when they wait too long", async () => {
    const clock = new VirtualClock();
    const budget = new MediaBudget(12 * MIB);
    const options = { clock, signal: new AbortController().signal };
    const held = () => budget.held(clock.now());
    const release = await budget.reserve(16 * MIB, options);
    const second = budget.reserve(8 * MIB, options);
    const third = budget.reserve(MIB, options);
    (await budget.reserve(0, options))();
    await clock.advance(5_000);
    expect(held()).toBe(16 * MIB);
    release();
    release();
    await clock.advance(200);
    const releaseSecond = await second;
    const releaseThird = await third;
    expect(held()).toBe(9 * MIB);
    releaseThird();
    (await budget.reserve(4 * MIB, options))();
    const order: string[] = [];
    const large = budget.reserve(12 * MIB, options).then(() => order.push("large"));
    const small = budget.reserve(MIB, options).then(() => order.push("small"));
    await clock.advance(1_000);
    expect(order, "a small call does not pass a large one").toEqual([]);
    releaseSecond();
    await clock.advance(1_000);
    await large;
    await clock.advance(11 * SECOND);
    await small;
    expect(order).toEqual(["large", "small"]);
  });

  test("G25 MEDIABUDGET-1 a call that waits too long fails as retriable, and one whose actor is gone loses its place", async () => {
    const clock = new VirtualClock();
    const budget = new MediaBudget(12 * MIB);
    const options = { clock, signal: new AbortController().signal };
    const gone = { clock: { now: clock.now.bind(clock), sleep: () => new Promise<void>(() => undefined) } };
    await budget.reserve(12 * MIB, options);
    void budget.reserve(MIB, { ...options, ...gone });
    const behind = budget.reserve(MIB, options);
    await clock.advance(11 * SECOND);
    await behind;
    const queue = Array.from({ length: 6 }, () => budget.reserve(12 * MIB, options));
    const late = expect(queue.at(-1)).rejects.toMatchObject({ code: "UNAVAILABLE", retriable: true });
    for (const reserved of queue) reserved.catch(() => undefined);
    await clock.advance(40 * SECOND);
    await late;
  });

  test("MEDIABUDGET-2 a reservation that nobody releases ends after ten seconds", async () => {
    const clock = new VirtualClock();
    const budget = new MediaBudget(12 * MIB);
    const options = { clock, signal: new AbortController().signal };
    await budget.reserve(12 * MIB, options);
    const second = budget.reserve(MIB, options);
    await clock.advance(9 * SECOND);
    expect(budget.held(clock.now())).toBe(12 * MIB);
    await clock.advance(1_100);
    await second;
    expect(budget.held(clock.now())).toBe(MIB);
  });
});

/** A request that the provider got, and its answer as far as it has one. */
class Asked {
  readonly answered: Promise<Response>;
  #answer: (response: Response) => void = () => undefined;

  constructor(
    readonly text: string,
    signal: AbortSignal,
  ) {
    this.answered = new Promise((resolve, reject) => {
      this.#answer = resolve;
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  }

  complete(): void {
    const body = textPayloads("Fine.").map((payload) => `data: ${payload}\n\n`);
    this.#answer(new Response(body.join(""), { headers: { "content-type": "text/event-stream" } }));
  }

  /** Begins an answer that never ends. */
  begin(): void {
    const headers = { "content-type": "text/event-stream" };
    this.#answer(new Response(new ReadableStream({ start: () => undefined }), { headers }));
  }

  fail(status: number): void {
    this.#answer(new Response("{}", { status }));
  }
}

/** A conversation with one image of 800 bytes for each turn, in an isolate with room for 1 000 bytes of media. */
class World {
  readonly clock = new VirtualClock();
  readonly budget = new MediaBudget(1_000);
  /** The requests, in order. */
  readonly asked: Asked[] = [];
  /** The look-ups and reads of attachments, in order. */
  readonly lookedUp: string[] = [];
  readonly gateway: ModelGateway;
  readonly media: ConversationMedia;
  readonly runtime: ConversationRuntime;
  readonly #attachments: AttachmentStore;
  readonly #ids = seededIds(3, this.clock);

  constructor() {
    const { clock } = this;
    const objects = new MemoryObjectStore();
    const name = (key: string) => key.slice(-1);
    this.#attachments = new AttachmentStore(objects);
    const watched = new AttachmentStore({
      put: (...args) => objects.put(...args),
      delete: (key) => objects.delete(key),
      head: (key) => {
        this.lookedUp.push(`head ${name(key)}`);
        return objects.head(key);
      },
      get: (key) => {
        this.lookedUp.push(`get ${name(key)}`);
        return objects.get(key);
      },
    });
    this.gateway = createModelGateway({
      secret: () => undefined,
      clock,
      fetch: (_url, { body, signal }) => {
        const { messages } = JSON.parse(String(body)) as { messages: { content: unknown }[] };
        const text = /turn \w/.exec(JSON.stringify(messages.at(-1)))?.[0] ?? "";
        const asked = new Asked(text, signal as AbortSignal);
        this.asked.push(asked);
        return asked.answered;
      },
    });
    const database = new NodeSqlDatabase();
    const { media } = conversationMedia(watched, () => ({ tenant: "test", id: "conv_test" }));
    if (media === undefined) throw new Error("A store has media.");
    this.media = media;
    this.runtime = new ConversationRuntime({
      database,
      keyValue: new NodeKeyValue(database),
      clock,
      ids: this.#ids,
      gateway: this.gateway,
      adapters: adapterFor,
      executor: localExecutor(new DeployedCode([]), clock),
      media,
      mediaBudget: this.budget,
      gate: allowAll,
      ...noMail,
      armWakeup: async () => undefined,
      publish: () => undefined,
    });
    const definition = { provider: "openai", modelId: "m", baseUrl: "http://provider/v1" } as const;
    const modelProfile = { ...PLAIN_CHAIN.modelProfile, definition };
    void this.runtime.create(recordOf({ ...PLAIN_CHAIN, modelProfile }, { createdAt: clock.now() }));
  }

  get held(): number {
    return this.budget.held(this.clock.now());
  }

  /** The texts that the provider was asked for, in order. */
  get texts(): string[] {
    return this.asked.map(({ text }) => text);
  }

  /** Stores an attachment, and returns content with it. */
  async image(text: string, mediaType = "image/png"): Promise<Content> {
    const id = `att_01ARZ3NDEKTSV4RRFFQ69G5FA${text.at(-1)?.toUpperCase()}`;
    const owner = { tenant: "test", conversationId: "conv_test" };
    await this.#attachments.put(owner, { id, mediaType, bytes: new Uint8Array(800) });
    const type = mediaType.startsWith("image/") ? "image" : "file";
    return [
      { type: "text", text },
      { type, url: `attachment:${id}` },
    ];
  }

  async say(content: Content): Promise<string> {
    return (await this.runtime.accept(messageOfAda(content))).turnId;
  }

  turn(id: string) {
    return new ConversationQueries(this.runtime.store).turn(this.runtime.state, id);
  }
}

describe("G25 MEDIABUDGET-1 two turns with attachments at the same time", () => {
  const errors = vi.spyOn(console, "error");
  beforeEach(() => void errors.mockImplementation(() => undefined));
  afterEach(() => void errors.mockReset());

  test("are asked one after another, each attachment looked up once a call; a turn without media does not wait", async () => {
    const world = new World();
    const first = await world.say(await world.image("turn A"));
    const second = await world.say(await world.image("turn B"));
    await world.say("turn C");
    await world.clock.advance(5 * SECOND);
    expect(world.texts.sort()).toEqual(["turn A", "turn C"]);
    expect(world.held).toBe(800);
    expect(world.lookedUp.filter((call) => call.endsWith("A"))).toEqual(["head A", "head A", "get A"]);
    world.asked.find(({ text }) => text === "turn A")?.complete();
    await world.clock.advance(SECOND);
    expect(world.turn(first).status).toBe("completed");
    expect(world.texts.at(-1)).toBe("turn B");
    expect(world.held).toBe(800);
    world.asked.at(-1)?.complete();
    await world.clock.advance(SECOND);
    expect(world.turn(second)).toMatchObject({ status: "completed", calls: [{ outcome: { attempts: 1 } }] });
    // Once when the message was checked, and once in its call.
    expect(world.lookedUp.filter((call) => call.endsWith("B"))).toEqual(["head B", "head B", "get B"]);
    expect(world.held).toBe(0);
  });

  test("do not wait for an answer that has begun", async () => {
    const world = new World();
    await world.say(await world.image("turn A"));
    await world.say(await world.image("turn B"));
    await world.clock.advance(SECOND);
    world.asked[0]?.begin();
    await world.clock.advance(SECOND);
    expect(world.texts).toEqual(["turn A", "turn B"]);
    expect(world.held).toBe(800);
  });

  test("a provider that is silent holds the second for ten seconds", async () => {
    const world = new World();
    await world.say(await world.image("turn A"));
    await world.say(await world.image("turn B"));
    await world.clock.advance(9 * SECOND);
    expect(world.texts).toEqual(["turn A"]);
    await world.clock.advance(2 * SECOND);
    expect(world.texts).toEqual(["turn A", "turn B"]);
  });

  test("one that waits too long behind others fails its attempt, and is tried again", async () => {
    const world = new World();
    for (const name of ["A", "B", "C", "D", "E"]) await world.say(await world.image(`turn ${name}`));
    const attempt = () => [...world.runtime.state.active.values()].at(-1)?.call?.attempt;
    await world.clock.advance(29 * SECOND);
    expect(attempt()).toBe(1);
    await world.clock.advance(2 * SECOND);
    expect(attempt()).toBe(2);
    await world.clock.advance(15 * SECOND);
    expect(world.texts).toEqual(["turn A", "turn B", "turn C", "turn D", "turn E"]);
  });
});

describe("G25 MEDIABUDGET-1 a call with media that fails holds nothing", () => {
  const errors = vi.spyOn(console, "error");
  beforeEach(() => void errors.mockImplementation(() => undefined));
  afterEach(() => void errors.mockReset());

  test.each<[string, (world: World) => Promise<Content>, (asked: Asked) => void, string]>([
    ["refused by the provider", (world) => world.image("turn A"), (asked) => asked.fail(400), "MODEL_FAILED"],
    ["broken at the provider", (world) => world.image("turn A"), (asked) => asked.fail(500), "MODEL_FAILED"],
    ["never answered", (world) => world.image("turn A"), () => undefined, "MODEL_FAILED"],
    [
      "with media that the provider does not take",
      (world) => world.image("turn A", "video/x"),
      () => undefined,
      "UNSUPPORTED",
    ],
  ])("%s", async (_, content, answer) => {
    const world = new World();
    const id = await world.say(await content(world));
    for (let step = 0; step < 200 && world.turn(id).status === "active"; step++) {
      await world.clock.advance(SECOND);
      world.asked.splice(0).forEach(answer);
    }
    expect(world.turn(id).status).toBe("failed");
    expect(world.held).toBe(0);
    expect(world.clock.pending).toBe(0);
  });

  /** Performs the model call of a turn of another conversation of the isolate, which can be aborted. */
  async function call(world: World, media = world.media) {
    const content = await world.image("turn A");
    const { runtime } = new World();
    const unit = runtime.begin();
    unit.stage([
      {
        type: "conversation.user.message",
        caller: { type: "user", userId: "ada" },
        data: { content },
      },
    ]);
    const [turn] = unit.state.active.values();
    if (turn?.call == null) throw new Error("A turn calls its model.");
    const controller = new AbortController();
    const outcome = performModelCall(
      { clock: world.clock, gateway: world.gateway, adapters: adapterFor, media, mediaBudget: world.budget },
      { record: runtime.state.record, turn, call: turn.call, history: () => [], onText: () => undefined },
      controller.signal,
    );
    return { outcome, abort: () => controller.abort(new DOMException("No.", "AbortError")) };
  }

  const CANCELED = { type: "conversation.llm.failed", error: { category: "canceled" } };

  test("aborted while it waits for room", async () => {
    const world = new World();
    const first = await call(world);
    const second = await call(world);
    const third = await call(world);
    await world.clock.advance(SECOND);
    const { pending } = world.clock;
    second.abort();
    expect(await second.outcome).toMatchObject(CANCELED);
    expect(world.clock.pending, "without its deadline and its wait").toBe(pending - 2);
    expect(world.held).toBe(800);
    world.asked[0]?.complete();
    await world.clock.advance(SECOND);
    expect(world.asked).toHaveLength(2);
    world.asked[1]?.complete();
    for (const { outcome } of [first, third])
      expect(await outcome).toMatchObject({ type: "conversation.llm.completed" });
    expect(world.held).toBe(0);
    expect(world.clock.pending).toBe(0);
  });

  test.each(["looked up", "read"])("aborted while its attachments are %s", async (moment) => {
    const world = new World();
    let answer = () => {};
    const late = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const aborted = await call(world, {
      head: (id) => (moment === "looked up" ? late : Promise.resolve()).then(() => world.media.head(id)),
      get: (id) => late.then(() => world.media.get(id)),
    });
    await world.clock.advance(SECOND);
    expect(world.held).toBe(moment === "read" ? 800 : 0);
    aborted.abort();
    expect(await aborted.outcome).toMatchObject(CANCELED);
    expect(world.held).toBe(0);
    answer();
    await world.clock.advance(SECOND);
    expect(world.held).toBe(0);
    expect(world.asked).toEqual([]);
  });
});
