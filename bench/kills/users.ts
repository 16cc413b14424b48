/**
 * Simulated users. Each has one conversation, sends one or several messages at a time and records the frames it
 * receives. All use the published client.
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
import type { ConnectionLog, History, Manner, Stop } from "./history.ts";
import type { HitServer } from "./hit-server.ts";
import { contentOf, type Script } from "./script.ts";

/** Delay before a user repeats a request without a response, in milliseconds. */
const RETRY_MS = 100;

/** The surroundings of a user. */
export interface Surroundings {
  baseUrl: string;
  conversation: string;
  history: History;
  hits: HitServer;
  /** Aborts all waiting. */
  signal: AbortSignal;
  /** Aborts at the time limit of all turns. */
  calm: AbortSignal;
}

export interface User {
  /** Sends all scripts at once. Resolves when they are answered, as far as this user can detect it. */
  say(scripts: readonly Script[]): Promise<void>;
  /** Waits until all frames up to this journal entry have arrived, and disconnects. */
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

/** Uses a WebSocket that reconnects and resumes. */
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
    const answered = this.#until(({ messages, turns }) =>
      scripts.every(({ key }) => {
        const turnId = messages.find(({ clientId }) => clientId === key)?.turnId;
        return turns.some(({ id, status }) => id === turnId && status !== "active");
      }),
    );
    await Promise.all([answered, ...scripts.map((script) => this.#stop(script))]);
  }

  async #stop({ key, stopMs }: Script): Promise<void> {
    if (stopMs === undefined) return;
    const turnIdOf = ({ messages }: LiveConversation) =>
      messages.find(({ clientId }) => clientId === key)?.turnId;
    await this.#until((state) => turnIdOf(state) !== undefined);
    await stopTurn(this.#around, { key, turnId: turnIdOf(this.#connection.getSnapshot()) ?? "" }, stopMs);
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

/** Uses a stream of each turn, and repeats the request with the same key after an interruption. */
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
    let stopping: Promise<void> | undefined;
    for await (const frame of this.#client.streamTurn(conversation, input, { signal })) {
      receive(this.#around, log, frame);
      const { turnId } = frame;
      if (script.stopMs !== undefined && turnId !== undefined)
        stopping ??= stopTurn(this.#around, { key, turnId }, script.stopMs);
    }
    await stopping;
  }
}

/**
 * Sends each message until it is acknowledged, and does not read its turn. The model server reports the answer. This user never
 * stops a turn.
 */
class PostUser implements User {
  readonly #around: Surroundings;
  readonly #client: DramatisClient;

  constructor(around: Surroundings) {
    this.#around = around;
    this.#client = createClient({ baseUrl: around.baseUrl });
  }

  /** Sends messages. Of several messages, the last is sent only once, even without a response. */
  async say(scripts: readonly Script[]): Promise<void> {
    const { hits, signal, calm } = this.#around;
    const patience = AbortSignal.any([signal, calm]);
    await Promise.all(
      scripts.map(async ({ stopMs: _never, ...script }, index) => {
        note(this.#around, script, "post");
        const isCasual = index > 0 && index === scripts.length - 1;
        const recorded = isCasual
          ? await this.#post(script).then(() => true, isUnreachable)
          : await untilAnswered(() => this.#post(script), signal).then(() => true);
        // A failed turn has no answer. The check finds it later.
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

/** Stops a turn after a time, and repeats the stop until the server has answered. */
async function stopTurn(
  { baseUrl, conversation, history, signal }: Surroundings,
  turn: { key: string; turnId: string },
  afterMs: number,
): Promise<void> {
  const client = createClient({ baseUrl });
  await pause(afterMs, undefined, { signal });
  const stop: Stop = { ...turn, outcome: "sent" };
  history.stops.push(stop);
  try {
    await untilAnswered(async () => {
      await client.turns.cancel(conversation, turn.turnId, { signal });
    }, signal);
    stop.outcome = "acknowledged";
  } catch (error) {
    if (!(error instanceof DramatisClientError) || error.code !== "CONFLICT") throw error;
    stop.outcome = "refused";
  }
}

/** Returns `false` for a lost connection, and for a request without an answer in its time. Throws any other error. */
function isUnreachable(error: unknown): false {
  if (error instanceof DramatisClientError && error.retriable) return false;
  if (error instanceof DOMException && error.name === "TimeoutError") return false;
  throw error;
}

/** Repeats a request while the server is down. */
export async function untilAnswered<Value>(ask: () => Promise<Value>, signal: AbortSignal): Promise<Value> {
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
