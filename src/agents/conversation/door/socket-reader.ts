/**
 * One WebSocket as a reader of frames. The platform does not report what a socket has sent, so clients acknowledge: behind
 * each `MARK_LENGTH` of frames the server sends a `mark`, which the client answers.
 *
 * READER-1  A client that promised acknowledgements has at most the window of `confirmed` under way, or one longer frame.
 *           The rest waits in the journal until it acknowledges. A client that acknowledges nothing while frames wait is
 *           closed with 1013.
 * READER-2  A client that promised none gets the window of `unconfirmed` over one connection, and is then closed with 1013.
 *           It connects again and continues after its last `seq`.
 * READER-3  An eviction of the actor loses neither the place of a reader nor the count of its marks.
 */

import type { Clock } from "../../../ports/clock.ts";
import { CONTINUE_LATER_CLOSE, type Frame } from "../../../protocol/frames.ts";
import { defined } from "../../../shared/defined.ts";
import { ephemeralFrame } from "../core/frames.ts";
import type { FrameCursor, Take } from "../reads/frame-cursor.ts";
import { CHECK_MS, type Outflow, stallMs } from "./outflow.ts";

/** Length of frames between two marks, in UTF-16 units. */
const MARK_LENGTH = 32 * 1024;
/** Length that an unconfirmed reader is charged for each wake of the actor, whose memory of the last frames is lost. */
const WAKE_LENGTH = 4 * 1024;

/** The facts of a reader that outlive the actor's memory. */
export interface Flow {
  acks: boolean;
  /** Number of the last mark, and of the last one that was acknowledged. */
  sent: number;
  acked: number;
  /** Number of the last entry that was sent, while the reader is behind. */
  seq?: number;
}

/** The used part of a connection. */
export interface Socket {
  send(text: string): void;
  close(code: number, reason: string): void;
}

export interface ReaderPorts {
  outflow: Outflow;
  clock: Pick<Clock, "now" | "timer">;
  /** Keeps facts with the connection. */
  keep(flow: Flow): void;
}

export const NEW_FLOW = { sent: 0, acked: 0 } as const;

export class SocketReader {
  #flow: Flow;
  /** Lengths of the frames before each mark that is not acknowledged. */
  readonly #marked: number[];
  /** Length of the frames behind the last mark. */
  #unmarked: number;
  /** Length of the frame that was refused last. */
  #refused = 0;
  #progressAt: number;
  #stopTimer: (() => void) | undefined;
  #isClosed = false;

  /** `flow` is that of an earlier life of the actor if `isRestored`, otherwise a new one. */
  constructor(
    private readonly socket: Socket,
    private readonly cursor: FrameCursor,
    private readonly ports: ReaderPorts,
    flow: Flow,
    isRestored: boolean,
  ) {
    const { acks, sent, acked } = flow;
    this.#flow = flow;
    this.#marked = new Array<number>(sent - acked).fill(MARK_LENGTH);
    // After a wake the length is unknown. So a mark follows the next frame.
    this.#unmarked = isRestored ? (acks ? MARK_LENGTH : WAKE_LENGTH) : 0;
    this.#progressAt = ports.clock.now();
  }

  /** Sends published frames, or notes that the reader is behind. */
  publish(frames: readonly Frame[]): void {
    if (this.#isClosed) return;
    this.cursor.offer(frames, this.#take);
    this.advance();
  }

  /** Records an acknowledgement, and reports whether it was due. */
  acknowledge(n: number): boolean {
    const { sent, acked } = this.#flow;
    if (this.#isClosed || n <= acked || n > sent) return false;
    this.#marked.splice(0, n - acked);
    this.#flow = { ...this.#flow, acked: n };
    this.#progressAt = this.ports.clock.now();
    this.#noteHeld();
    this.#keep();
    this.advance();
    return true;
  }

  /** Sends what the reader has missed, as far as it may have it now. */
  advance(): void {
    const { cursor, ports } = this;
    if (this.#isClosed) return;
    const mayTake = () => ports.outflow.admits(this.socket, this.#held, this.#refused, ports.clock.now());
    if (cursor.isBehind && mayTake()) {
      this.#refused = 0;
      cursor.catchUp(this.#take);
    }
    if (cursor.isBehind) this.#wait();
    else this.#stopWatch();
    if (this.#flow.seq !== this.#waitingSeq) this.#keep();
  }

  /** Forgets the socket. What it holds still counts for a while, unless it is `closed`. */
  leave(isClosed: boolean): void {
    this.#isClosed = true;
    this.#stopWatch();
    if (isClosed) this.ports.outflow.note(this.socket, 0, this.ports.clock.now());
  }

  readonly #take: Take = ({ text }) => {
    const { outflow, clock } = this.ports;
    const { length } = text;
    if (!outflow.admits(this.socket, this.#held, length, clock.now())) {
      this.#refused = length;
      return false;
    }
    this.#send(text);
    this.#unmarked += length;
    this.#noteHeld();
    if (this.#unmarked >= MARK_LENGTH) this.#mark();
    return true;
  };

  #wait(): void {
    const { acks } = this.#flow;
    if (!acks) {
      this.#cut("Too much for a connection without acknowledgements.");
      return;
    }
    // Without a mark under way, no acknowledgement would make room.
    if (this.#unmarked > 0 && this.#marked.length === 0) this.#mark();
    if (this.#stopTimer !== undefined) return;
    this.#progressAt = this.ports.clock.now();
    this.#watch();
  }

  /** Looks after the reader again in a moment, while it waits. */
  #watch(): void {
    const { clock } = this.ports;
    this.#stopTimer = clock.timer(CHECK_MS, () => {
      const held = this.#held;
      if (held > 0 && clock.now() - this.#progressAt > stallMs(held))
        return this.#cut("The client does not read.");
      this.#watch();
      try {
        this.advance();
      } catch (error) {
        console.error(error);
        this.#cut("The frames cannot be read for now.");
      }
    });
  }

  #stopWatch(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
  }

  #cut(reason: string): void {
    this.leave(false);
    this.socket.close(CONTINUE_LATER_CLOSE, `${reason} Connect again with the last seq.`);
  }

  #mark(): void {
    const { acks, sent } = this.#flow;
    this.#flow = { ...this.#flow, sent: sent + 1 };
    this.#marked.push(this.#unmarked);
    this.#unmarked = 0;
    if (acks) this.#send(JSON.stringify(ephemeralFrame("mark", { n: sent + 1 }, {}, this.ports.clock.now())));
    this.#keep();
  }

  #send(text: string): void {
    try {
      this.socket.send(text);
    } catch {
      // The socket closed a moment ago; its client resumes from its last `seq`.
    }
  }

  get #held(): number {
    return this.#marked.reduce((sum, length) => sum + length, this.#unmarked);
  }

  #noteHeld(): void {
    const { outflow, clock } = this.ports;
    outflow.note(this.socket, this.#held, clock.now());
  }

  get #waitingSeq(): number | undefined {
    return this.cursor.isBehind ? this.cursor.seq : undefined;
  }

  #keep(): void {
    const { seq: _seq, ...flow } = this.#flow;
    this.#flow = { ...flow, ...defined({ seq: this.#waitingSeq }) };
    this.ports.keep(this.#flow);
  }
}
