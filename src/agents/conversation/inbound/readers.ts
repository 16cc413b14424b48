/** The readers of a conversation's frames: its WebSockets and its byte streams. */
import type { Clock } from "../../../ports/clock.ts";
import type { Frame } from "../../../protocol/frames.ts";
import type { StartedTurn } from "../../../protocol/signals.ts";
import type { Principal } from "../../../shared/principal.ts";
import { closeUnauthorized } from "../../base/sockets/client.ts";
import type { Outflows } from "../../base/sockets/outflow.ts";
import { SocketReaders } from "../../base/sockets/socket-readers.ts";
import type { ActorContext } from "../context.ts";
import { type CursorContext, type CursorStart, FrameCursor } from "../reads/frame-cursor.ts";
import { FrameTexts } from "../reads/frame-texts.ts";
import { frameStream, type StreamOptions } from "./frame-stream.ts";
import { StreamReaders } from "./stream-readers.ts";

interface ReadersContext
  extends Omit<CursorContext, "texts" | "clock">,
    Pick<ActorContext, "clients" | "waitUntil"> {
  clock: Pick<Clock, "now" | "timer">;
  /** Calls `expire` at the expiry of a new stream, so that the stream ends. */
  expireAt(time: number): Promise<void>;
}

type StreamTarget = Pick<StreamOptions, "principal" | "encoding">;

export class ConversationReaders {
  readonly sockets: SocketReaders<Frame>;
  readonly #streams: StreamReaders;
  /** The frames of turns with a starting stream, since the start of each turn. */
  readonly #starting = new Set<Frame[]>();
  readonly #texts = new FrameTexts();

  constructor(
    private readonly context: ReadersContext,
    private readonly outflows: Outflows,
  ) {
    this.sockets = new SocketReaders({
      ...{ clock: context.clock, clients: context.clients, outflows },
      cursor: (place, { state }) => this.cursor({ ...place, filter: state?.filter }),
      refuse: closeUnauthorized,
    });
    this.#streams = new StreamReaders((at) => context.waitUntil(context.expireAt(at)));
  }

  /** Ends the readers that have expired. Returns the milliseconds until the next expiry; `null` if no reader expires. */
  expire(): number | null {
    this.sockets.expire();
    this.#streams.sweep();
    const next = Math.min(this.#streams.nextExpiry, this.sockets.nextExpiry);
    return next === Infinity ? null : Math.max(0, next - this.context.clock.now());
  }

  /** Ends the readers without read access. */
  expel(mayRead: (principal: Principal) => boolean): void {
    this.sockets.expel(mayRead);
    this.#streams.expel(mayRead);
  }

  /** Clears the cached texts of frames. */
  forget(): void {
    this.#texts.forget();
  }

  publish(frames: readonly Frame[]): void {
    for (const collected of this.#starting) collected.push(...frames);
    this.#streams.publish(frames);
    this.sockets.publish(frames);
  }

  cursor(start: CursorStart): FrameCursor {
    const { runtime, queries, clock } = this.context;
    return new FrameCursor({ runtime, queries, texts: this.#texts, clock }, start);
  }

  /** Returns the frames from a place on as bytes. Throws `RATE_LIMITED` if there are `MAX_READERS` streams. */
  stream(start: CursorStart, target: StreamTarget): ReadableStream<Uint8Array> {
    this.#streams.checkRoom(this.#starting.size);
    return this.#stream(start, target);
  }

  /**
   * Starts a turn by `start`, and returns all its frames as bytes. Throws as `stream` does, before it starts the turn, and
   * as `start` does.
   */
  async streamTurn(
    { untilWaiting, ...target }: StreamTarget & Pick<CursorStart, "untilWaiting">,
    start: () => Promise<StartedTurn>,
  ): Promise<StartedTurn & { frames: ReadableStream<Uint8Array> }> {
    this.#streams.checkRoom(this.#starting.size);
    const frames: Frame[] = [];
    this.#starting.add(frames);
    try {
      const started = await start();
      const { turnId, from } = started;
      // If the turn had begun before, its frames come from the journal.
      const isNew = frames.some((frame) => frame.type === "turn.started" && frame.turnId === turnId);
      const stream = isNew
        ? this.#stream({ from, turnId, untilWaiting, has: "entries" }, { ...target, frames })
        : this.#stream({ from, turnId, untilWaiting }, target);
      return { ...started, frames: stream };
    } finally {
      this.#starting.delete(frames);
    }
  }

  #stream(
    start: CursorStart,
    options: StreamTarget & Pick<StreamOptions, "frames">,
  ): ReadableStream<Uint8Array> {
    const { clock } = this.context;
    const cursor = this.cursor(start);
    return frameStream(this.#streams, { ...options, cursor, outflow: this.outflows.confirmed, clock });
  }
}
