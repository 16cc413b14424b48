/** Readers that do not read: the memory that they hold, their cut-off, and that no frame is lost. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test, vi } from "vitest";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import type { Client, ConnectionMemory } from "../../src/agents/base/sockets/client.ts";
import { createOutflows, Outflow, stallMs } from "../../src/agents/base/sockets/outflow.ts";
import { NEW_FLOW, SocketReader } from "../../src/agents/base/sockets/socket-reader.ts";
import { Stall } from "../../src/agents/base/sockets/stall.ts";
import { type ConnectionContext, receiveFrame } from "../../src/agents/conversation/inbound/connections.ts";
import { ConversationReaders } from "../../src/agents/conversation/inbound/readers.ts";
import { messageOf } from "../../src/agents/conversation/inbound/requests.ts";
import { MAX_READERS } from "../../src/agents/conversation/inbound/socket-limits.ts";
import type { CursorStart, FrameCursor, Take } from "../../src/agents/conversation/reads/frame-cursor.ts";
import type { FrameText } from "../../src/agents/conversation/reads/frame-texts.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { SILENCE_MS } from "../../src/protocol/event-stream.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { CostCounter, countingDatabase } from "../support/counting.ts";
import { PLAIN_CHAIN, recordOf } from "../support/records.ts";

const ADA: Principal = { tenant: "test", subject: "ada", roles: ["member"] };
const KIB = 1024;
const LONG_ANSWER = JSON.stringify("x".repeat(20 * KIB - 2));
setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** A WebSocket that accepts all frames and delivers only on command. */
class Socket {
  state: ConnectionMemory | null = null;
  readonly frames: Frame[] = [];
  length = 0;
  closed: number | undefined;

  setState(state: ConnectionMemory): void {
    this.state = state;
  }

  send(text: string): void {
    this.frames.push(JSON.parse(text));
    this.length += text.length;
  }

  close(code: number): void {
    this.closed ??= code;
  }

  get client(): Client {
    // SAFETY: readers use these members of a connection only.
    return this as unknown as Client;
  }

  get seqs(): number[] {
    return this.frames.flatMap(({ seq }) => seq ?? []);
  }

  /** The marks, the oldest first. */
  get marks(): string[] {
    return this.frames.flatMap((frame) => (frame.type === "mark" ? frame.data.mark : []));
  }
}

/** A conversation with a model that says some texts, one every 100 ms, and ends its answer if there are any. */
function conversation(texts: readonly string[] = [], counter = new CostCounter()) {
  const outflows = createOutflows();
  const clock = new VirtualClock();
  const listeners: ((frames: readonly Frame[]) => void)[] = [];
  const database = new NodeSqlDatabase();
  const { db, kv } = countingDatabase(database, new NodeKeyValue(database), counter);
  const sockets: Socket[] = [];
  const runtime = new ConversationRuntime({
    database: { ...db, isInTransaction: () => database.isInTransaction() },
    keyValue: kv,
    clock,
    ids: seededIds(1, clock),
    gateway: {
      async *stream(_request, signal) {
        for (const text of texts) {
          await clock.sleep(100, signal);
          yield { type: "text", text };
        }
        if (texts.length > 0) yield { type: "finish", reason: "stop" };
        else await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    },
    adapters: adapterFor,
    executor: localExecutor(new DeployedCode([]), clock),
    gate: allowAll,
    ...noMail,
    armWakeup: async () => undefined,
    publish: (frames) => {
      readers.publish(frames);
      for (const listen of listeners) listen(frames);
    },
  });
  const clients = () => sockets.filter(({ closed }) => closed === undefined).map(({ client }) => client);
  const live = () =>
    new ConversationReaders(
      {
        runtime,
        queries: new ConversationQueries(runtime.store),
        clock,
        clients,
        expireAt: async () => undefined,
        waitUntil: () => undefined,
      },
      outflows,
    );
  let readers = live();
  runtime.create(recordOf(PLAIN_CHAIN));
  const startTurn: ConnectionContext["startTurn"] = (principal, input) =>
    runtime.accept(messageOf(principal, input));
  return {
    clock,
    runtime,
    outflows,
    listeners,
    get readers() {
      return readers;
    },
    /** Clears the actor's memory about its sockets. */
    hibernate() {
      readers = live();
      readers.sockets.restore(runtime.state.seq);
    },
    async say(length: number): Promise<string> {
      const { turnId } = await runtime.accept({
        type: "conversation.user.message",
        caller: { type: "user", userId: "ada" },
        data: { content: "x".repeat(length) },
      });
      return turnId;
    },
    connect(acks: boolean, from?: number): Socket {
      const socket = new Socket();
      sockets.push(socket);
      readers.sockets.open(socket.client, ADA, readers.cursor({ from }), acks);
      return socket;
    },
    /** Returns a mark of the socket, the newest by default, as its client does; whether it was due. */
    acknowledge(socket: Socket, index = -1): boolean {
      return readers.sockets.acknowledge(socket.client, socket.marks.at(index) ?? "none");
    },
    /** Takes a frame from the client of a socket, as the door does. */
    async receive(socket: Socket, frame: object): Promise<void> {
      // SAFETY: frames need these ports only.
      const ports = { readers: readers.sockets, startTurn, clock } as unknown as ConnectionContext;
      await receiveFrame(ports, socket.client, JSON.stringify(frame));
    },
    seqs: () => {
      const frames: Frame[] = [];
      readers.cursor({ from: 0 }).catchUp((_, frame) => frames.push(frame) > 0);
      return frames.flatMap(({ seq }) => seq ?? []);
    },
  };
}

describe("G25 READER-1 a WebSocket with a client that promised acknowledgements", () => {
  test("holds at most the window without acknowledgements, and is closed with 1013", async () => {
    const world = conversation();
    for (let n = 0; n < 16; n++) await world.say(100 * KIB);
    const opened = world.connect(true, 0);
    const live = world.connect(true);
    for (let n = 0; n < 8; n++) await world.say(100 * KIB);
    for (const socket of [opened, live]) {
      expect(socket.length).toBeGreaterThan(150 * KIB);
      // The window, and the marks in it; the snapshot alone is longer.
      expect(socket.length).toBeLessThan(420 * KIB);
      expect(socket.closed).toBeUndefined();
    }
    await world.clock.advance(60_000);
    expect([opened.closed, live.closed]).toEqual([1013, 1013]);
  });

  test("READER-3 gets everything once and in order as it acknowledges, also over a hibernation", async () => {
    const world = conversation();
    for (let n = 0; n < 12; n++) await world.say(100 * KIB);
    const socket = world.connect(true, 0);
    for (let acked = 0; acked < socket.marks.length; ) {
      if (acked === 3) world.hibernate();
      expect(world.acknowledge(socket, acked)).toBe(true);
      acked += 1;
      if (acked % 4 === 0 && acked < 20) await world.say(50 * KIB);
    }
    expect(socket.closed).toBeUndefined();
    expect(socket.seqs).toEqual(world.seqs());
  });

  test("READER-3 gets everything by acknowledging the newest mark only, which counts for all before it", async () => {
    const world = conversation();
    for (let n = 0; n < 60; n++) await world.say(20 * KIB);
    const socket = world.connect(true, 0);
    const before = socket.length;
    expect(world.acknowledge(socket)).toBe(true);
    expect(socket.length - before, "a window is free again").toBeGreaterThan(200 * KIB);
    while (world.acknowledge(socket)) expect(socket.closed).toBeUndefined();
    expect(socket.seqs).toEqual(world.seqs());
  });

  test("is not closed while it acknowledges now and then, however long it is behind", async () => {
    const world = conversation();
    for (let n = 0; n < 60; n++) await world.say(50 * KIB);
    const socket = world.connect(true, 0);
    for (let acked = 0; acked < socket.marks.length; acked++) {
      await world.clock.advance(4_000);
      expect(socket.closed).toBeUndefined();
      expect(world.acknowledge(socket, acked)).toBe(true);
    }
    expect(socket.seqs).toEqual(world.seqs());
  });

  test("gets a long frame only once it has acknowledged all before it", async () => {
    const world = conversation();
    await world.say(10 * KIB);
    const socket = world.connect(true, 0);
    await world.say(900 * KIB);
    expect(socket.length).toBeLessThan(64 * KIB);
    expect(world.acknowledge(socket)).toBe(true);
    expect(socket.length).toBeGreaterThan(900 * KIB);
    world.acknowledge(socket);
    expect(socket.seqs).toEqual(world.seqs());
  });

  test("gets long frames with short frames between them as it acknowledges", async () => {
    const world = conversation();
    for (let n = 0; n < 6; n++) await world.say(n % 2 === 0 ? 600 * KIB : KIB);
    const socket = world.connect(true, 0);
    for (let acked = 0; acked < socket.marks.length; acked++) world.acknowledge(socket, acked);
    expect(socket.seqs).toEqual(world.seqs());
  });

  test("cannot guess a mark or return it twice: only valid marks acknowledge frames", async () => {
    const world = conversation();
    for (let n = 0; n < 16; n++) await world.say(100 * KIB);
    const [socket, other] = [world.connect(true, 0), world.connect(true, 0)];
    const { length } = socket;
    const guesses = [...Array.from({ length: 20 }, (_, n) => String(n)), ...other.marks, ""];
    for (const mark of guesses) expect(world.readers.sockets.acknowledge(socket.client, mark)).toBe(false);
    expect(socket.length).toBe(length);
    const { marks } = socket;
    expect(new Set([...marks, ...other.marks]).size).toBe(2 * marks.length);
    for (const mark of marks.slice(0, 2)) {
      const isDue = () => world.readers.sockets.acknowledge(socket.client, mark);
      expect([isDue(), isDue()]).toEqual([true, false]);
    }
    expect(socket.length).toBeGreaterThan(length);
    await world.clock.advance(60_000);
    expect(socket.closed).toBe(1013);
  });

  test("keeps few marks with its connection, however often the actor leaves memory", async () => {
    const world = conversation();
    for (let n = 0; n < 16; n++) await world.say(100 * KIB);
    const socket = world.connect(true, 0);
    for (let n = 0; n < 40; n++) {
      await world.say(KIB);
      await world.receive(socket, { type: "ping" });
      world.hibernate();
    }
    expect(JSON.stringify(socket.state).length).toBeLessThan(512);
    expect(socket.length).toBeLessThan(600 * KIB);
  });
});

describe("G25 READER-4 the answer to a WebSocket", () => {
  test("to a repeated message names it without its content", async () => {
    const world = conversation();
    const socket = world.connect(true);
    const message = { type: "turn.start", id: "same", content: "z".repeat(900 * KIB) };
    await world.receive(socket, message);
    world.acknowledge(socket);
    const recorded = socket.frames.find(({ type }) => type === "message.user");
    expect(recorded?.seq).toBeDefined();
    const { length } = socket;
    await world.receive(socket, message);
    expect(socket.frames.at(-1)).toEqual({
      v: 1,
      type: "message.user",
      turnId: recorded?.turnId,
      messageId: recorded?.messageId,
      time: expect.any(String),
      data: { clientId: "same" },
    });
    expect(socket.length - length).toBeLessThan(KIB);
  });

  test.each<[string, object]>([
    ["pings", { type: "ping" }],
    ["bad frames", { type: "nothing" }],
    ["repeated messages", { type: "turn.start", id: "same", content: "again" }],
  ])("for %s is bounded: a client that does not read is closed with 1013", async (_, frame) => {
    for (const acks of [true, false]) {
      const world = conversation();
      for (let n = 0; n < 3; n++) await world.say(100 * KIB);
      const socket = world.connect(acks, 0);
      const most = (acks ? 420 : 4.3 * 1024) * KIB;
      for (let n = 0; socket.closed === undefined && n < 100_000; n++) await world.receive(socket, frame);
      expect(socket.closed).toBe(1013);
      expect(socket.length).toBeLessThan(most);
    }
  });

  test("is returned with the mark after it: a client that reads gets any number", async () => {
    const world = conversation();
    const socket = world.connect(true, 0);
    for (let n = 0; n < 10_000; n++) {
      await world.receive(socket, { type: "ping" });
      if (n % 100 === 0) world.acknowledge(socket);
    }
    expect(socket.frames.filter(({ type }) => type === "pong")).toHaveLength(10_000);
    expect(socket.closed).toBeUndefined();
  });

  test("fits beside a full window", async () => {
    const world = conversation();
    for (let n = 0; n < 16; n++) await world.say(100 * KIB);
    const socket = world.connect(true, 0);
    for (let n = 0; n < 100; n++) await world.receive(socket, { type: "ping" });
    expect(socket.closed).toBeUndefined();
    for (let acked = 0; acked < socket.marks.length; acked++) world.acknowledge(socket, acked);
    expect(socket.seqs).toEqual(world.seqs());
  });
});

test("G25 READER-2 a WebSocket without acknowledgements is closed with 1013 after its window, and continues", async () => {
  const world = conversation();
  for (let n = 0; n < 48; n++) await world.say(200 * KIB);
  const seen: number[] = [];
  const codes: (number | undefined)[] = [];
  for (let connections = 0; connections < 5; connections++) {
    const socket = world.connect(false, seen.at(-1) ?? 0);
    expect(socket.length).toBeLessThan(4.3 * 1024 * KIB);
    expect(socket.marks).toEqual([]);
    seen.push(...socket.seqs);
    codes.push(socket.closed);
    world.readers.sockets.closed(socket.client);
    if (socket.closed === undefined) break;
  }
  expect(codes).toEqual([1013, 1013, undefined]);
  expect(seen).toEqual(world.seqs());
});

test("G25 READER-2 a WebSocket without acknowledgements waits while other readers use up the isolate's memory", async () => {
  const world = conversation();
  await world.say(100 * KIB);
  const { unconfirmed } = world.outflows;
  const other = {};
  unconfirmed.note(other, 16 * 1024 * KIB, world.clock.now());
  const socket = world.connect(false, 0);
  await world.clock.advance(3_000);
  expect(socket.closed).toBeUndefined();
  expect(socket.seqs).not.toContain(world.seqs().at(-1));
  unconfirmed.note(other, 0, world.clock.now());
  await world.clock.advance(1_000);
  expect(socket.seqs).toEqual(world.seqs());
});

describe("G25 READER-2 WebSockets without acknowledgements with clients that read everything", () => {
  test("are not closed below their window, however many there are", async () => {
    const world = conversation(["ok"]);
    const sockets = Array.from({ length: 24 }, () => world.connect(false));
    for (let n = 0; n < 80; n++) {
      await world.say(12 * KIB);
      await world.clock.advance(10_000);
    }
    for (const { closed, length } of sockets) {
      expect(closed).toBeUndefined();
      expect(length).toBeGreaterThan(960 * KIB);
    }
  });

  test("get later messages although all their snapshots together fill the isolate's memory", async () => {
    const world = conversation(["ok"]);
    for (let n = 0; n < 15; n++) {
      await world.say(20 * KIB);
      await world.clock.advance(2_000);
    }
    const sockets = Array.from({ length: 80 }, () => world.connect(false));
    for (let n = 0; n < 6; n++) {
      await world.say(KIB);
      await world.clock.advance(5_000);
    }
    const last = world.runtime.state.seq;
    for (const { closed, seqs } of sockets) expect([closed, seqs.at(-1)]).toEqual([undefined, last]);
  });
});

test("G25 OUTFLOW-2 READER-2 many WebSockets that do not read get at most the total at once, and each its first frame soon", async () => {
  const world = conversation();
  for (let n = 0; n < 16; n++) await world.say(240 * KIB);
  const sockets = Array.from({ length: 40 }, (_, n) => world.connect(false, n % 2 === 0 ? 0 : undefined));
  const sent = sockets.reduce((sum, { length }) => sum + length, 0);
  expect(sent).toBeLessThan((16 * 1024 + 40 * 16) * KIB);
  await world.clock.advance(15_000);
  for (const { length } of sockets) expect(length).toBeGreaterThan(200 * KIB);
  await world.clock.advance(60_000);
  const waiting = sockets.filter(({ seqs, closed }) => seqs.length < 16 && closed === undefined);
  // Only readers that have their snapshot, without waiting frames, are open.
  expect(waiting.every(({ frames }) => frames[0]?.type === "snapshot")).toBe(true);
});

test("READER-1 a reader that catches up reads little more than it gets", async () => {
  const counter = new CostCounter();
  const world = conversation(["ok"], counter);
  for (let n = 0; n < 100; n++) {
    await world.say(8 * KIB);
    await world.clock.advance(2_000);
  }
  counter.reset();
  const socket = world.connect(true, 0);
  for (let acked = 0; acked < socket.marks.length; acked++) world.acknowledge(socket, acked);
  expect(counter.cost.statements / 100).toBeLessThan(5);
  expect(socket.seqs).toEqual(world.seqs());
});

test("TEXT-2 readers that begin while a text is in progress share one snapshot, which has the text", async () => {
  const counter = new CostCounter();
  const world = conversation(Array(50).fill("word "), counter);
  await world.say(20 * KIB);
  await world.clock.advance(6_000);
  await world.say(10);
  await world.clock.advance(1_000);
  const inProgress = () => world.runtime.deltas.partials();
  expect(inProgress()).toMatchObject([{ text: expect.stringMatching(/^(word ){5,}$/) }]);
  const taken = Array.from({ length: 10 }, () => {
    counter.reset();
    const texts: FrameText[] = [];
    const cursor = world.readers.cursor({});
    cursor.catchUp((text, frame) => {
      expect(JSON.parse(text.text)).toEqual(frame);
      if (frame.type === "snapshot") expect(frame.data.partials).toEqual(inProgress());
      return texts.push(text) > 0;
    });
    return { texts, statements: counter.cost.statements };
  });
  const [first] = taken;
  for (const { texts, statements } of taken.slice(1)) {
    expect(texts[0]).toBe(first?.texts[0]);
    expect(statements).toBe(0);
  }
  const bytes = first?.texts[0]?.bytes("sse") ?? new Uint8Array();
  expect(new TextDecoder().decode(bytes)).toMatch(new RegExp(`^id: ${world.runtime.state.seq}\n`));
  const before = inProgress();
  await world.clock.advance(500);
  expect(inProgress()).not.toEqual(before);
  const later: Frame[] = [];
  world.readers.cursor({}).catchUp((_, frame) => later.push(frame) > 0);
  expect(later).toMatchObject([{ data: { partials: inProgress() } }]);
});

describe("event streams", () => {
  const options = { principal: ADA, encoding: "sse" } as const;

  test(`are at most ${MAX_READERS}, beside any number of WebSockets; starting turn streams count`, async () => {
    const world = conversation(["ok"]);
    for (let n = 0; n < 3; n++) world.connect(true);
    for (let n = 1; n < MAX_READERS; n++) world.readers.stream({}, options);
    const { readers } = world;
    let start: () => void = () => undefined;
    const started = new Promise<void>((resolve) => {
      start = resolve;
    });
    const turn = readers.streamTurn(options, async () => {
      await started;
      const turnId = await world.say(10);
      return { turnId, messageId: "", from: 0, repeated: false };
    });
    expect(() => readers.stream({}, options)).toThrow("256 readers");
    start();
    const { frames } = await turn;
    expect(() => readers.stream({}, options)).toThrow("256 readers");
    await frames.cancel();
    readers.stream({}, options);
    expect(() => readers.stream({}, options)).toThrow("256 readers");
  });

  test("that have expired make room for a new stream", async () => {
    const world = conversation();
    const principal = { ...ADA, expiresAt: world.clock.now() + 1_000 };
    for (let n = 0; n < MAX_READERS; n++) world.readers.stream({}, { ...options, principal });
    await world.clock.advance(999);
    expect(() => world.readers.stream({}, options)).toThrow("256 readers");
    await world.clock.advance(1_000);
    world.readers.stream({}, options);
  });
});

describe("G25 SUB-2 a stream", () => {
  test("waits without a read while other readers use up the isolate's memory, then continues", async () => {
    const counter = new CostCounter();
    const world = conversation(["ok"], counter);
    for (let n = 0; n < 10; n++) {
      await world.say(20 * KIB);
      await world.clock.advance(2_000);
    }
    const { confirmed } = world.outflows;
    const other = {};
    confirmed.note(other, 17 * 1024 * KIB, world.clock.now());
    const reader = world.readers.stream({ from: 0 }, { principal: ADA, encoding: "ndjson" }).getReader();
    let received = (await reader.read()).value?.length ?? 0;
    counter.reset();
    await world.clock.advance(4_000);
    expect(counter.cost.statements).toBe(0);
    confirmed.note(other, 0, world.clock.now());
    await world.clock.advance(250);
    while (received < 200 * KIB) received += (await reader.read()).value?.length ?? 0;
    await reader.cancel();
  });

  test("buffers a little of its unread data, and is cut off; the reader continues after its last frame", async () => {
    const world = conversation();
    for (let n = 0; n < 8; n++) await world.say(100 * KIB);
    const options = { principal: ADA, encoding: "ndjson" } as const;
    const idle = Array.from({ length: 20 }, () => world.readers.stream({ from: 0 }, options));
    await new Promise(setImmediate);
    for (let n = 0; n < 8; n++) await world.say(500 * KIB);
    expect(world.outflows.confirmed.total).toBeLessThan(20 * 50 * KIB);
    await world.clock.advance(60_000);
    for (const stream of idle) await expect(new Response(stream).text()).rejects.toThrow("resume");
    expect(world.outflows.confirmed.total).toBe(0);
  });

  test("gives a reader that takes its time every frame once and in order", async () => {
    const world = conversation();
    for (let n = 0; n < 4; n++) await world.say(300 * KIB);
    const reader = world.readers.stream({ from: 0 }, { principal: ADA, encoding: "ndjson" }).getReader();
    const decoder = new TextDecoder();
    let text = "";
    const last = () => world.runtime.state.seq;
    for (let taken = 0; !text.includes(`"seq":${last()},`) || !text.endsWith("\n"); taken++) {
      const { value } = await reader.read();
      text += decoder.decode(value, { stream: true });
      if (taken % 10 === 0 && taken < 100) await world.say(40 * KIB);
      await world.clock.advance(1_000);
    }
    const frames: Frame[] = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(frames.flatMap(({ seq }) => seq ?? [])).toEqual(world.seqs());
    await reader.cancel();
  });
});

/** A reader that takes a frame, or refuses it, as `mayTake` decides. */
class Follower {
  readonly frames: Frame[] = [];
  /** Frames that it was asked to take. */
  asked = 0;
  readonly cursor: FrameCursor;

  constructor(
    world: ReturnType<typeof conversation>,
    readonly start: CursorStart,
    private readonly mayTake: () => boolean,
    { isEager = false } = {},
  ) {
    this.cursor = world.readers.cursor(start);
    world.listeners.push((frames) => {
      // Published frames are already in the journal and in the texts.
      if (isEager) this.cursor.catchUp(this.take);
      this.cursor.offer(frames, this.take);
    });
  }

  /** Takes everything that is missing. */
  catchUp(): void {
    this.cursor.catchUp((_, frame) => this.frames.push(frame) > 0);
  }

  readonly take: Take = (_, frame) => {
    this.asked += 1;
    return this.mayTake() && this.frames.push(frame) > 0;
  };

  get seqs(): number[] {
    return this.frames.flatMap(({ type, seq }) => (type === "snapshot" ? [] : (seq ?? [])));
  }

  /** The text in progress of each message, from the snapshot and the deltas, which must follow each other. */
  get texts(): string[] {
    const texts = new Map<string, string>();
    for (const { type, data, messageId = "" } of this.frames) {
      if (type === "snapshot")
        for (const partial of data.partials) texts.set(partial.messageId, partial.text);
      if (type !== "message.delta") continue;
      const text = texts.get(messageId) ?? "";
      expect(data.offset).toBe(text.length);
      texts.set(messageId, text + data.text);
    }
    return [...texts.values()];
  }
}

describe("a reader", () => {
  const WORDS = Array.from({ length: 30 }, (_, n) => `${n} `);
  const always = () => true;

  test.each<[string, (seq: number) => CursorStart]>([
    ["with a snapshot", () => ({})],
    ["with the frames after a number", () => ({ from: 0 })],
    ["with the text in progress, if it has the entries", (seq) => ({ from: seq, has: "entries" })],
  ])(
    "CURSOR-1 begins %s, then has every durable frame once and the text in progress without a gap",
    async (_, startAt) => {
      const world = conversation(WORDS);
      const followers: Follower[] = [];
      await world.say(10);
      for (let step = 0; step < 28; step++) {
        const start = startAt(world.runtime.state.seq);
        let offers = step;
        const sometimes = () => ++offers % 7 !== 0;
        const joined = [
          new Follower(world, start, always),
          new Follower(world, start, sometimes),
          new Follower(world, start, sometimes, { isEager: true }),
        ];
        for (const each of joined) each.catchUp();
        followers.push(...joined);
        await world.clock.advance(100);
        if (step === 10) await world.say(10);
        if (step % 5 === 0) for (const { cursor, take } of followers) cursor.catchUp(take);
      }
      await world.clock.advance(50);
      const published = world.runtime.deltas.partials().map(({ text }) => text);
      expect(published[0]).toBe(WORDS.slice(0, 28).join(""));
      for (const each of followers) {
        each.catchUp();
        expect(each.texts).toEqual(published);
      }
      await world.clock.advance(5_000);
      for (const each of followers) {
        each.catchUp();
        const [head] = each.frames;
        const { from } = each.start;
        const after = from ?? head?.seq ?? 0;
        expect(head?.type === "snapshot").toBe(from === undefined);
        expect(each.seqs).toEqual(world.seqs().filter((seq) => seq > after));
      }
    },
  );

  test("CURSOR-2 that refuses a frame gets no more frames until it catches up, and progress is dropped during that time", async () => {
    const world = conversation(WORDS);
    let isReady = false;
    const follower = new Follower(world, { from: 0 }, () => isReady);
    follower.catchUp();
    await world.say(10);
    await world.clock.advance(1_000);
    const progress: Frame = {
      v: 1,
      type: "tool.progress",
      time: "2026-01-01T00:00:00.000Z",
      data: { progress: 1 },
    };
    for (const listen of world.listeners) listen([progress]);
    expect(follower.asked).toBe(1);
    isReady = true;
    await world.clock.advance(500);
    expect(follower.asked).toBe(1);
    follower.catchUp();
    for (const listen of world.listeners) listen([progress]);
    await world.clock.advance(100);
    expect(follower.seqs).toEqual(world.seqs());
    expect(follower.texts).toEqual([WORDS.slice(0, 15).join("")]);
    expect(follower.frames.filter(({ type }) => type === "tool.progress")).toEqual([progress]);
  });

  test("CURSOR-1 of one turn gets only the frames of this turn, to its last", async () => {
    const world = conversation(WORDS);
    await world.say(10);
    const turnId = await world.say(10);
    await world.say(10);
    const follower = new Follower(world, { from: 0, turnId }, always);
    follower.catchUp();
    await world.clock.advance(5_000);
    expect(new Set(follower.frames.map((frame) => frame.turnId))).toEqual(new Set([turnId]));
    expect(follower.frames.at(-1)?.type).toBe("turn.completed");
    expect(follower.cursor.isOver).toBe(true);
  });
});

test("TEXT-1 readers of a long frame share its text and its bytes, live or from the journal", async () => {
  const world = conversation();
  const taken: FrameText[][] = [];
  const follow = (from: number) => {
    const texts: FrameText[] = [];
    taken.push(texts);
    const cursor = world.readers.cursor({ from });
    const take: Take = (text, frame) => frame.type !== "message.user" || texts.push(text) > 0;
    cursor.catchUp(take);
    world.listeners.push((frames) => cursor.offer(frames, take));
  };
  follow(0);
  await world.say(100 * KIB);
  for (let n = 0; n < 3; n++) follow(0);
  const [[first] = []] = taken;
  if (first === undefined) throw new Error("The first reader followed the message.");
  expect(first.text).toContain("x".repeat(100 * KIB));
  for (const [text] of taken) {
    expect(text).toBe(first);
    for (const encoding of ["sse", "ndjson"] as const)
      expect(text?.bytes(encoding)).toBe(first.bytes(encoding));
  }
});

test("READ-2 readers that page through a long turn read it from the store once", async () => {
  const counter = new CostCounter();
  const world = conversation(["y".repeat(200 * KIB)], counter);
  await world.say(10);
  await world.clock.advance(1_000);
  expect(world.runtime.state.active.size).toBe(0);
  const cost = () => {
    counter.reset();
    expect(world.seqs()).toContain(world.runtime.state.seq);
    return counter.cost.statements;
  };
  const first = cost();
  const second = cost();
  expect(second).toBeLessThan(first);
});

describe("SUB-4 a stream of server-sent events that is silent", () => {
  /** Reads the buffered part of a stream. */
  const reader = (stream: ReadableStream<Uint8Array>) => {
    const chunks: string[] = [];
    const ended = stream.pipeTo(
      new WritableStream({ write: (bytes) => void chunks.push(new TextDecoder().decode(bytes)) }),
    );
    return { chunks, ended };
  };

  test("gets a comment every 15 seconds, counted from its last bytes", async () => {
    const world = conversation();
    const { chunks } = reader(world.readers.stream({}, { principal: ADA, encoding: "sse" }));
    await world.clock.advance(14_999);
    expect(chunks).toHaveLength(1);
    await world.clock.advance(1);
    expect(chunks.splice(0).slice(1)).toEqual([": keep-alive\n\n"]);
    await world.clock.advance(10_000);
    await world.say(10);
    const told = chunks.length;
    await world.clock.advance(14_999);
    expect(chunks).toHaveLength(told);
    await world.clock.advance(1 + 2 * SILENCE_MS);
    expect(chunks.slice(told)).toEqual(Array(3).fill(": keep-alive\n\n"));
  });

  test("gets none once its reader has left, and no other stream gets a comment", async () => {
    const world = conversation();
    const { pending } = world.clock;
    const lines = reader(world.readers.stream({}, { principal: ADA, encoding: "ndjson" }));
    const events = world.readers.stream({}, { principal: ADA, encoding: "sse" });
    await world.clock.advance(2 * SILENCE_MS);
    expect(lines.chunks.map((text) => JSON.parse(text).type)).toEqual(["snapshot"]);
    await events.cancel();
    expect(world.clock.pending).toBe(pending);
  });
});

test("SUB-2 the stall timer ends when no frame waits, and when the reader has left", async () => {
  const clock = new VirtualClock();
  const outflow = new Outflow({ window: 100 * KIB, total: 300 * KIB });
  const [advance, cut] = [vi.fn(), vi.fn()];
  const stall = new Stall({ outflow, clock }, { held: () => 50 * KIB, advance, cut });
  for (const end of [() => stall.watch(false), () => stall.end(true)]) {
    stall.watch(true);
    stall.watch(true);
    expect(clock.pending).toBe(1);
    end();
    expect(clock.pending).toBe(0);
    await clock.advance(60_000);
    expect([advance.mock.calls, cut.mock.calls]).toEqual([[], []]);
  }
  stall.watch(true);
  await clock.advance(60_000);
  expect(advance).toHaveBeenCalled();
  expect(cut).toHaveBeenCalledOnce();
  expect(clock.pending).toBe(0);
});

test("OUTFLOW-1 a reader holds at most its window, or a single longer frame", () => {
  const outflow = new Outflow({ window: 100 * KIB, total: 10_000 * KIB });
  const reader = {};
  const admits = (held: number, length: number) => outflow.admits(reader, held, length, 0);
  expect([admits(60 * KIB, 40 * KIB), admits(60 * KIB, 40 * KIB + 1)]).toEqual([true, false]);
  expect([admits(0, 900 * KIB), admits(1, 900 * KIB), admits(900 * KIB, 1)]).toEqual([true, false, false]);
});

describe("G25 OUTFLOW-3 readers that have left", () => {
  const options = { principal: ADA, encoding: "sse" } as const;

  test("hold no memory after their connections have closed", async () => {
    const world = conversation();
    const { confirmed, unconfirmed } = world.outflows;
    await world.say(200 * KIB);
    const before = world.clock.pending;
    for (let cycle = 0; cycle < 3; cycle++) {
      const sockets = Array.from({ length: 125 }, (_, n) => world.connect(n % 2 === 0, 0));
      const streams = Array.from({ length: MAX_READERS }, () => world.readers.stream({ from: 0 }, options));
      expect(confirmed.total + unconfirmed.total).toBeGreaterThan(10 * 1024 * KIB);
      for (const socket of sockets) {
        socket.close(1006);
        world.readers.sockets.closed(socket.client);
      }
      for (const stream of streams) await stream.cancel();
      expect([confirmed.total, unconfirmed.total, world.clock.pending]).toEqual([0, 0, before]);
    }
  });

  test("hold no memory after their connections have closed in a later life of the actor", async () => {
    const world = conversation();
    await world.say(200 * KIB);
    const sockets = Array.from({ length: 20 }, (_, n) => world.connect(n % 2 === 0, 0));
    const { confirmed, unconfirmed } = world.outflows;
    for (let life = 0; life < 2; life++) {
      world.hibernate();
      expect(unconfirmed.total).toBeGreaterThan(180 * KIB * 10);
    }
    for (const socket of sockets) {
      socket.close(1006);
      world.readers.sockets.closed(socket.client);
    }
    expect([confirmed.total, unconfirmed.total]).toEqual([0, 0]);
  });

  test("without a close are garbage-collected, although their lengths still count", async () => {
    const clock = new VirtualClock();
    const { unconfirmed } = createOutflows();
    const cursor = {
      isBehind: false,
      isOver: false,
      seq: 0,
      offer: () => undefined,
      catchUp: () => undefined,
    };
    const left = Array.from({ length: 250 }, () => {
      const socket = new Socket();
      const ports = { outflow: unconfirmed, clock, keep: () => undefined };
      new SocketReader(socket, cursor, ports, { ...NEW_FLOW, acks: false }, false).answer(LONG_ANSWER);
      return new WeakRef(socket);
    });
    const { total } = unconfirmed;
    expect(total).toBe(250 * 4 * KIB);
    await vi.waitFor(
      () => {
        collectGarbage();
        expect(left.filter((reader) => reader.deref() !== undefined)).toHaveLength(0);
      },
      { timeout: 20_000 },
    );
    expect(unconfirmed.total).toBe(total);
  });
});

describe("G25 OUTFLOW-2 all readers of an isolate", () => {
  test("hold at most the total, but small traffic flows; readers that left count for a minute", () => {
    const outflow = new Outflow({ window: 100 * KIB, total: 300 * KIB });
    const [one, two, three, late] = [{}, {}, {}, {}];
    for (const reader of [one, two, three]) {
      expect(outflow.admits(reader, 0, 100 * KIB, 0)).toBe(true);
      outflow.note(reader, 100 * KIB, 0);
    }
    expect(outflow.admits(one, 100 * KIB, 1, 0)).toBe(false);
    expect(outflow.admits(late, 0, 100 * KIB, 59_000)).toBe(false);
    expect(outflow.admits(late, 0, 8 * KIB, 59_000)).toBe(true);
    expect(outflow.admits(late, 0, 100 * KIB, 60_000)).toBe(true);
    expect(outflow.total).toBe(0);
  });

  test("count for a minute after their last change, in any order", () => {
    const outflow = new Outflow({ window: 100 * KIB, total: 300 * KIB });
    const [one, two] = [{}, {}];
    outflow.note(one, 200 * KIB, 0);
    outflow.note(two, 100 * KIB, 1_000);
    outflow.note(one, 150 * KIB, 59_000);
    expect(outflow.admits({}, 0, 350 * KIB, 60_500)).toBe(false);
    expect(outflow.admits({}, 0, 350 * KIB, 61_500)).toBe(true);
    expect(outflow.total).toBe(134 * KIB);
  });

  test("accept a frame that is longer than the total, once half the room is free", () => {
    const outflow = new Outflow({ window: 100 * KIB, total: 300 * KIB });
    expect(outflow.admits({}, 0, 900 * KIB, 0)).toBe(true);
    outflow.note({}, 100 * KIB, 0);
    outflow.note({}, 100 * KIB, 0);
    expect(outflow.admits({}, 0, 900 * KIB, 0)).toBe(false);
  });

  test("leave half of it to readers that hold little", () => {
    const outflow = new Outflow({ window: 100 * KIB, total: 300 * KIB });
    for (let n = 0; n < 2; n++) outflow.note({}, 75 * KIB, 0);
    const admits = (held: number) => outflow.admits({}, held, 40 * KIB, 0);
    expect([admits(0), admits(16 * KIB), admits(17 * KIB)]).toEqual([true, true, false]);
  });

  test("have a second more for every 64 Ki units, beside five", () => {
    expect([0, 64, 640].map((length) => stallMs(length * 1_024))).toEqual([5_000, 6_024, 15_240]);
  });
});
