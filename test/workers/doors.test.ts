/**
 * The WebSocket endpoints under misuse and over time: expiry, floods, crowds, frames that try to break the server, and
 * the protocol as clients of version 1 speak it.
 */
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { FLOOD } from "../../src/agents/base/sockets/admission.ts";
import { MAX_FRAME_LENGTH, MAX_READERS } from "../../src/agents/conversation/inbound/socket-limits.ts";
import protocolV1 from "../fixtures/protocol-v1.json";
import { Play } from "./provider.ts";
import { actorOf, sign, TokenServer } from "./token-server.ts";
import { type Client, SseReader } from "./world.ts";

const server = new TokenServer();
const DOORS = ["/conversations/", "/agents/conversation/"];
const seconds = () => Math.floor(Date.now() / 1000);
/** A token is accepted for half a minute after its expiry. */
const GRACE_S = 30;

let id: string;
const PER_SECOND = FLOOD.frames.perMinute / 60;
let token: string;

beforeAll(async () => {
  token = await sign({ roles: ["author"] });
});

beforeEach(async () => {
  id = await server.conversation(token);
});

afterEach(() => void vi.useRealTimers());

/** Stops the clock. The returned function advances it. */
function stopClock(): (seconds: number) => void {
  vi.useFakeTimers({ toFake: ["Date"] });
  return (step) => void vi.setSystemTime(Date.now() + step * 1000);
}

async function opened(door: string, until?: number, from = ""): Promise<Client> {
  const client = await server.connect(
    until === undefined ? token : await sign({ exp: until }),
    `${door}${id}${from}`,
  );
  if (from === "") await client.frame("snapshot");
  return client;
}

async function stream(until: number, path = "/events", init: RequestInit = {}): Promise<SseReader> {
  const response = await server.as(await sign({ exp: until }), `/api/conversations/${id}${path}`, init);
  expect(response.status).toBe(200);
  if (response.body === null) throw new Error("The stream has no body.");
  return new SseReader(response.body);
}

const journal = async () =>
  (await server.call<{ entries: unknown[] }>(token, "GET", `/api/conversations/${id}/journal`, 200)).entries;

/** Waits until the message of the new conversation to its agent is delivered. */
async function announcementDelivered(): Promise<void> {
  const sent = () =>
    runInDurableObject(actorOf(id), (_, { storage }) => [...storage.kv.list({ prefix: "mailbox:out:" })]);
  await expect.poll(sent).toEqual([]);
  vi.setSystemTime(Date.now() + 6_000);
  await runDurableObjectAlarm(actorOf(id));
}

describe("expiry", () => {
  test.each([false, true])(
    "CONN-3, SUB-3 idle connections are closed when their token ends, with one wake-up for the earliest; hibernated: %s",
    async (hibernated) => {
      const wait = stopClock();
      await announcementDelivered();
      const [soon, late] = [seconds() + 60, seconds() + 600];
      const clients = await Promise.all([
        opened("/conversations/", late),
        ...DOORS.map((door) => opened(door, soon)),
      ]);
      const [patient, ...brief] = clients;
      const alarm = () => runInDurableObject(actorOf(id), (_, state) => state.storage.getAlarm());
      expect(await alarm()).toBe((soon + GRACE_S) * 1000);
      const frames = hibernated ? null : await stream(soon);
      await frames?.upTo("snapshot");
      if (hibernated) await evictDurableObject(actorOf(id));
      wait(60 + GRACE_S - 1);
      await runDurableObjectAlarm(actorOf(id));
      expect(clients.map(({ closed }) => closed)).toEqual([null, null, null]);
      wait(1);
      await runDurableObjectAlarm(actorOf(id));
      for (const client of brief) expect(await client.whenClosed()).toEqual({ code: 4401 });
      const last = (await frames?.rest())?.at(-1);
      if (!hibernated) expect(last).toMatchObject({ type: "error", data: { code: "UNAUTHENTICATED" } });
      await patient?.settled();
      // A new life puts its copies. Until their stores answer, they have earlier wake-ups.
      const nextAlarm = async () => {
        const at = await alarm();
        if (at === null || at >= (late + GRACE_S) * 1000) return at;
        vi.setSystemTime(at);
        await runDurableObjectAlarm(actorOf(id));
        return alarm();
      };
      await expect.poll(nextAlarm).toBe((late + GRACE_S) * 1000);
      vi.setSystemTime((late + GRACE_S) * 1000);
      await runDurableObjectAlarm(actorOf(id));
      expect(await patient?.whenClosed()).toEqual({ code: 4401 });
      expect(await runDurableObjectAlarm(actorOf(id))).toBe(false);
    },
  );

  test("CONN-3, WAKE-4 a late alarm closes idle connections after their expiry, whatever other connections open", async () => {
    const wait = stopClock();
    await announcementDelivered();
    const start = seconds();
    const [first, second] = [
      await opened("/conversations/", start + 60),
      await opened("/conversations/", start + 120),
    ];
    wait(60 + GRACE_S);
    await runDurableObjectAlarm(actorOf(id));
    expect(await first.whenClosed()).toEqual({ code: 4401 });
    wait(61);
    const third = await opened("/conversations/", start + 6_000);
    expect(second.closed).toBeNull();
    await runDurableObjectAlarm(actorOf(id));
    expect(await second.whenClosed()).toEqual({ code: 4401 });
    await third.settled();
  });

  test("JWT-3 a token may be good until the year 9999", async () => {
    const client = await opened("/conversations/", 253_402_300_799);
    await client.settled();
    client.close();
  });

  test.each(DOORS)("CONN-3 frames of an expired connection are ignored: %s", async (door) => {
    const wait = stopClock();
    const client = await opened(door, seconds() + 60);
    await client.settled();
    wait(60 + GRACE_S);
    client.send({ type: "turn.start", id: "late", content: "Hello" });
    client.send({ type: "ping" });
    expect(await client.whenClosed()).toEqual({ code: 4401 });
    expect(client.framesOf("pong")).toHaveLength(1);
    token = await sign({ roles: ["author"] });
    expect(await journal()).toHaveLength(1);
  });

  test("CONN-3, SUB-3 an expired connection receives no more frames, not even the rest of its own turn", async () => {
    const wait = stopClock();
    const until = seconds() + 60;
    const persona = "test/plain";
    const agent = await server.call<{ id: string }>(token, "POST", "/api/agents", 201, { persona });
    const body = { agentId: agent.id };
    id = (await server.call<{ id: string }>(token, "POST", "/api/conversations", 201, body)).id;
    const brief = await Promise.all(DOORS.map((door) => opened(door, until)));
    const play = new Play({ replies: [[{ text: "Public." }, { gate: "go" }, { text: "Secret." }]] });
    const turn = await stream(until, "/turns", {
      method: "POST",
      headers: { accept: "text/event-stream" },
      body: JSON.stringify({ content: play.content }),
    });
    const all = await stream(until);
    await Promise.all([turn.upTo("message.delta"), play.reached("go")]);
    wait(60 + GRACE_S);
    token = await sign({ roles: ["author"] });
    const witness = await opened("/conversations/");
    await play.open("go");
    await witness.frame("turn.completed");
    // The user's message is the script, and has every word in it.
    const messageFrames = (frames: Client["frames"]) =>
      frames.filter(({ type }) => /^message\.(delta|completed)$/.test(type));
    for (const client of brief) {
      expect(await client.whenClosed()).toEqual({ code: 4401 });
      expect(JSON.stringify([messageFrames(client.frames), client.others])).not.toContain("Secret");
    }
    for (const frames of [await turn.rest(), await all.rest()]) {
      expect(frames.at(-1)).toMatchObject({ type: "error", data: { code: "UNAUTHENTICATED" } });
      expect(JSON.stringify(messageFrames(frames))).not.toContain("Secret");
    }
    witness.close();
  });

  test("CONN-3 with a new token a client continues at its position", async () => {
    const wait = stopClock();
    const client = await opened("/conversations/", seconds() + 60);
    wait(60 + GRACE_S);
    await runDurableObjectAlarm(actorOf(id));
    await client.whenClosed();
    token = await sign({ roles: ["author"] });
    const again = await opened("/conversations/", seconds() + 60, `?from=${client.position}`);
    again.send({ type: "turn.start", id: "k", content: "Hello" });
    await again.frame("turn.completed");
    expect(again.framesOf("snapshot")).toEqual([]);
  });
});

describe("floods", () => {
  test.each(DOORS)(
    "CONN-4 more frames than the burst: an error, a close with 4429, and later frames are dropped: %s",
    async (door) => {
      const wait = stopClock();
      const [client, other] = await Promise.all([opened(door), opened(door)]);
      for (let n = 0; n < FLOOD.frames.burst - 1; n++) client.send({ type: "ping" });
      await client.frame("pong", () => true, FLOOD.frames.burst - 1);
      wait(1);
      for (let n = 0; n <= PER_SECOND; n++) client.send({ type: "ping" });
      client.send({ type: "ping" });
      client.send({ type: "turn.start", id: "after", content: "Hello" });
      expect(await client.whenClosed()).toEqual({ code: 4429 });
      expect(client.framesOf("pong")).toHaveLength(FLOOD.frames.burst + PER_SECOND);
      expect(client.framesOf("error").map(({ data }) => data)).toMatchObject([
        { code: "RATE_LIMITED", retriable: true },
      ]);
      await other.settled();
      expect(await journal()).toHaveLength(1);
      other.close();
    },
  );

  test("GUARD-2 on the SDK's socket its own frames count as well", async () => {
    stopClock();
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const client = await opened("/agents/conversation/");
    const before = client.others.length;
    for (let n = 0; n <= FLOOD.frames.burst; n++) {
      client.sendText(JSON.stringify({ type: "rpc", id: String(n), method: "sql", args: [] }));
    }
    expect(await client.whenClosed()).toEqual({ code: 4429 });
    expect(client.others).toHaveLength(before + FLOOD.frames.burst);
    quiet.mockRestore();
  });

  test.each(DOORS)(
    "CONN-4 frames that are too long are refused, and repeated long frames close the connection with 4429: %s",
    async (door) => {
      stopClock();
      const client = await opened(door);
      const long = "x".repeat(MAX_FRAME_LENGTH + 1);
      const refused = Math.floor(FLOOD.length.burst / long.length);
      for (let n = 0; n < refused; n++) client.sendText(long);
      await client.frame("error", ({ data }) => data.code === "TOO_LARGE", refused);
      expect(client.closed).toBeNull();
      client.sendText(long);
      expect(await client.whenClosed()).toEqual({ code: 4429 });
    },
  );

  test(`At most ${MAX_READERS} watch a conversation; one more is refused until one has left`, async () => {
    const clients: Client[] = [];
    while (clients.length < MAX_READERS) {
      clients.push(...(await Promise.all(Array.from({ length: 32 }, () => opened("/conversations/")))));
    }
    const refused = await server.connect(token, `/conversations/${id}`);
    expect(await refused.whenClosed()).toEqual({ code: 4429 });
    expect(refused.frames.map(({ type, data }) => [type, data])).toMatchObject([
      ["error", { code: "RATE_LIMITED" }],
    ]);
    const [first] = clients;
    await first?.settled();
    first?.close();
    await first?.whenClosed();
    (await opened("/conversations/")).close();
    for (const client of clients) client.close();
  });

  test(`At most ${MAX_READERS} streams of events are open at once; one more is 429 until one has ended`, async () => {
    const wait = stopClock();
    const until = seconds() + 60;
    const streams: SseReader[] = [];
    while (streams.length < MAX_READERS) {
      streams.push(...(await Promise.all(Array.from({ length: 32 }, () => stream(until)))));
    }
    const one = () => server.as(token, `/api/conversations/${id}/events`);
    const refused = await one();
    expect([refused.status, await refused.json()]).toMatchObject([429, { code: "RATE_LIMITED" }]);
    await streams.pop()?.cancel();
    let next = await one();
    for (; next.status === 429; next = await one()) await next.body?.cancel();
    expect(next.status).toBe(200);
    wait(60 + GRACE_S);
    await runDurableObjectAlarm(actorOf(id));
    const ends = await Promise.all(streams.map(async (open) => (await open.rest()).at(-1)?.type));
    expect(new Set(ends)).toEqual(new Set(["error"]));
    await next.body?.cancel();
  });
});

describe("frames that are meant to break something", () => {
  const deep = (open: string, close: string, depth = 100_000) => open.repeat(depth) + close.repeat(depth);
  const start = (content: string) => `{"type":"turn.start","id":"a","content":${content}}`;

  const bad: [string, string | ArrayBuffer, object][] = [
    ["arrays nested 100 000 deep", start(deep("[", "]")), { code: "INVALID_JSON", ref: "a" }],
    [
      "objects nested 100 000 deep",
      start(`${deep('{"a":', "}").replace("}", "1}")}`),
      { code: "INVALID_JSON", ref: "a" },
    ],
    ["nothing but nesting", deep("[", "]", 1_000_000), { code: "INVALID_JSON" }],
    ["half a character in a key", '{"type":"ping","\\udc00":1}', { code: "INVALID_INPUT" }],
    ["half a character in the type", '{"type":"\\ud800"}', { code: "INVALID_INPUT" }],
    [
      "an id of a megabyte",
      JSON.stringify({ type: "turn.start", id: "x".repeat(1_048_576), content: "x" }),
      { code: "INVALID_SIGNAL" },
    ],
    ["a type of a megabyte", JSON.stringify({ type: "x".repeat(1_048_576) }), { code: "INVALID_SIGNAL" }],
    ["a prototype", '{"__proto__":{"type":"ping"},"constructor":{}}', { code: "INVALID_SIGNAL" }],
    [
      "many keys",
      JSON.stringify(Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n}`, n]))),
      { code: "INVALID_SIGNAL" },
    ],
    ["nothing", "", { code: "INVALID_JSON" }],
    ["bytes", new Uint8Array(100_000).buffer, { code: "INVALID_JSON" }],
    ["bytes beyond all bounds", new Uint8Array(MAX_FRAME_LENGTH + 1).buffer, { code: "TOO_LARGE" }],
  ];

  test.each(
    DOORS.flatMap((door) => bad.map(([what, text, expected]) => [what, door, text, expected] as const)),
  )(
    "CFRAME-2 %s gets an error with the reason, and the actor continues: %s",
    async (_, door, text, expected) => {
      const client = await opened(door);
      client.sendText(text);
      const { data } = await client.frame("error");
      expect(data).toEqual({ ...expected, message: expect.stringMatching(/^.{1,300}$/s), retriable: false });
      await client.settled();
      expect(client.framesOf("error")).toHaveLength(1);
      client.close();
    },
  );

  test("CFRAME-2 deep frames of the SDK's own protocol are harmless, too", async () => {
    const client = await opened("/agents/conversation/");
    const before = client.others.length;
    client.sendText(`{"type":"cf_agent_state","state":${deep("[", "]")}}`);
    client.sendText(`{"type":"rpc","id":"1","method":"sql","args":${deep("[", "]")}}`);
    await client.settled();
    // The SDK receives no malformed frame, because it would parse it.
    expect(client.others.slice(before)).toEqual([]);
    expect(client.framesOf("error").map(({ data }) => data.code)).toEqual(["INVALID_JSON", "INVALID_JSON"]);
  });
});

describe("protocol versions", () => {
  test.each(DOORS)(
    "G5, CFRAME-1 another version and an unknown type are refused by name: %s",
    async (door) => {
      const client = await opened(door);
      client.sendText('{"v":2,"type":"turn.start","id":"a","content":"x"}');
      client.sendText('{"v":"1","type":"ping","id":"b"}');
      client.sendText('{"v":1,"type":"turn.sing","id":"c"}');
      client.sendText('{"v":1,"type":7,"id":"d"}');
      await client.settled();
      expect(client.framesOf("error").map(({ data }) => [data.ref, data.code, data.message])).toEqual([
        ["a", "UNSUPPORTED", expect.stringContaining('"v": 1')],
        ["b", "UNSUPPORTED", expect.stringContaining('"v": 1')],
        [
          "c",
          "INVALID_SIGNAL",
          expect.stringContaining("turn.start, tool.result, tool.claim, approval.resolve, turn.cancel"),
        ],
        [
          "d",
          "INVALID_SIGNAL",
          expect.stringContaining("turn.start, tool.result, tool.claim, approval.resolve, turn.cancel"),
        ],
      ]);
      client.close();
    },
  );

  test("WIRE-3 G5 an exchange of version 1 clients keeps its meaning", async () => {
    const persona = { identity: { systemPrompt: "You are a test." }, tools: { toolIds: ["test/double"] } };
    await server.call(token, "POST", "/api/agents", 201, { id: "guide", persona });
    const body = { agentId: "guide", title: "Recorded" };
    id = (await server.call<{ id: string }>(token, "POST", "/api/conversations", 201, body)).id;
    const client = await opened("/conversations/");
    for (const text of protocolV1.client) client.sendText(text);
    await client.frame("turn.finalized");
    await client.settled();
    const again = await opened("/conversations/", undefined, "?from=1");
    await again.settled();
    const named = namer();
    const exchange = { frames: named(client.frames), replayed: named(again.frames) };
    // Later servers may say more: further fields, and frames of further types, which clients of version 1 pass over.
    const types = new Set<string>(protocolV1.frames.map(({ type }) => type));
    const known = (frames: { type: string }[]) => frames.filter(({ type }) => types.has(type));
    expect(known(exchange.frames)).toMatchObject(protocolV1.frames);
    expect(known(exchange.replayed)).toMatchObject(protocolV1.replayed);
    client.close();
    again.close();
  });

  /** Frames with names instead of ids and times, and the deltas of a message as one. */
  function namer() {
    const names = new Map<string, string>();
    const nameOf = (value: string): string => {
      if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return "<time>";
      const [, kind] = /^(conv|turn|msg|op)_[0-9A-Z]{26}$/.exec(value) ?? [];
      if (kind === undefined) return value;
      const name =
        names.get(value) ??
        `<${kind} ${[...names.values()].filter((known) => known.startsWith(`<${kind}`)).length}>`;
      names.set(value, name);
      return name;
    };
    return (frames: Client["frames"]): { type: string }[] => {
      const joined: Client["frames"] = [];
      for (const frame of frames) {
        const last = joined.at(-1);
        if (
          frame.type === "message.delta" &&
          last?.type === "message.delta" &&
          last.messageId === frame.messageId
        ) {
          joined[joined.length - 1] = {
            ...last,
            data: { ...last.data, text: last.data.text + frame.data.text },
          };
        } else joined.push(frame);
      }
      return JSON.parse(JSON.stringify(joined), (_, value) =>
        typeof value === "string" ? nameOf(value) : value,
      );
    };
  }
});
