/**
 * Users of one conversation each, who say one thing after another, now and then several at once, and write down what they
 * are told. Each comes in through the published client.
 */
import { setTimeout as pause } from "node:timers/promises";
import {
  connectConversation,
  createClient,
  type DramatisClient,
  DramatisClientError,
  type Frame,
  type LiveConversation,
} from "../../src/client/index.ts";
import type { ConnectionLog, History, Manner } from "./history.ts";
import type { HitServer } from "./hit-server.ts";
import { contentOf, type Script } from "./script.ts";

/** How long a user waits before asking a server again that did not answer, in milliseconds. */
const RETRY_MS = 100;

/** What a user needs of the world. */
export interface Surroundings {
  baseUrl: string;
  conversation: string;
  history: History;
  hits: HitServer;
  /** Ends all waiting. */
  signal: AbortSignal;
  /** Aborts when every turn must have ended. */
  calm: AbortSignal;
}

export interface User {
  /** Says all of these at once; resolves when they have been answered, as far as this user can know. */
  say(scripts: readonly Script[]): Promise<void>;
  /** Resolves when everything up to this journal entry has been seen, and leaves. */
  leave(seq: number): Promise<void>;
}

export function newUser(manner: Manner, surroundings: Surroundings): User {
  switch (manner) {
    case "socket":
      return new SocketUser(surroundings);
    case "stream":
      return new StreamUser(surroundings);
    case "post":
      return new PostUser(surroundings);
    default:
      return manner satisfies never;
  }
}

/** Over a WebSocket that reconnects and resumes by itself. */
class SocketUser implements User {
  readonly #around: Surroundings;
  readonly #connection;

  constructor(around: Surroundings) {
    this.#around = around;
    const { baseUrl: host, conversation: id, history } = around;
    class RecordingWebSocket extends WebSocket {
      constructor(url: string, protocols?: string | string[]) {
        super(url, protocols);
        const from = new URL(url).searchParams.get("from");
        const scope = { of: "conversation", from: from === null ? null : Number(from) } as const;
        const log = newLog(around, "socket", scope);
        this.addEventListener("message", ({ data }) => receive(around, log, JSON.parse(String(data))));
      }
    }
    this.#connection = connectConversation({ host, id, WebSocket: RecordingWebSocket });
    this.#connection.subscribe(() => {
      for (const { id: turnId, items } of this.#connection.getSnapshot().turns) {
        for (const item of items)
          if (item.type === "partial") history.shown.push({ turnId, text: item.text });
      }
    });
  }

  async say(scripts: readonly Script[]): Promise<void> {
    for (const script of scripts) {
      note(this.#around, script, "socket");
      this.#connection.send(contentOf(script), { id: script.key });
    }
    await this.#until(({ messages, turns }) =>
      scripts.every(({ key }) => {
        const turnId = messages.find(({ clientId }) => clientId === key)?.turnId;
        return turns.some(({ id, status }) => id === turnId && status !== "active");
      }),
    );
  }

  async leave(seq: number): Promise<void> {
    if ((this.#connection.getSnapshot().seq ?? 0) < seq) this.#connection.reconnect();
    await this.#until((state) => (state.seq ?? 0) >= seq);
    this.#connection.close();
  }

  #until(condition: (state: LiveConversation) => boolean): Promise<void> {
    const { signal } = this.#around;
    return new Promise((resolve, reject) => {
      const give = () => {
        stop();
        this.#connection.close();
        reject(signal.reason);
      };
      const look = () => {
        if (!condition(this.#connection.getSnapshot())) return;
        stop();
        signal.removeEventListener("abort", give);
        resolve();
      };
      const stop = this.#connection.subscribe(look);
      if (signal.aborted) give();
      else signal.addEventListener("abort", give, { once: true });
      look();
    });
  }
}

/** By a stream of each turn, asked for again under the same key when it breaks off. */
class StreamUser implements User {
  readonly #around: Surroundings;
  readonly #client: DramatisClient;

  constructor(around: Surroundings) {
    this.#around = around;
    this.#client = createClient({ baseUrl: around.baseUrl });
  }

  async say(scripts: readonly Script[]): Promise<void> {
    await Promise.all(
      scripts.map((script) => {
        note(this.#around, script, "stream");
        return untilAnswered(() => this.#watch(script), this.#around.signal);
      }),
    );
  }

  async leave(): Promise<void> {}

  async #watch(script: Script): Promise<void> {
    const { conversation, signal } = this.#around;
    const { key } = script;
    const log = newLog(this.#around, `stream ${key}`, { of: "turn", key });
    const input = { content: contentOf(script), idempotencyKey: key };
    for await (const frame of this.#client.streamTurn(conversation, input, { signal })) {
      receive(this.#around, log, frame);
    }
  }
}

/** Sends until it is acknowledged, and then asks no more: what becomes of the turn is seen at the model server. */
class PostUser implements User {
  readonly #around: Surroundings;
  readonly #client: DramatisClient;

  constructor(around: Surroundings) {
    this.#around = around;
    this.#client = createClient({ baseUrl: around.baseUrl });
  }

  /** Of several at once the last is sent a single time: if nobody answers, the user does without. */
  async say(scripts: readonly Script[]): Promise<void> {
    const { hits, signal, calm } = this.#around;
    const patience = AbortSignal.any([signal, calm]);
    await Promise.all(
      scripts.map(async (script, index) => {
        note(this.#around, script, "post");
        const isCasual = index > 0 && index === scripts.length - 1;
        const recorded = isCasual
          ? await this.#post(script).then(() => true, isUnreachable)
          : await untilAnswered(() => this.#post(script), signal).then(() => true);
        // A turn that failed is never answered; that is found out later.
        if (recorded) await hits.answered(script, patience).catch(() => signal.throwIfAborted());
      }),
    );
  }

  async leave(): Promise<void> {}

  async #post(script: Script): Promise<void> {
    const { conversation, signal } = this.#around;
    const { key } = script;
    const input = { content: contentOf(script), idempotencyKey: key };
    const { turnId } = await this.#client.turns.start(conversation, input, { signal });
    this.#around.history.acknowledgements.push({ key, turnId, at: Date.now() });
  }
}

/** Answers that a message was not recorded as far as its sender knows; throws what is no loss of the connection. */
function isUnreachable(error: unknown): false {
  if (error instanceof DramatisClientError && error.retriable) return false;
  throw error;
}

async function untilAnswered(ask: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      isUnreachable(error);
    }
    await pause(RETRY_MS, undefined, { signal });
  }
}

function note({ history, conversation }: Surroundings, script: Script, manner: Manner): void {
  history.messages.push({ conversation, script, manner, at: Date.now() });
}

function newLog(
  { history, conversation }: Surroundings,
  client: string,
  scope: ConnectionLog["scope"],
): ConnectionLog {
  const log: ConnectionLog = { conversation, client, scope, frames: [] };
  history.connections.push(log);
  return log;
}

function receive({ history }: Surroundings, log: ConnectionLog, frame: Frame): void {
  const at = Date.now();
  log.frames.push({ at, frame });
  const { type, turnId } = frame;
  const key = type === "message.user" ? frame.data.clientId : undefined;
  if (key !== undefined && turnId !== undefined) history.acknowledgements.push({ key, turnId, at });
}
