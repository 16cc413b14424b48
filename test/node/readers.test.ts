/** Readers that do not read: what they hold, when they are cut off, and that nothing is lost to them. */
import { describe, expect, test } from "vitest";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import type { Client, ConnectionMemory } from "../../src/agents/conversation/door/client.ts";
import { createOutflows, Outflow } from "../../src/agents/conversation/door/outflow.ts";
import { ConversationReaders } from "../../src/agents/conversation/door/readers.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { DeployedCode } from "../../src/library/deployed-code.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { localExecutor } from "../support/local-executor.ts";
import { noMail } from "../support/no-mail.ts";
import { PLAIN_CHAIN, recordOf } from "../support/records.ts";

const ADA: Principal = { tenant: "test", subject: "ada", roles: ["member"] };
const KIB = 1024;

/** A WebSocket that takes everything and delivers nothing by itself. */
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

  /** The number of the newest mark. */
  get mark(): number {
    return this.frames.reduce((newest, frame) => (frame.type === "mark" ? frame.data.n : newest), 0);
  }
}

/** A conversation whose model never answers. */
function conversation() {
  const clock = new VirtualClock();
  const database = new NodeSqlDatabase();
  const sockets: Socket[] = [];
  const outflows = createOutflows();
  const runtime = new ConversationRuntime({
    database,
    keyValue: new NodeKeyValue(database),
    clock,
    ids: seededIds(1, clock),
    gateway: {
      async *stream(_request, signal) {
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    },
    adapters: adapterFor,
    executor: localExecutor(new DeployedCode([]), clock),
    gate: allowAll,
    ...noMail,
    armWakeup: async () => undefined,
    publish: (frames) => readers.publish(frames),
  });
  const clients = () => sockets.filter(({ closed }) => closed === undefined).map(({ client }) => client);
  const live = () =>
    new ConversationReaders({
      runtime,
      queries: new ConversationQueries(runtime.store),
      clock,
      outflows,
      clients,
      onExpiring: () => undefined,
    });
  let readers = live();
  runtime.create(recordOf(PLAIN_CHAIN));
  return {
    clock,
    runtime,
    outflows,
    get readers() {
      return readers;
    },
    /** Forgets what the actor has in memory about its sockets. */
    hibernate() {
      readers = live();
      readers.sockets.restore(runtime.state.seq);
    },
    async say(length: number): Promise<void> {
      await runtime.accept({
        type: "conversation.user.message",
        caller: { type: "user", userId: "ada" },
        data: { content: "x".repeat(length) },
      });
    },
    connect(acks: boolean, from?: number): Socket {
      const socket = new Socket();
      sockets.push(socket);
      readers.sockets.open(socket.client, ADA, readers.cursor({ from }), acks);
      return socket;
    },
    seqs: () => {
      const frames: Frame[] = [];
      readers.cursor({ from: 0 }).catchUp((_, frame) => frames.push(frame) > 0);
      return frames.flatMap(({ seq }) => seq ?? []);
    },
  };
}

describe("G25 READER-1 a WebSocket whose client promised acknowledgements", () => {
  test("holds at most the window while it sends none, and is closed with 1013", async () => {
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

  test("gets everything once and in order as it acknowledges, also over a hibernation", async () => {
    const world = conversation();
    for (let n = 0; n < 12; n++) await world.say(100 * KIB);
    const socket = world.connect(true, 0);
    for (let acked = 0; acked < socket.mark; ) {
      if (acked === 3) world.hibernate();
      acked += 1;
      world.readers.sockets.acknowledge(socket.client, acked);
      if (acked % 4 === 0 && acked < 20) await world.say(50 * KIB);
    }
    expect(socket.closed).toBeUndefined();
    expect(socket.seqs).toEqual(world.seqs());
  });

  test("gets a long frame only once it has acknowledged all before it", async () => {
    const world = conversation();
    await world.say(10 * KIB);
    const socket = world.connect(true, 0);
    await world.say(900 * KIB);
    expect(socket.length).toBeLessThan(64 * KIB);
    expect(world.readers.sockets.acknowledge(socket.client, socket.mark)).toBe(true);
    expect(socket.length).toBeGreaterThan(900 * KIB);
    world.readers.sockets.acknowledge(socket.client, socket.mark);
    expect(socket.seqs).toEqual(world.seqs());
  });

  test("gets long frames with short ones between them as it acknowledges", async () => {
    const world = conversation();
    for (let n = 0; n < 6; n++) await world.say(n % 2 === 0 ? 600 * KIB : KIB);
    const socket = world.connect(true, 0);
    for (let acked = 0; acked < socket.mark; ) {
      acked += 1;
      world.readers.sockets.acknowledge(socket.client, acked);
    }
    expect(socket.seqs).toEqual(world.seqs());
  });

  test("is not charged for marks that it did not get", () => {
    const world = conversation();
    const socket = world.connect(true);
    expect(world.readers.sockets.acknowledge(socket.client, 1)).toBe(false);
    expect(world.readers.sockets.acknowledge(socket.client, -1)).toBe(false);
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
    expect(socket.mark).toBe(0);
    seen.push(...socket.seqs);
    codes.push(socket.closed);
    world.readers.sockets.closed(socket.client);
    if (socket.closed === undefined) break;
  }
  expect(codes).toEqual([1013, 1013, undefined]);
  expect(seen).toEqual(world.seqs());
});

describe("G25 SUB-2 a stream", () => {
  test("holds a little of what its reader does not take, and is cut off; the reader continues after its last frame", async () => {
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

describe("G25 OUTFLOW-2 all readers of an isolate", () => {
  test("hold at most the total, but small traffic flows; those that are gone count for a minute", () => {
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
});
