/**
 * The WebSockets that follow a run. They hibernate, so each WebSocket stores the data for a wake in its own state.
 *
 * RUNSOCKET-1  A WebSocket gets the same entries as a stream, each as a JSON frame, also after a hibernation. After the entry that ends the
 *              run, it is closed with 1000.
 * RUNSOCKET-2  A WebSocket that does not read does not delay the run. It is closed with 1013 (READER-1, READER-2), and its client
 *              reconnects with the last `seq`.
 * RUNSOCKET-3  When its principal expires, a WebSocket gets an `error` frame and is closed with 4401, even if it is idle. Later messages
 *              are ignored.
 * RUNSOCKET-4  A client may send only `ping` and `ack`. Any other message is answered with `error`, and has no effect. A client that
 *              exceeds its allowance is closed with 4429.
 * RUNSOCKET-5  At most `MAX_RUN_READERS` WebSockets follow a run at once. A further WebSocket is closed with 4429. A principal without
 *              access to the run gets no frame, and is closed with 4404.
 */
import type { WSMessage } from "agents";
import { z } from "zod";
import {
  FLOOD_CLOSE,
  NOT_FOUND_CLOSE,
  PROTOCOL_VERSION,
  UNAUTHORIZED_CLOSE,
} from "../../../protocol/frames.ts";
import type { SocketOptions } from "../../../protocol/upgrade-request.ts";
import { DramatisError, toErrorData, tooLarge } from "../../../shared/errors.ts";
import { parseJsonText } from "../../../shared/json.ts";
import { hasExpired, type Principal } from "../../../shared/principal.ts";
import { toIso } from "../../../shared/time.ts";
import { validate } from "../../../shared/validation.ts";
import { admitMessage, giveBack } from "../../base/sockets/admission.ts";
import type { Client } from "../../base/sockets/client.ts";
import type { Outflows } from "../../base/sockets/outflow.ts";
import { SocketReaders } from "../../base/sockets/socket-readers.ts";
import type { ActorContext, StoredRun } from "../context.ts";
import { RunCursor } from "../reads/run-cursor.ts";
import type { RunEvents } from "../reads/run-events.ts";
import { MAX_RUN_READERS, tooManyReaders } from "./run-readers.ts";
import { checkReader } from "./start-run.ts";

interface SocketsContext extends Pick<ActorContext, "clock" | "clients"> {
  events: RunEvents;
  runtime: StoredRun;
  /** Calls `expire` at a time, in milliseconds since the epoch. Resolves when that is durable. */
  expireAt(time: number): Promise<void>;
}

/** Length of a message of a client, in UTF-16 units. */
const MAX_MESSAGE = 1_024;

const version = z.literal(PROTOCOL_VERSION).optional();
const messageSchema = z.discriminatedUnion("type", [
  z.strictObject({ v: version, type: z.literal("ping") }),
  z.strictObject({ v: version, type: z.literal("ack"), mark: z.string().max(100) }),
]);

export class RunSockets {
  readonly #readers: SocketReaders<never>;
  /** There was a connection in this life of the actor. */
  #isUsed = false;

  constructor(
    private readonly context: SocketsContext,
    outflows: Outflows,
  ) {
    const { clock, clients } = context;
    this.#readers = new SocketReaders({
      clock,
      outflows,
      clients,
      cursor: ({ from }) => this.#cursor(from),
      refuse: (client) => this.#refuse(client, expired(), UNAUTHORIZED_CLOSE),
    });
  }

  /** Continues with the connections that an earlier life of the actor left. Call it before anything is committed. */
  restore(): void {
    this.#isUsed = [...this.context.clients()].length > 0;
    if (this.#isUsed) this.#readers.restore(this.context.runtime.state.seq);
  }

  /** Begins to send the entries after `from` to a new connection. Closes a connection that bypassed the Worker (`null`). */
  async open(
    client: Client,
    upgrade: { principal: Principal; options: SocketOptions } | null,
  ): Promise<void> {
    if (upgrade === null) return client.close(UNAUTHORIZED_CLOSE, "UNAUTHENTICATED");
    const { clients, clock, runtime } = this.context;
    const {
      principal,
      options: { from = 0, acks },
    } = upgrade;
    this.#isUsed = true;
    try {
      checkReader(runtime.state.record, principal);
    } catch (error) {
      return this.#refuse(client, error, NOT_FOUND_CLOSE);
    }
    if ([...clients()].length > MAX_RUN_READERS) return this.#refuse(client, tooManyReaders(), FLOOD_CLOSE);
    if (hasExpired(principal, clock.now())) return this.#refuse(client, expired(), UNAUTHORIZED_CLOSE);
    this.#readers.open(client, principal, this.#cursor(from), acks);
    if (principal.expiresAt !== undefined) await this.context.expireAt(principal.expiresAt);
  }

  /** Passes new entries to the connections. Call it after each commit. */
  wake(): void {
    if (this.#isUsed) this.#readers.publish([]);
  }

  /** Closes the connections that have expired. Returns the milliseconds until the next expiry, if any. */
  expire(): number | null {
    this.#readers.expire();
    const next = this.#readers.nextExpiry;
    return next === Number.POSITIVE_INFINITY ? null : Math.max(0, next - this.context.clock.now());
  }

  /** Reports whether a message may be read. Closes a connection that has expired or exceeds its allowance. */
  admit(client: Client, message: WSMessage): boolean {
    return admitMessage(client, message, this.context.clock.now(), {
      expired: () => this.#refuse(client, expired(), UNAUTHORIZED_CLOSE),
      flooded: (error) => this.#refuse(client, error, FLOOD_CLOSE),
    });
  }

  /** Handles a message that was admitted. */
  receive(client: Client, message: WSMessage): void {
    try {
      const frame = parsed(message);
      if (frame.type === "ping") {
        const time = toIso(this.context.clock.now());
        this.#readers.answer(client, { v: PROTOCOL_VERSION, type: "pong", time, data: {} });
      } else if (this.#readers.acknowledge(client, frame.mark)) giveBack(client);
    } catch (error) {
      this.#readers.answer(client, errorFrame(error));
    }
  }

  closed(client: Client): void {
    this.#readers.closed(client);
    this.context.events.forget();
  }

  #cursor(from: number): RunCursor {
    return new RunCursor(this.context, from);
  }

  /** Sends an error, and closes the connection. */
  #refuse(client: Client, error: unknown, closeCode: number): void {
    const frame = errorFrame(error);
    try {
      client.send(JSON.stringify(frame));
    } catch {
      // The socket closed a moment ago.
    }
    client.close(closeCode, frame.data.code);
  }
}

function parsed(message: WSMessage): z.output<typeof messageSchema> {
  if (typeof message !== "string") throw new DramatisError("INVALID_JSON", "Send frames as JSON text.");
  if (message.length > MAX_MESSAGE) throw tooLarge(`A frame may have at most ${MAX_MESSAGE} characters.`);
  return validate(messageSchema, parseJsonText(message, "The frame"));
}

function errorFrame(error: unknown) {
  if (!(error instanceof DramatisError)) console.error(error);
  return { v: PROTOCOL_VERSION, type: "error", data: toErrorData(error) };
}

function expired(): DramatisError {
  return new DramatisError(
    "UNAUTHENTICATED",
    "Your token has expired. Connect again with a new token and the last `seq`.",
  );
}
