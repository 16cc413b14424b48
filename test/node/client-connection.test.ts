/** The live connection over real sockets, and its session under any order of interruptions. */
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import {
  type ConnectOptions,
  type ConversationConnection,
  connectConversation,
  type Frame,
  isStopped,
  isStopping,
  type LiveConversation,
  pendingCalls,
} from "../../src/client/index.ts";
import { httpOrigin, parseHost, resumeUrl } from "../../src/client/reconnect.ts";
import { ConversationSession } from "../../src/client/session.ts";
import { clientFrameSchema } from "../../src/protocol/requests.ts";
import { conversationView } from "./client-script.ts";
import { type ServerSocket, WebSocketServer } from "./websocket-server.ts";

const time = "2026-03-01T10:00:00.000Z";

function snapshot(seq: number): Frame {
  const data = { conversation: conversationView, turns: [], messages: [], partials: [], operations: [] };
  return { v: 1, type: "snapshot", seq, time, data };
}

function recorded(seq: number, clientId: string, content = clientId): Frame {
  const turnId = `turn_${seq}`;
  return {
    v: 1,
    type: "message.user",
    seq,
    turnId,
    messageId: `msg_${seq}`,
    time,
    data: { clientId, content },
  };
}

describe("connectConversation", () => {
  let server: WebSocketServer;
  let connection: ConversationConnection;

  beforeEach(async () => {
    server = await WebSocketServer.listen();
  });

  afterEach(async () => {
    connection.close();
    await server.close();
  });

  function connect(options: Pick<ConnectOptions, "acknowledgeWithin" | "token"> = {}): void {
    connection = connectConversation({ id: "conv_1", host: `http://${server.host}`, ...options });
  }

  /** Returns the first state that satisfies a condition. */
  function state(condition: (state: LiveConversation) => boolean): Promise<LiveConversation> {
    return new Promise((resolve) => {
      const check = () => {
        const current = connection.getSnapshot();
        if (!condition(current)) return;
        unsubscribe();
        resolve(current);
      };
      const unsubscribe = connection.subscribe(check);
      check();
    });
  }

  async function opened(): Promise<ServerSocket> {
    const socket = await server.connection();
    socket.send(JSON.stringify(snapshot(4)));
    await state(({ seq, connection: status }) => seq === 4 && status === "open");
    return socket;
  }

  it("connects to the conversation, first without and then with the place to resume from", async () => {
    connect({ token: "a.b.c" });
    expect(connection.getSnapshot().connection).toBe("connecting");
    const first = await opened();
    expect(first.url.pathname).toBe("/conversations/conv_1");
    expect(first.url.searchParams.has("from")).toBe(false);
    expect(first.url.href).not.toContain("a.b.c");
    expect(first.protocols).toEqual(["dramatis.v1", "bearer.a.b.c"]);
    first.send(JSON.stringify(recorded(7, "other")));
    await state(({ seq }) => seq === 7);
    first.cut();
    await state(({ connection: status }) => status === "reconnecting");
    const second = await server.connection();
    expect(second.url.searchParams.get("from")).toBe("7");
    expect((await state(({ connection: status }) => status === "open")).messages).toHaveLength(1);
  });

  it("ADMIT-4: is back long before a person notices", async () => {
    connect();
    let socket = await opened();
    const gaps: number[] = [];
    for (let loss = 0; loss < 3; loss++) {
      const lostAt = performance.now();
      socket.cut();
      socket = await server.connection();
      gaps.push(performance.now() - lostAt);
    }
    expect(Math.min(...gaps)).toBeLessThan(250);
  });

  it("SEND-1: sends messages from before it opened, and repeats them after a loss, under one id", async () => {
    connect();
    const id = connection.send("Hello");
    const first = await server.connection();
    const sent = JSON.parse(await first.next());
    expect(sent).toEqual({ v: 1, type: "turn.start", id, content: "Hello" });
    first.cut();
    const second = await server.connection();
    expect(JSON.parse(await second.next())).toEqual(sent);
    second.send(JSON.stringify(snapshot(1)));
    second.send(JSON.stringify(recorded(2, id, "Hello")));
    const { pending, messages } = await state(({ seq }) => seq === 2);
    expect(pending).toEqual([]);
    expect(messages).toMatchObject([{ clientId: id }]);
  });

  it("G18 SEND-5: sends a stop over the connection, and again after a loss", async () => {
    connect();
    const first = await opened();
    first.send(
      JSON.stringify({ v: 1, seq: 5, type: "turn.started", turnId: "turn_5", time, data: { agentId: "a" } }),
    );
    await state(({ turns }) => turns.length === 1);
    connection.stop();
    const frame = { v: 1, type: "turn.cancel", turnId: "turn_5" };
    expect(JSON.parse(await first.next())).toEqual(frame);
    first.cut();
    const second = await server.connection();
    expect(JSON.parse(await second.next())).toEqual(frame);
    const error = { code: "CANCELLED", message: "The turn was stopped.", retriable: true };
    second.send(
      JSON.stringify({ v: 1, seq: 6, type: "turn.failed", turnId: "turn_5", time, data: { error } }),
    );
    expect((await state(({ stops }) => stops?.length === 0)).turns).toMatchObject([{ error }]);
  });

  it("SEND-3: replaces a connection that leaves a message unrecorded", async () => {
    connect({ acknowledgeWithin: 50 });
    const first = await opened();
    const id = connection.send("Is anybody there?");
    await first.next();
    const second = await server.connection();
    expect(second.url.searchParams.get("from")).toBe("4");
    expect(JSON.parse(await second.next())).toMatchObject({ id });
  });

  it.each(["online", "visibilitychange"])(
    "ADMIT-6 tries again at once on %s, and only while it is lost",
    async (event) => {
      const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
      vi.stubGlobal("window", page);
      vi.stubGlobal("document", page);
      // A server that accepts connections and never answers, as behind a network that is away.
      const away = createServer();
      away.listen(0, "127.0.0.1");
      await once(away, "listening");
      const arrival = () => once(away, "connection") as Promise<[Socket]>;
      const first = arrival();
      // SAFETY: a server that listens on TCP has an address with a port.
      const { port } = away.address() as AddressInfo;
      connection = connectConversation({ id: "conv_1", host: `http://127.0.0.1:${port}` });
      const [lost] = await first;
      const second = arrival();
      const from = performance.now();
      page.dispatchEvent(new Event(event));
      const [again] = await second;
      expect(performance.now() - from, "without the attempt's own time limit of 4 s").toBeLessThan(2_000);
      connection.close();
      page.dispatchEvent(new Event(event));
      expect(connection.getSnapshot().connection).toBe("closed");
      for (const socket of [lost, again]) socket.destroy();
      away.close();

      connect();
      const socket = await opened();
      page.dispatchEvent(new Event(event));
      socket.send(JSON.stringify(recorded(8, "other")));
      expect(await state(({ seq }) => seq === 8)).toMatchObject({ connection: "open" });
      vi.unstubAllGlobals();
    },
  );

  it("stays closed after a final close code, until a reconnect is requested", async () => {
    connect();
    const first = await opened();
    first.close(4404);
    await state(({ connection: status }) => status === "closed");
    connection.reconnect();
    const second = await server.connection();
    expect(second.url.searchParams.get("from")).toBe("4");
    await state(({ connection: status }) => status === "open");
  });

  it("closes permanently on request, and keeps unrecorded messages", async () => {
    connect();
    const socket = await opened();
    connection.send("Unheard");
    connection.close();
    await socket.closed;
    expect(connection.getSnapshot()).toMatchObject({
      connection: "closed",
      pending: [{ content: "Unheard" }],
    });
  });

  it("passes over messages that are no frames", async () => {
    connect();
    const socket = await opened();
    socket.send("cf_agent_hello");
    socket.send(JSON.stringify({ type: "cf_agent_identity", name: "x" }));
    socket.send(JSON.stringify({ ...recorded(8, "other"), type: "message.sung" }));
    socket.send(JSON.stringify(recorded(9, "other")));
    expect((await state(({ seq }) => seq === 9)).messages).toHaveLength(1);
  });

  it("G5 a frame of another version ends the connection, and the error says why", async () => {
    connect();
    const socket = await opened();
    socket.send(JSON.stringify({ ...recorded(8, "other"), v: 2 }));
    const { error, messages } = await state(({ connection: status }) => status === "closed");
    expect(error).toMatchObject({ code: "UNSUPPORTED", retriable: false });
    expect(messages).toEqual([]);
    await socket.closed;
  });

  it("ADMIT-1, ADMIT-2: after 4401 it resumes at its position with a new token", async () => {
    let tokens = 0;
    connect({ token: async () => `token-${++tokens}` });
    const first = await opened();
    expect(first.protocols).toEqual(["dramatis.v1", "bearer.token-1"]);
    first.close(4401);
    await state(({ connection: status }) => status === "reconnecting");
    const second = await server.connection();
    expect(second.protocols).toEqual(["dramatis.v1", "bearer.token-2"]);
    expect(second.url.searchParams.get("from")).toBe("4");
    second.send(JSON.stringify(recorded(5, "other")));
    await state(({ seq }) => seq === 5);
    // The connection was accepted, so the next refusal counts as the first.
    second.close(4401);
    expect((await server.connection()).protocols).toEqual(["dramatis.v1", "bearer.token-3"]);
  });

  it("ADMIT-2: is unauthorized after two refusals in a row, or one refusal of a fixed token, and stops reconnecting", async () => {
    let tokens = 0;
    connect({ token: () => `token-${++tokens}` });
    (await opened()).close(4401);
    (await server.connection()).close(4401);
    await state(({ connection: status }) => status === "unauthorized");
    connection.close();
    connect({ token: "the-same" });
    (await opened()).close(4401);
    await state(({ connection: status }) => status === "unauthorized");
    expect(tokens).toBe(2);
    connection.reconnect();
    await server.connection();
  });

  it("ADMIT-3: waits after a close for flooding, then resumes at its position", async () => {
    connect();
    const first = await opened();
    const before = Date.now();
    first.close(4429);
    await state(({ connection: status }) => status === "reconnecting");
    expect((await server.connection()).url.searchParams.get("from")).toBe("4");
    expect(Date.now() - before).toBeGreaterThanOrEqual(4_900);
  });

  it("ADMIT-5: is closed at once while it waits for its next attempt, and leaves no timer", async () => {
    connect();
    const first = await opened();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    first.close(4429);
    await state(({ connection: status }) => status === "reconnecting");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(vi.getTimerCount()).toBe(1);
    connection.close();
    expect(vi.getTimerCount()).toBe(0);
    expect(connection.getSnapshot().connection).toBe("closed");
  });
});

describe("session", () => {
  it("sends the message of a turn that failed again, with its options, in a new turn", () => {
    const session = new ConversationSession();
    const sent: { type: string; id?: string; content?: unknown; output?: unknown }[] = [];
    const transport = { send: (data: string) => sent.push(JSON.parse(data)), reconnect() {}, close() {} };
    session.opened(transport);
    const output = { name: "author", schema: { type: "object" } };
    const clientId = session.send("Who?", { output });
    const base = { v: 1, time: new Date(0).toISOString(), turnId: "turn_1" };
    const receive = (frame: object) => session.received(JSON.stringify({ ...base, ...frame }));
    receive({ seq: 1, type: "turn.started", data: { clientId, agentId: "guide" } });
    receive({ seq: 2, type: "message.user", messageId: "msg_1", data: { clientId, content: "Who?" } });
    expect(session.retryTurn("turn_1"), "it is not over").toBeNull();
    const error = { code: "MODEL_FAILED", message: "No.", retriable: true };
    const spent = { tokens: 12, usd: 0, toolCalls: 0, modelCalls: 1 };
    receive({ seq: 3, type: "turn.failed", data: { error, spent } });
    expect(session.getSnapshot().turns[0]?.spent).toEqual(spent);
    expect(session.retryTurn("turn_2"), "it is not known").toBeNull();
    const again = session.retryTurn("turn_1");
    expect(again).not.toBe(clientId);
    expect(sent.slice(1)).toEqual([{ v: 1, type: "turn.start", id: again, content: "Who?", output }]);
    session.retryTurn("turn_1", { id: "mine", replyToMessageId: "msg_1" });
    expect(sent.at(-1)).toMatchObject({ id: "mine", replyToMessageId: "msg_1", output });
  });

  it("SEND-1: a rejected message can be sent again, under its id unless that means another message, or discarded", () => {
    const session = new ConversationSession();
    const refuse = (ref: string, code = "RATE_LIMITED") =>
      session.received(JSON.stringify({ v: 1, type: "error", time, data: { code, message: "Wait.", ref } }));
    const sent: { id: string }[] = [];
    session.opened({
      send: (data) => void sent.push(JSON.parse(data)),
      reconnect: () => undefined,
      close: () => undefined,
    });
    const output = { name: "answer", schema: { type: "object" } };
    const first = session.send("Hello", { replyToMessageId: "msg_1", output });
    expect(session.retry(first)).toBeNull();
    refuse(first);
    const shown: number[] = [];
    const leave = session.subscribe(() => void shown.push(session.getSnapshot().pending.length));
    const second = session.retry(first);
    leave();
    expect(shown).toEqual([1]);
    expect(sent).toMatchObject([first, second].map((id) => ({ id, output })));
    expect(second).toBe(first);
    expect(session.getSnapshot().pending).toMatchObject([
      { clientId: second, content: "Hello", replyToMessageId: "msg_1", output, status: "sending" },
    ]);
    refuse(second ?? "", "IDEMPOTENCY_CONFLICT");
    const third = session.retry(second ?? "");
    expect(third).not.toBe(second);
    expect(sent.map(({ id }) => id)).toEqual([first, second, third]);
    refuse(third ?? "");
    session.discard(third ?? "");
    expect(session.getSnapshot().pending).toEqual([]);
    session.closed({ final: true });
  });

  it("SEND-1 CLIENT-6: a result is sent again after a loss, until its call is over or it is refused", () => {
    const session = new ConversationSession();
    const receive = (frame: object) => session.received(JSON.stringify({ v: 1, time, ...frame }));
    const ids = { turnId: "turn_1", operationId: "op_1" };
    let sent: object[] = [];
    let reconnects = 0;
    const open = () => {
      sent = [];
      session.opened({
        send: (data) => void sent.push(JSON.parse(data)),
        reconnect: () => (reconnects += 1),
        close: () => undefined,
      });
    };
    open();
    session.received(JSON.stringify(snapshot(1)));
    const requested = { name: "ask", input: { n: 1 }, async: false, client: true };
    receive({ seq: 2, type: "turn.started", turnId: "turn_1", data: { agentId: "a" } });
    receive({ seq: 3, type: "tool.requested", ...ids, data: requested });
    receive({ seq: 4, type: "turn.waiting", turnId: "turn_1", data: { reason: "client-tools" } });
    expect(pendingCalls(session.getSnapshot())).toMatchObject([
      { operationId: "op_1", name: "ask", input: { n: 1 } },
    ]);
    const frame = { v: 1, type: "tool.result", operationId: "op_1", result: "yes" };
    session.submitToolResult("op_1", { result: "yes" });
    expect(pendingCalls(session.getSnapshot()), "it is not to be run twice").toEqual([]);
    expect(sent).toEqual([frame]);
    session.closed({ final: false });
    open();
    expect(sent, "again").toEqual([frame]);
    const refusal = { code: "TOO_LARGE", message: "Less.", ref: "op_1" };
    receive({ type: "error", data: refusal });
    expect(session.getSnapshot()).toMatchObject({
      error: null,
      results: [{ operationId: "op_1", status: "rejected", refusal: { code: "TOO_LARGE" } }],
    });
    session.closed({ final: false });
    open();
    expect(sent, "the refused result is not sent").toEqual([]);
    session.submitToolResult("op_1", { error: { message: "Too long." } });
    expect(sent).toEqual([
      { v: 1, type: "tool.result", operationId: "op_1", error: { message: "Too long." } },
    ]);
    receive({ seq: 5, type: "tool.failed", ...ids, data: { error: { code: "EXECUTION_FAILED" } } });
    expect(session.getSnapshot().results).toEqual([]);
    session.closed({ final: false });
    open();
    expect([sent, reconnects]).toEqual([[], 0]);
    session.closed({ final: true });
  });

  /** A session with one active turn, on a transport that records sent frames. */
  function answering() {
    const session = new ConversationSession();
    const sent: object[] = [];
    const counts = { reconnects: 0 };
    const receive = (frame: object) => session.received(JSON.stringify({ v: 1, time, ...frame }));
    const open = () => {
      sent.splice(0);
      session.opened({
        send: (data) => void sent.push(clientFrameSchema.parse(JSON.parse(data))),
        reconnect: () => (counts.reconnects += 1),
        close: () => undefined,
      });
    };
    open();
    receive(snapshot(1));
    for (const n of [1, 2]) {
      receive({ seq: 1 + n, type: "turn.started", turnId: `turn_${n}`, data: { agentId: "a" } });
    }
    const failed = (seq: number, n: number) =>
      receive({ seq, type: "turn.failed", turnId: `turn_${n}`, data: { error: { code: "CANCELLED" } } });
    return { session, sent, counts, receive, open, failed };
  }

  it("G18 SEND-5 CLIENT-7: a stop is sent once the connection is back, before messages, until its turn is over", () => {
    const { session, sent, receive, open, failed } = answering();
    session.closed({ final: false });
    session.send("And then?", { id: "next" });
    session.cancelTurn("turn_1", { reason: "Enough." });
    session.cancelTurn("turn_1");
    expect(isStopping(session.getSnapshot(), "turn_1")).toBe(true);
    expect(isStopping(session.getSnapshot()), "the other turn continues").toBe(false);
    const stop = { v: 1, type: "turn.cancel", turnId: "turn_1" };
    for (let times = 0; times < 2; times++) {
      open();
      expect(sent).toEqual([stop, { v: 1, type: "turn.start", id: "next", content: "And then?" }]);
      session.closed({ final: false });
    }
    open();
    failed(4, 1);
    expect(session.getSnapshot().stops).toEqual([]);
    receive(recorded(5, "next"));
    open();
    expect(sent).toEqual([]);
    session.cancelTurn("turn_1");
    expect([sent, session.getSnapshot().stops], "it is over").toEqual([[], []]);

    session.stop();
    expect(sent).toEqual(["turn_5", "turn_2"].map((turnId) => ({ v: 1, type: "turn.cancel", turnId })));
    expect(isStopping(session.getSnapshot())).toBe(true);
    const conflict = { code: "CONFLICT", message: "It is over.", ref: "turn_2" };
    receive({ type: "error", data: conflict });
    expect(session.getSnapshot()).toMatchObject({ error: null, stops: [{ turnId: "turn_5" }] });
    failed(6, 5);
    session.cancelTurn("turn_9");
    receive({ type: "error", data: { code: "NOT_FOUND", message: "None.", ref: "turn_9" } });
    expect(session.getSnapshot()).toMatchObject({ error: { code: "NOT_FOUND" }, stops: [] });
    session.closed({ final: true });
  });

  it("G18 SEND-5 CLIENT-7: of a stop and a resume of the conversation the newer request is sent, until it takes effect", () => {
    const { session, sent, receive, open, failed } = answering();
    session.closed({ final: false });
    session.resume();
    expect(session.getSnapshot().stops, "it is not stopped").toEqual([]);
    session.cancel({ reason: "Lunch." });
    expect(isStopping(session.getSnapshot())).toBe(true);
    open();
    expect(sent).toEqual([{ v: 1, type: "conversation.cancel", reason: "Lunch." }]);
    failed(4, 1);
    failed(5, 2);
    receive({ seq: 6, type: "conversation.updated", data: { gate: "cancelled" } });
    expect([session.getSnapshot().stops, isStopped(session.getSnapshot())]).toEqual([[], true]);

    session.closed({ final: false });
    session.resume();
    session.cancel();
    session.resume();
    open();
    expect(sent).toEqual([{ v: 1, type: "conversation.resume" }]);
    receive({ type: "error", data: { code: "NOT_CANCELLED", message: "It is not stopped." } });
    expect(session.getSnapshot()).toMatchObject({ error: null, stops: [] });
    session.resume();
    const refused = { code: "RATE_LIMITED", message: "Wait." };
    receive({ type: "error", data: { ...refused, ref: "conversation.resume" } });
    expect(session.getSnapshot(), "it is not sent again").toMatchObject({ error: refused, stops: [] });
    session.closed({ final: true });
  });

  it("G18 SEND-3 SEND-5: a snapshot settles the stops of turns that are over, and a stop that stays unconfirmed replaces the connection", async () => {
    const session = new ConversationSession({ acknowledgeWithin: 20 });
    const replaced = new Promise<void>((reconnect) => {
      session.opened({ send: () => undefined, reconnect, close: () => undefined });
    });
    session.cancelTurn("turn_7");
    expect(session.getSnapshot().stops).toHaveLength(1);
    session.received(JSON.stringify(snapshot(3)));
    expect(session.getSnapshot().stops).toEqual([]);
    session.received(
      JSON.stringify({ v: 1, seq: 4, type: "turn.started", turnId: "turn_8", time, data: { agentId: "a" } }),
    );
    session.cancelTurn("turn_8");
    await replaced;
    session.closed({ final: true });
  });

  it("SEND-4: a mark is acknowledged once the frames before it are applied", () => {
    const session = new ConversationSession();
    const sent: object[] = [];
    const seqs: (number | null)[] = [];
    session.opened({
      send: (data) => {
        sent.push(JSON.parse(data));
        seqs.push(session.getSnapshot().seq);
      },
      reconnect: () => undefined,
      close: () => undefined,
    });
    const receive = (frame: object) => session.received(JSON.stringify({ v: 1, time, ...frame }));
    receive(snapshot(1));
    for (const n of [1, 2]) {
      receive(recorded(10 * n, `other ${n}`));
      expect(sent).toHaveLength(n - 1);
      receive({ type: "mark", data: { mark: `m${n}` } });
    }
    expect(sent).toEqual([1, 2].map((n) => ({ v: 1, type: "ack", mark: `m${n}` })));
    for (const frame of sent) expect(clientFrameSchema.parse(frame)).toEqual(frame);
    expect(seqs).toEqual([10, 20]);
    session.closed({ final: true });
  });

  it("refuses a result without a pending call with an error that names the fix", () => {
    const session = new ConversationSession();
    session.submitToolResult("op_early", { result: 1 });
    expect(session.getSnapshot().results, "calls are unknown before the snapshot").toHaveLength(1);
    session.received(JSON.stringify(snapshot(1)));
    for (const [id, code] of [
      [undefined, "INVALID_INPUT"],
      ["op_9", "NOT_FOUND"],
    ] as const) {
      // @ts-expect-error: as a program without types calls it.
      const submit = () => session.submitToolResult(id, { result: 1 });
      expect(submit).toThrow(
        expect.objectContaining({ name: "DramatisClientError", code, retriable: false }),
      );
      expect(submit).toThrow("`operationId` of an item of `pendingCalls`");
    }
    expect(session.getSnapshot().results).toHaveLength(1);
  });

  it("sends with a message the tools that the client runs, also when it is sent again", () => {
    const session = new ConversationSession();
    const tools = [{ name: "ask", description: "Asks.", inputSchema: { type: "object" } }];
    const sent: object[] = [];
    const transport = {
      send: (data: string) => void sent.push(JSON.parse(data)),
      reconnect: () => undefined,
      close: () => undefined,
    };
    const id = session.send("Hello", { tools, toolChoice: "required" });
    session.opened(transport);
    session.opened(transport);
    const frame = { v: 1, type: "turn.start", id, content: "Hello", tools, toolChoice: "required" };
    expect(sent).toEqual([frame, frame]);
    expect(clientFrameSchema.parse(sent[0])).toEqual(frame);
    session.closed({ final: true });
  });

  it("calls its listeners for changes only, until they leave", () => {
    const session = new ConversationSession();
    let calls = 0;
    const leave = session.subscribe(() => {
      calls += 1;
    });
    session.received(JSON.stringify(snapshot(1)));
    session.received("nonsense");
    session.received(JSON.stringify(recorded(1, "old")));
    expect(calls).toBe(1);
    leave();
    session.received(JSON.stringify(recorded(2, "new")));
    expect(calls).toBe(1);
  });

  type Event = "say" | "cut" | "connect" | "deliver" | "answer";

  it("SEND-1, SEND-2: whatever is lost, each message is recorded once and the transcript is the server's", () => {
    const events = fc.array(fc.constantFrom<Event>("say", "cut", "connect", "deliver", "answer"), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(events, (script) => {
        const session = new ConversationSession();
        const journal: Frame[] = [];
        let toServer: string[] = [];
        let toClient: Frame[] = [];
        let connected = false;
        const said: string[] = [];

        const act = (event: Event): void => {
          if (event === "say") said.push(session.send(`message ${said.length}`));
          if (event === "cut" && connected) {
            connected = false;
            toServer = [];
            toClient = [];
            session.closed({ final: false });
          }
          if (event === "connect" && !connected) {
            connected = true;
            const from = session.resumeFrom();
            toClient = from === null ? [snapshotOf(journal)] : journal.filter(({ seq = 0 }) => seq > from);
            session.opened({
              send: (data) => void toServer.push(data),
              reconnect: () => undefined,
              close: () => undefined,
            });
          }
          if (event === "deliver") {
            const [text] = toServer.splice(0, 1);
            if (text === undefined) return;
            const { id, content } = JSON.parse(text);
            if (journal.some((frame) => frame.type === "message.user" && frame.data.clientId === id)) return;
            const frame = recorded(journal.length + 1, id, content);
            journal.push(frame);
            toClient.push(frame);
          }
          if (event === "answer") {
            for (const frame of toClient.splice(0, 1)) session.received(JSON.stringify(frame));
          }
        };

        script.forEach(act);
        act("cut");
        act("connect");
        while (toServer.length > 0) act("deliver");
        while (toClient.length > 0) act("answer");
        const { messages, pending } = session.getSnapshot();
        session.closed({ final: true });
        expect(pending).toEqual([]);
        expect(messages.map(({ clientId }) => clientId)).toEqual(said);
        expect(journal).toHaveLength(said.length);
      }),
    );
  });

  function snapshotOf(journal: readonly Frame[]): Frame {
    const messages = journal.flatMap((frame) =>
      frame.type === "message.user"
        ? [
            {
              id: frame.messageId ?? "",
              turnId: frame.turnId ?? "",
              role: "user" as const,
              createdAt: frame.time,
              content: "",
              ...frame.data,
            },
          ]
        : [],
    );
    return {
      v: 1,
      type: "snapshot",
      seq: journal.length,
      time,
      data: { conversation: conversationView, turns: [], messages, partials: [], operations: [] },
    };
  }
});

describe("update", () => {
  it("changes the conversation over HTTP at the address of the socket, with a new token", async () => {
    const requests: string[] = [];
    const server = createHttpServer(({ method, url, headers }, response) => {
      requests.push(`${method} ${url} ${headers.authorization}`);
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ...conversationView, turns: "queued" }));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    // SAFETY: a server that listens on TCP has an address with a port.
    const { port } = server.address() as AddressInfo;
    let issued = 0;
    const token = () => `token-${++issued}`;
    const connection = connectConversation({ id: "conv_1", host: `http://127.0.0.1:${port}`, token });
    expect(await connection.update({ turns: "queued" })).toMatchObject({ turns: "queued" });
    expect(requests).toEqual([expect.stringMatching(/^PATCH \/api\/conversations\/conv_1 Bearer token-\d$/)]);
    connection.close();
    server.closeAllConnections();
    server.close();
  });
});

describe("addresses", () => {
  it.each([
    ["https://example.com/", { host: "example.com", protocol: "wss" }],
    ["http://127.0.0.1:8787", { host: "127.0.0.1:8787", protocol: "ws" }],
    ["ws://[::1]:8787", { host: "[::1]:8787", protocol: "ws" }],
    ["example.com", { host: "example.com" }],
  ])("reads %s", (host, expected) => {
    expect(parseHost(host)).toEqual(expected);
  });

  it("finds the HTTP API beside a socket", () => {
    expect(httpOrigin({ roomUrl: "ws://127.0.0.1:8787/conversations/c" })).toBe("http://127.0.0.1:8787");
    expect(httpOrigin({ roomUrl: "wss://example.com/agents/conversation/c" })).toBe("https://example.com");
  });

  it("puts the place to resume from into the query, once", () => {
    expect(resumeUrl("ws://h/c?from=1&x=y", 7)).toBe("ws://h/c?from=7&x=y&acks=1");
    expect(resumeUrl("ws://h/c?x=y", null)).toBe("ws://h/c?x=y&acks=1");
  });
});
