/** The memory for media in model calls: alone, and in real calls of a conversation on a virtual clock. */

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import { MediaBudget } from "../../src/adapters/resilience/media-budget.ts";
import type { ConversationMedia } from "../../src/agents/conversation/context.ts";
import { conversationMedia, MediaReads } from "../../src/agents/conversation/effects/media.ts";
import { performModelCall } from "../../src/agents/conversation/effects/model-call.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { AttachmentStore } from "../../src/attachments/attachment-store.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import type { ModelGateway } from "../../src/model/gateway.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { MemoryObjectStore } from "../../src/ports/node/memory-object-store.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Content } from "../../src/shared/content.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { textPayloads } from "../support/chat-replies.ts";
import { messageOfAda, PLAIN_CHAIN, recordOf } from "../support/records.ts";

const MIB = 1024 * 1024;
const SECOND = 1_000;

describe("the budget", () => {
  const { signal } = new AbortController();
  const limits = { leaseMs: 600 * SECOND, signal };

  test("G25 MEDIABUDGET-1 calls with media wait for each other, except small calls, and an oversized call runs alone", async () => {
    const clock = new VirtualClock();
    const budget = new MediaBudget(clock);
    const reserve = (tenant: string, bytes: number) => budget.reserve({ ...limits, tenant, bytes });
    const release = await reserve("a", 16 * MIB);
    const order: string[] = [];
    const large = reserve("b", 8 * MIB).then((done) => [order.push("large"), done] as const);
    const medium = reserve("c", 4 * MIB).then((done) => [order.push("medium"), done] as const);
    for (let call = 0; call < 400; call++) await reserve("a", 16 * 1024);
    await clock.advance(100 * SECOND);
    expect([order, budget.held]).toEqual([[], 16 * MIB]);
    release();
    release();
    await clock.advance(SECOND);
    expect([order, budget.held]).toEqual([["large", "medium"], 12 * MIB]);
    for (const [, done] of await Promise.all([large, medium])) done();
    expect(budget.held).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test("G25 MEDIABUDGET-2 calls to a silent provider, however many wait, leave the other half to other tenants", async () => {
    const clock = new VirtualClock();
    const budget = new MediaBudget(clock);
    const abort = new AbortController();
    const waiting = Array.from({ length: 256 }, () =>
      budget.reserve({ tenant: "a", bytes: MIB, leaseMs: 600 * SECOND, signal: abort.signal }),
    );
    for (const reserved of waiting) reserved.catch(() => undefined);
    await clock.advance(SECOND);
    expect(budget.held).toBe(6 * MIB);
    await budget.reserve({ ...limits, tenant: "b", bytes: 1_000 });
    await budget.reserve({ ...limits, tenant: "b", bytes: 6 * MIB });
    expect(budget.held).toBe(12 * MIB);
    abort.abort();
  });

  test("G25 MEDIABUDGET-1 LIMITER-4 of one tenant at most 256 calls wait, and others are not refused for it", async () => {
    const clock = new VirtualClock();
    const budget = new MediaBudget(clock);
    const abort = new AbortController();
    const reserve = (tenant: string) =>
      budget.reserve({ tenant, bytes: 6 * MIB, leaseMs: 600 * SECOND, signal: abort.signal });
    await reserve("a");
    const waiting = Array.from({ length: 256 }, () => reserve("a"));
    for (const reserved of waiting) reserved.catch(() => undefined);
    await clock.advance(SECOND);
    for (let call = 0; call < 10; call++)
      await expect(reserve("a")).rejects.toMatchObject({ code: "UNAVAILABLE", retriable: true });
    const release = await reserve("b");
    const behind = reserve("b");
    release();
    await clock.advance(SECOND);
    (await behind)();
    abort.abort();
    await expect(waiting[0]).rejects.toThrow();
    expect(clock.pending).toBe(0);
  });

  test("G25 LIMITER-3 a reservation of a lost actor ends with its lease, and a place soon after", async () => {
    const clock = new VirtualClock();
    let isGone = false;
    const sleep: typeof clock.sleep = (...wait) =>
      isGone ? new Promise<void>(() => undefined) : clock.sleep(...wait);
    const budget = new MediaBudget({ now: () => clock.now(), sleep });
    const claim = { ...limits, tenant: "a", bytes: 12 * MIB, leaseMs: 20 * SECOND };
    await budget.reserve(claim);
    isGone = true;
    void budget.reserve(claim);
    isGone = false;
    const behind = budget.reserve(claim);
    await clock.advance(19 * SECOND);
    const before = clock.now();
    await clock.advance(2 * SECOND);
    await behind;
    expect(clock.now() - before).toBe(2 * SECOND);
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

/** Bytes of the image of a turn, and of all media that calls may hold. */
const IMAGE = 320 * 1024;
const ROOM = 400 * 1024;

/** A conversation with one image for each turn, in an isolate with room for one image. */
class World {
  readonly clock = new VirtualClock();
  readonly budget = new MediaBudget(this.clock, ROOM);
  /** Lets the provider read the body of a request. */
  readable: Promise<void> = Promise.resolve();
  /** The requests, in order. */
  readonly asked: Asked[] = [];
  /** The look-ups and reads of attachments, in order. */
  readonly lookedUp: string[] = [];
  readonly gateway: ModelGateway;
  readonly media: ConversationMedia;
  readonly runtime: ConversationRuntime;
  readonly #attachments: AttachmentStore;
  readonly #ids = seededIds(3, this.clock);

  /** Media are within the body, unless they are `streamed`. */
  constructor({ streamed = false } = {}) {
    const { clock } = this;
    const objects = new MemoryObjectStore();
    const name = (key: string) => key.slice(-1);
    this.#attachments = new AttachmentStore(objects);
    const watched = new AttachmentStore({
      put: (...args) => objects.put(...args),
      delete: (key) => objects.delete(key),
      list: (...args) => objects.list(...args),
      head: (key) => {
        this.lookedUp.push(`head ${name(key)}`);
        return objects.head(key);
      },
      get: (key, range) => {
        this.lookedUp.push(`get ${name(key)}`);
        return objects.get(key, range);
      },
    });
    const gateway = createModelGateway({
      secret: () => undefined,
      clock,
      fetch: async (_url, { body, signal }) => {
        await this.readable;
        const { messages } = JSON.parse(await new Response(body).text()) as {
          messages: { content: unknown }[];
        };
        const text = /turn \w/.exec(JSON.stringify(messages.at(-1)))?.[0] ?? "";
        const asked = new Asked(text, signal as AbortSignal);
        this.asked.push(asked);
        return asked.answered;
      },
    });
    this.gateway = streamed ? gateway : { stream: gateway.stream };
    const database = new NodeSqlDatabase();
    const { media } = conversationMedia(watched, () => ({ tenant: "test", conversationId: "conv_test" }));
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
    const fallbacks = [{ ...modelProfile, definition: { ...definition, modelId: "other" } }];
    const chain = { ...PLAIN_CHAIN, modelProfile, fallbacks };
    void this.runtime.create(recordOf(chain, { createdAt: clock.now() }));
  }

  /** The ports of a model call in this isolate. */
  get ports() {
    const { clock, gateway, media, budget } = this;
    return { clock, gateway, media, ids: this.#ids, adapters: adapterFor, mediaBudget: budget };
  }

  get held(): number {
    return this.budget.held;
  }

  /** The texts that the provider received, in order. */
  get texts(): string[] {
    return this.asked.map(({ text }) => text);
  }

  /** Stores an attachment, and returns content with it. */
  async image(text: string, mediaType = "image/png"): Promise<Content> {
    const id = `att_01ARZ3NDEKTSV4RRFFQ69G5FA${text.at(-1)?.toUpperCase()}`;
    const owner = { tenant: "test", conversationId: "conv_test" };
    if ((await this.#attachments.head(owner, id)) === null) {
      await this.#attachments.put(owner, { id, mediaType, bytes: new Uint8Array(IMAGE) });
    }
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

test("G25 MEDIABUDGET-1 a request keeps its memory until the last of its attachments has left", () => {
  const onSent = vi.fn();
  const reads = new MediaReads(undefined, seededIds(1, new VirtualClock()), onSent);
  for (const id of "abc") reads.defer({ id: `att_${id}`, mediaType: "image/png", size: 1, version: id });
  const [first, second, third] = [...reads.deferred.values()];
  first?.sent?.();
  second?.sent?.();
  expect(onSent).not.toHaveBeenCalled();
  third?.sent?.();
  expect(onSent).toHaveBeenCalledOnce();
});

describe("G25 MEDIABUDGET-1 two turns with attachments at the same time", () => {
  const errors = vi.spyOn(console, "error");
  beforeEach(() => void errors.mockImplementation(() => undefined));
  afterEach(() => void errors.mockReset());

  test("are called one after another, each attachment looked up once a call; a turn without media does not wait", async () => {
    const world = new World();
    const first = await world.say(await world.image("turn A"));
    const second = await world.say(await world.image("turn B"));
    await world.say("turn C");
    await world.clock.advance(5 * SECOND);
    expect(world.texts.sort()).toEqual(["turn A", "turn C"]);
    expect(world.held).toBe(IMAGE);
    expect(world.lookedUp.filter((call) => call.endsWith("A"))).toEqual(["head A", "head A", "get A"]);
    world.asked.find(({ text }) => text === "turn A")?.complete();
    await world.clock.advance(SECOND);
    expect(world.turn(first).status).toBe("completed");
    expect(world.texts.at(-1)).toBe("turn B");
    expect(world.held).toBe(IMAGE);
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
    expect(world.held).toBe(IMAGE);
  });

  test("wait only for a body that the provider does not read, not for a body that has been sent in pieces", async () => {
    const world = new World({ streamed: true });
    let read = () => {};
    world.readable = new Promise((resolve) => {
      read = resolve;
    });
    await world.say(await world.image("turn A"));
    await world.say(await world.image("turn B"));
    await world.clock.advance(50 * SECOND);
    expect(world.held).toBe(IMAGE);
    expect(world.texts).toEqual([]);
    read();
    await world.clock.advance(SECOND);
    expect(world.texts).toEqual(["turn A", "turn B"]);
    expect(world.held).toBe(0);
  });

  test("keep their order", async () => {
    const world = new World();
    const names = ["A", "B", "C", "D", "E"];
    for (const name of names) await world.say(await world.image(`turn ${name}`));
    for (const [count] of names.entries()) {
      await world.clock.advance(20 * SECOND);
      expect(world.asked).toHaveLength(count + 1);
      world.asked[count]?.complete();
    }
    expect(world.texts).toEqual(names.map((name) => `turn ${name}`));
  });
});

describe("G25 a call that waits for memory, with a healthy provider and a fallback", () => {
  /** Begins a turn while another tenant holds all memory. */
  async function beginWaitingTurn(world: World) {
    const { signal } = new AbortController();
    const all = { tenant: "other", bytes: ROOM, leaseMs: 1_000 * SECOND, signal };
    const release = await world.budget.reserve(all);
    const startedAt = world.clock.now();
    return { id: await world.say(await world.image("turn A")), release, startedAt };
  }

  test("CALLROOM-1 keeps its place, and its attempt begins when it has memory", async () => {
    const world = new World();
    const { id, release, startedAt } = await beginWaitingTurn(world);
    await world.clock.advance(SECOND);
    const behind = world.budget.reserve({
      tenant: "later",
      bytes: ROOM,
      leaseMs: 1_000 * SECOND,
      signal: new AbortController().signal,
    });
    await world.clock.advance(109 * SECOND);
    expect(world.asked).toEqual([]);
    release();
    await world.clock.advance(50 * SECOND);
    expect(world.texts).toEqual(["turn A"]);
    world.asked[0]?.complete();
    await world.clock.advance(SECOND);
    (await behind)();
    const { status, calls } = world.turn(id);
    expect(status).toBe("completed");
    expect(calls).toMatchObject([{ outcome: { ok: true, attempts: 1 } }]);
    expect((calls?.[0]?.outcome?.startedAt ?? 0) - startedAt).toBeGreaterThanOrEqual(110 * SECOND);
  });

  test("CALLROOM-2 FALLBACK-1 without memory in time it fails as retriable, and no model has failed", async () => {
    const world = new World();
    const { id } = await beginWaitingTurn(world);
    await world.clock.advance(119 * SECOND);
    expect(world.turn(id).status).toBe("active");
    await world.clock.advance(2 * SECOND);
    expect(world.turn(id)).toMatchObject({
      status: "failed",
      error: {
        code: "UNAVAILABLE",
        retriable: true,
        message: "The memory for attachments was busy for 120 s. Send the message again.",
      },
    });
    expect(world.turn(id).calls ?? []).toEqual([]);
    expect(world.asked).toEqual([]);
    expect(world.clock.pending).toBe(0);
  });

  test("CALLROOM-2 LIMITER-4 if too many calls of its tenant wait, it fails as retriable, and no model has failed", async () => {
    const world = new World();
    const abort = new AbortController();
    const reserve = () =>
      world.budget.reserve({ tenant: "test", bytes: ROOM, leaseMs: 1_000 * SECOND, signal: abort.signal });
    await reserve();
    for (let call = 0; call < 256; call++) reserve().catch(() => undefined);
    const id = await world.say(await world.image("turn A"));
    await world.clock.advance(SECOND);
    expect(world.turn(id)).toMatchObject({
      status: "failed",
      error: { code: "UNAVAILABLE", retriable: true, message: expect.stringContaining("wait") },
    });
    expect([world.turn(id).calls ?? [], world.asked]).toEqual([[], []]);
    abort.abort();
  });

  test("CALLROOM-2 after a failed attempt, its record stays unchanged", async () => {
    const world = new World();
    const id = await world.say(await world.image("turn A"));
    await world.clock.advance(SECOND);
    world.asked[0]?.fail(500);
    const { signal } = new AbortController();
    void world.budget.reserve({ tenant: "other", bytes: ROOM, leaseMs: 1_000 * SECOND, signal });
    await world.clock.advance(130 * SECOND);
    expect(world.turn(id)).toMatchObject({
      status: "failed",
      error: { code: "UNAVAILABLE" },
      calls: [{ outcome: { ok: false, attempts: 1 } }],
    });
    expect(world.asked).toHaveLength(1);
  });
});

describe("G25 MEDIABUDGET-1 a failed call with media holds no reservation", () => {
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
    for (let step = 0; step < 400 && world.turn(id).status === "active"; step++) {
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
      { ...world.ports, media },
      {
        record: runtime.state.record,
        turn,
        call: turn.call,
        history: () => [],
        shownTurns: () => [],
        onBegin: () => undefined,
        onText: () => undefined,
      },
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
    expect(world.held).toBe(IMAGE);
    world.asked[0]?.complete();
    await world.clock.advance(SECOND);
    expect(world.asked).toHaveLength(2);
    world.asked[1]?.complete();
    for (const { outcome } of [first, third])
      expect(await outcome).toMatchObject({ type: "conversation.llm.completed" });
    expect(world.held).toBe(0);
    expect(world.clock.pending).toBe(0);
  });

  test("MEDIA-4 with an attachment that is replaced while it is sent fails as retriable, without blaming its provider", async () => {
    const world = new World({ streamed: true });
    const { outcome } = await call(world, { ...world.media, read: async () => null });
    expect(await outcome).toMatchObject({
      type: "conversation.llm.failed",
      error: { category: "transient", message: expect.stringContaining("deleted or replaced") },
    });
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
      read: (info, range) => late.then(() => world.media.read(info, range)),
    });
    await world.clock.advance(SECOND);
    expect(world.held).toBe(moment === "read" ? IMAGE : 0);
    aborted.abort();
    expect(await aborted.outcome).toMatchObject(CANCELED);
    expect(world.held).toBe(0);
    answer();
    await world.clock.advance(SECOND);
    expect(world.held).toBe(0);
    expect(world.asked).toEqual([]);
  });
});
