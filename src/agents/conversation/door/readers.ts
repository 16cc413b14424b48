/** All who follow a conversation: its WebSockets, and its byte streams. */
import type { Clock } from "../../../ports/clock.ts";
import type { StartedTurn } from "../../../protocol/conversation-api.ts";
import type { Frame } from "../../../protocol/frames.ts";
import { type CursorPorts, type CursorStart, FrameCursor } from "../reads/frame-cursor.ts";
import { FrameTexts } from "../reads/frame-texts.ts";
import type { Client } from "./client.ts";
import { frameStream, type StreamOptions } from "./frame-stream.ts";
import type { Outflows } from "./outflow.ts";
import { SocketReaders } from "./socket-readers.ts";
import { Subscribers } from "./subscribers.ts";

export interface ReadersPorts extends Omit<CursorPorts, "texts" | "clock"> {
  clock: Pick<Clock, "now" | "timer">;
  outflows: Outflows;
  /** Returns the open WebSockets. */
  clients(): Iterable<Client>;
  /** Gets the expiry of a new stream. Publish at expiry, even an empty batch, so that the stream ends. */
  onExpiring(at: number): void;
}

type StreamReader = Pick<StreamOptions, "principal" | "encoding">;

export class ConversationReaders {
  readonly sockets: SocketReaders;
  readonly #subscribers: Subscribers;
  readonly #texts = new FrameTexts();

  constructor(private readonly ports: ReadersPorts) {
    this.sockets = new SocketReaders({ ...ports, cursor: (start) => this.cursor(start) });
    this.#subscribers = new Subscribers(ports.onExpiring);
    this.#subscribers.add((frames) => this.sockets.publish(frames));
  }

  /** Ends the readers that have expired. Returns the milliseconds until the next expiry; `null` if no reader expires. */
  expire(): number | null {
    this.publish([]);
    const next = Math.min(this.#subscribers.nextExpiry, this.sockets.nextExpiry);
    return next === Infinity ? null : Math.max(0, next - this.ports.clock.now());
  }

  publish(frames: readonly Frame[]): void {
    this.#subscribers.publish(frames);
  }

  cursor(start: CursorStart): FrameCursor {
    const { runtime, queries, clock } = this.ports;
    return new FrameCursor({ runtime, queries, texts: this.#texts, clock }, start);
  }

  /** Returns the frames from a place on as bytes. Throws `RATE_LIMITED` if there are `MAX_SUBSCRIBERS` streams. */
  stream(start: CursorStart, reader: StreamReader): ReadableStream<Uint8Array> {
    this.#subscribers.checkRoom();
    return this.#stream(start, reader);
  }

  /**
   * Starts a turn by `start`, and returns all its frames as bytes. Throws as `stream` does, before it starts the turn, and
   * as `start` does.
   */
  async streamTurn(
    reader: StreamReader,
    start: () => Promise<StartedTurn>,
  ): Promise<StartedTurn & { frames: ReadableStream<Uint8Array> }> {
    this.#subscribers.checkRoom();
    return this.#subscribers.collect(async (frames) => {
      const started = await start();
      const { turnId, from } = started;
      // The frames of a turn that had begun before come from the journal.
      const isNew = frames.some((frame) => frame.type === "turn.started" && frame.turnId === turnId);
      const stream = isNew
        ? this.#stream({ from, turnId, has: "entries" }, { ...reader, frames })
        : this.#stream({ from, turnId }, reader);
      return { ...started, frames: stream };
    });
  }

  #stream(
    start: CursorStart,
    options: StreamReader & Pick<StreamOptions, "frames">,
  ): ReadableStream<Uint8Array> {
    const { outflows, clock } = this.ports;
    const cursor = this.cursor(start);
    return frameStream(this.#subscribers, { ...options, cursor, outflow: outflows.confirmed, clock });
  }
}
