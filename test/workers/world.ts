/** The test operations on the application on workerd, all through its real endpoints. */
import { abortAllDurableObjects, evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { EventSourceParserStream } from "eventsource-parser/stream";
import { expect, onTestFinished, vi } from "vitest";
import { LATE_RESULT_MS } from "../../src/agents/conversation/core/conversation-limits.ts";
import { applyFrame } from "../../src/client/reducer.ts";
import { initialState, type LiveConversation } from "../../src/client/state.ts";
import type {
  ConversationView,
  JournalEntryView,
  MessageView,
  TurnView,
} from "../../src/protocol/conversation-schemas.ts";
import type { Persona } from "../../src/protocol/definitions.ts";
import { type Frame, type FrameType, parseFrame } from "../../src/protocol/frames.ts";
import type { ClientFrame, StartTurn } from "../../src/protocol/requests.ts";
import type { Content } from "../../src/shared/content.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { Script } from "../support/provider-script.ts";
import { Play } from "./provider.ts";

export const ADA: Principal = { subject: "ada", tenant: "test", roles: ["admin"] };

/** A request to the Worker's front door. */
export function request(path: string, init: RequestInit = {}, principal = ADA): Promise<Response> {
  const headers = new Headers(init.headers);
  headers.set("x-test-principal", JSON.stringify(principal));
  return exports.default.fetch(new Request(`http://dramatis.test${path}`, { ...init, headers }));
}

/** A JSON body; fails the test unless the status is the expected one. */
async function call<Body>(method: string, path: string, status: number, body?: unknown): Promise<Body> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await request(path, init);
  const text = await response.text();
  expect(response.status, `${method} ${path}: ${text}`).toBe(status);
  // SAFETY: what the API answers, as its own types say; tests assert the rest.
  return JSON.parse(text) as Body;
}

/** The part of a problem document that tests read. */
interface Problem {
  code?: string;
}

/** Creates an agent; returns its id. */
export async function createAgent(persona: string | Persona): Promise<string> {
  const { id } = await call<{ id: string }>("POST", "/api/agents", 201, { persona });
  return id;
}

export async function createConversation(agentId: string): Promise<TestConversation> {
  const { id } = await call<{ id: string }>("POST", "/api/conversations", 201, { agentId });
  const conversation = new TestConversation(id);
  unchecked.push(conversation);
  return conversation;
}

/** Conversations that `checkInvariants` has still to look at. */
const unchecked: TestConversation[] = [];

/** Excludes a conversation from `checkInvariants`, because its reads would wake it. */
export function skipInvariants(conversation: TestConversation): void {
  unchecked.splice(unchecked.indexOf(conversation), 1);
}

/** Invariants of every conversation that was created since the last check (A29, TURN-1, JOURNAL-1, JOURNALTURN-1, WIRE-1). */
export async function checkInvariants(): Promise<void> {
  for (const conversation of unchecked.splice(0)) {
    const journal = await conversation.journal();
    expect(journal.map(({ seq }) => seq)).toEqual(journal.map((_, index) => index + 1));
    const messages = await conversation.messages();
    for (const turnId of new Set(journal.flatMap((entry) => entry.turnId ?? []))) {
      const roles = messages.filter((message) => message.turnId === turnId).map(({ role }) => role);
      const { caller } = await call<TurnView>("GET", `${conversation.path}/turns/${turnId}`, 200);
      // The message that starts a turn of an agent's is an agent's.
      const first = caller.type === "agent" ? [] : ["user"];
      expect(roles, "A29: a user's turn has one user message, then agent messages").toEqual([
        ...first,
        ...roles.slice(first.length).fill("agent"),
      ]);
      const ends = journal.filter(
        (entry) => entry.turnId === turnId && /^turn\.(completed|failed)$/.test(entry.type),
      );
      expect(ends.length, "a turn ends at most once").toBeLessThanOrEqual(1);
      expect(await conversation.journalOf(turnId), "JOURNALTURN-1").toEqual(
        journal.filter((entry) => entry.turnId === turnId),
      );
    }
    for (const { frames, misplaced } of conversation.clients) {
      const seqs = seqsOf(frames);
      expect(seqs, "WIRE-1: numbers ascend strictly").toEqual([...new Set(seqs)].sort((a, b) => a - b));
      expect(misplaced, "DELTA-1: a delta continues at the end of the previous delta").toEqual([]);
    }
  }
}

interface ConnectOptions {
  /** Continue after this journal entry. */
  from?: number;
  /** The lost connection that this connection continues. The view starts with its last view. */
  before?: Client;
  endpoint?: "conversations" | "agents/conversation";
  query?: string;
  principal?: Principal;
  /** Promises acknowledgements, and sends them unless it is `withheld`. */
  acks?: boolean | "withheld";
}

/** One conversation, from outside. */
export class TestConversation {
  readonly path: string;
  readonly clients: Client[] = [];

  constructor(readonly id: string) {
    this.path = `/api/conversations/${id}`;
  }

  get stub(): DurableObjectStub {
    return exports.Conversation.getByName(`${ADA.tenant}:${this.id}`);
  }

  /** Sends a message; its turn is accepted when this resolves. */
  async say(content: Content, more: Omit<StartTurn, "content"> = {}) {
    return call<{ turnId: string; messageId: string }>("POST", `${this.path}/turns`, 202, {
      content,
      ...more,
    });
  }

  /** Starts a turn that the provider answers by a script. */
  async play(
    script: Omit<Script, "key"> | ((key: string) => Omit<Script, "key">),
    more: Omit<StartTurn, "content"> = {},
  ) {
    const play = new Play(script);
    const { turnId } = await this.say(play.content, more);
    return { play, turnId };
  }

  /** The answer of `POST …/turns` to a refused body. */
  async refused(body: object): Promise<{ status: number; code: string }> {
    const response = await request(`${this.path}/turns`, { method: "POST", body: JSON.stringify(body) });
    const { code } = await response.json<{ code: string }>();
    return { status: response.status, code };
  }

  /** Stops a turn; the status and the body of the answer. */
  stop(turnId: string, body?: object, principal = ADA): Promise<[status: number, body: TurnView & Problem]> {
    return this.#post(`/turns/${turnId}/cancel`, body, principal);
  }

  /** Stops or resumes the conversation; the status and the body of the answer. */
  gate(
    what: "cancel" | "resume",
    body?: object,
    principal = ADA,
  ): Promise<[status: number, body: ConversationView & Problem]> {
    return this.#post(`/${what}`, body, principal);
  }

  async #post<Body>(path: string, body: object | undefined, principal: Principal): Promise<[number, Body]> {
    const init = { method: "POST", ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await request(`${this.path}${path}`, init, principal);
    // SAFETY: what the API answers, as its own types say; tests assert the rest.
    return [response.status, (await response.json()) as Body];
  }

  view(): Promise<ConversationView> {
    return call("GET", this.path, 200);
  }

  /** Gives the result of a tool that the client runs; the status and the body of the answer. */
  async result(operationId: string, outcome: object): Promise<[status: number, body: object]> {
    const path = `${this.path}/operations/${operationId}/result`;
    const response = await request(path, { method: "POST", body: JSON.stringify(outcome) });
    return [response.status, await response.json<object>()];
  }

  turn(turnId: string): Promise<TurnView> {
    return call("GET", `${this.path}/turns/${turnId}`, 200);
  }

  messages(): Promise<MessageView[]> {
    return this.#all<MessageView>("messages", "messages");
  }

  journal(): Promise<JournalEntryView[]> {
    return this.#all<JournalEntryView>("journal", "entries");
  }

  journalOf(turnId: string): Promise<JournalEntryView[]> {
    return this.#all<JournalEntryView>("journal", "entries", `&turn=${turnId}`);
  }

  /** All pages of a list. */
  async #all<Item>(resource: string, member: string, filter = ""): Promise<Item[]> {
    const items: Item[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const path = `${this.path}/${resource}?limit=200${filter}${query}`;
      const { nextCursor, ...page } = await call<{ nextCursor?: string; [member: string]: unknown }>(
        "GET",
        path,
        200,
      );
      // SAFETY: the API names the member after the resource.
      items.push(...(page[member] as Item[]));
      cursor = nextCursor;
    }
    return items;
  }

  async connect({
    before,
    from = before?.position,
    endpoint = "conversations",
    query = "",
    principal = ADA,
    acks = false,
  }: ConnectOptions = {}): Promise<Client> {
    const promise = acks ? `${from === undefined ? "?" : "&"}acks=1` : "";
    const position = from === undefined ? query + promise : `?from=${from}${promise}`;
    const headers = { upgrade: "websocket" };
    const response = await request(`/${endpoint}/${this.id}${position}`, { headers }, principal);
    const socket = response.webSocket;
    if (socket === null) throw new Error(`No WebSocket: ${response.status} ${await response.text()}`);
    const client = new Client(socket, before, acks === true);
    this.clients.push(client);
    return client;
  }

  /** The frames of a stream of server-sent events, one by one. */
  async events(path: string, init: RequestInit = {}): Promise<SseReader> {
    const headers = { accept: "text/event-stream", ...init.headers };
    const response = await request(`${this.path}${path}`, { ...init, headers });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    if (response.body === null) throw new Error("The stream has no body.");
    return new SseReader(response.body);
  }

  /** Takes the actor out of memory as the platform does with an idle one; its sockets hibernate. */
  evict(): Promise<void> {
    return evictDurableObject(this.stub);
  }

  /** Fires the actor's alarm now; whether there was one. */
  wake(): Promise<boolean> {
    return runDurableObjectAlarm(this.stub);
  }

  /** Lets the time pass in which the actor waits for results of runs that outlived it. */
  async passLateResultTime(): Promise<void> {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + LATE_RESULT_MS });
    onTestFinished(() => void vi.useRealTimers());
    expect(await this.wake(), "a wake-up is armed").toBe(true);
  }

  /** Awaits the turn's end on a separate connection. */
  async ended(turnId: string): Promise<TurnView> {
    const client = await this.connect({ acks: true });
    const isOver = ({ turns }: LiveConversation) =>
      turns.some(({ id, status }) => id === turnId && status !== "active");
    await client.until(isOver);
    client.close();
    return this.turn(turnId);
  }
}

/** Kills every actor, as a crash does; their sockets are lost. */
export async function crash(): Promise<void> {
  await abortAllDurableObjects();
}

export type FrameOf<Type extends FrameType> = Extract<Frame, { type: Type }>;

/** A WebSocket client: the real reducer, and every received message. */
export class Client {
  readonly frames: Frame[] = [];
  /** The marks of the server, which are not among the frames. */
  readonly marks: string[] = [];
  /** Messages that are no frames of ours: the SDK's own. */
  readonly others: unknown[] = [];
  state: LiveConversation = initialState;
  closed: { code: number } | null = null;
  /** Deltas that do not continue the current text. */
  readonly misplaced: Frame[] = [];
  readonly #waiting = new Set<() => void>();

  constructor(
    private readonly socket: WebSocket,
    before?: Client,
    private readonly acknowledges = false,
  ) {
    if (before !== undefined) this.state = before.state;
    socket.addEventListener("message", ({ data }) => this.#take(data));
    socket.addEventListener("close", ({ code }) => {
      this.closed = { code };
      this.#notify();
    });
    socket.accept();
  }

  /** The number of the last durable frame: a later connection resumes there. */
  get position(): number {
    if (this.state.seq === null) throw new Error("The client has seen no durable frame.");
    return this.state.seq;
  }

  send(frame: ClientFrame): void {
    this.sendText(JSON.stringify(frame));
  }

  sendText(text: string | ArrayBuffer): void {
    this.socket.send(text);
  }

  close(): void {
    this.socket.close(1000);
  }

  /** Resolves once the client's view fulfils the condition. */
  until(condition: (state: LiveConversation) => boolean): Promise<void> {
    return this.#when(() => (condition(this.state) ? true : undefined)).then(() => undefined);
  }

  /** The `count`th frame of a type that matches, now or later. */
  frame<Type extends FrameType>(
    type: Type,
    matches: (frame: FrameOf<Type>) => boolean = () => true,
    count = 1,
  ): Promise<FrameOf<Type>> {
    return this.#when(() => this.framesOf(type).filter(matches)[count - 1]);
  }

  framesOf<Type extends FrameType>(type: Type): FrameOf<Type>[] {
    // SAFETY: the filter leaves frames of this type only.
    return this.frames.filter((frame) => frame.type === type) as FrameOf<Type>[];
  }

  whenClosed(): Promise<{ code: number }> {
    return this.#when(() => this.closed ?? undefined);
  }

  /** Resolves once a message of the SDK's own protocol has arrived. */
  other(matches: (message: unknown) => boolean): Promise<unknown> {
    return this.#when(() => this.others.find(matches));
  }

  /** A ping and its answer: everything sent to this client before has arrived. */
  async settled(): Promise<void> {
    const before = this.framesOf("pong").length;
    this.send({ type: "ping" });
    await this.frame("pong", () => true, before + 1);
  }

  #take(data: unknown): void {
    const frame = parseFrame(data);
    if (frame === null) {
      this.others.push(typeof data === "string" ? JSON.parse(data) : data);
    } else {
      if (frame.type === "mark") {
        this.marks.push(frame.data.mark);
        if (this.acknowledges) this.send({ type: "ack", mark: frame.data.mark });
        this.#notify();
        return;
      }
      this.frames.push(frame);
      if (frame.type === "message.delta" && frame.data.offset > 0) {
        if (frame.data.offset !== partialText(this.state, frame.messageId)?.length)
          this.misplaced.push(frame);
      }
      this.state = applyFrame(this.state, frame);
    }
    this.#notify();
  }

  #when<Value>(look: () => Value | undefined): Promise<Value> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const value = look();
        if (value !== undefined) resolve(value);
        else if (this.closed === null) return;
        else reject(new Error(`The connection closed: ${this.closed.code}`));
        this.#waiting.delete(check);
      };
      this.#waiting.add(check);
      check();
    });
  }

  #notify(): void {
    for (const check of this.#waiting) check();
  }
}

/** A stream of server-sent events, frame by frame. */
export class SseReader {
  readonly ids: (string | undefined)[] = [];
  readonly frames: Frame[] = [];
  readonly #reader: ReadableStreamDefaultReader<{
    id?: string | undefined;
    event?: string | undefined;
    data: string;
  }>;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body
      // SAFETY: the platform takes buffer sources of all kinds here; bytes are one.
      .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
      .pipeThrough(new EventSourceParserStream())
      .getReader();
  }

  /** The next frame; `null` at the end. */
  async next(): Promise<Frame | null> {
    const { done, value } = await this.#reader.read();
    if (done) return null;
    expect(value.event).toBeUndefined();
    const frame = parseFrame(value.data);
    if (frame === null) throw new Error(`Not a frame: ${value.data}`);
    this.ids.push(value.id);
    this.frames.push(frame);
    return frame;
  }

  /** Reads up to the first frame of a type. */
  async upTo<Type extends FrameType>(type: Type): Promise<FrameOf<Type>> {
    for (let frame = await this.next(); frame !== null; frame = await this.next()) {
      // SAFETY: just compared.
      if (frame.type === type) return frame as FrameOf<Type>;
    }
    throw new Error(`The stream ended without ${type}.`);
  }

  async rest(): Promise<Frame[]> {
    while ((await this.next()) !== null);
    return this.frames;
  }

  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}

/** The text so far of a message in progress, by default the first; `undefined` if absent. */
export function partialText({ turns }: LiveConversation, messageId?: string): string | undefined {
  for (const item of turns.flatMap(({ items }) => items)) {
    if (item.type === "partial" && (messageId ?? item.id) === item.id) return item.text;
  }
  return undefined;
}

/** Numbers of the durable frames, in order of arrival. */
export function seqsOf(frames: readonly Frame[]): number[] {
  return frames.flatMap(({ seq }) => (seq === undefined ? [] : [seq]));
}
