/**
 * One WebSocket as a reader of frames. The platform does not report what a socket has sent, so clients acknowledge: behind
 * each `MARK_LENGTH` of frames the server sends a `mark`, which the client returns. A mark is random, so only a client that
 * has read it can return it.
 *
 * READER-1  A client that promised acknowledgements has at most the window of `confirmed` under way, or one longer frame.
 *           The rest waits in the journal until it acknowledges. A client that acknowledges nothing while frames wait is
 *           closed with 1013.
 * READER-2  A client that promised none gets the window of `unconfirmed` over one connection, and is then closed with 1013.
 *           It connects again and continues after its last `seq`.
 * READER-3  An eviction of the actor loses neither the place of a reader nor its marks.
 * READER-4  What the server answers to a client's own frames counts as frames do. Beside a full window a client gets
 *           `MAX_ANSWERS` of it, and is then closed with 1013.
 */

import type { Clock } from "../../../ports/clock.ts";
import { CONTINUE_LATER_CLOSE, type Frame } from "../../../protocol/frames.ts";
import { toBase64 } from "../../../shared/base64.ts";
import { defined } from "../../../shared/defined.ts";
import { ephemeralFrame } from "../core/frames.ts";
import type { FrameCursor, Take } from "../reads/frame-cursor.ts";
import { CHECK_MS, type Outflow, stallMs } from "./outflow.ts";

/** Length of frames between two marks, in UTF-16 units. */
const MARK_LENGTH = 32 * 1024;
/** Length that an unconfirmed reader is charged for each wake of the actor, whose memory of the last frames is lost. */
const WAKE_LENGTH = 4 * 1024;
/** Length of answers that a client with acknowledgements may have under way beside a full window. */
const MAX_ANSWERS = 32 * 1024;
/** Random bytes of a mark; a multiple of three, so that Base64 needs no padding. */
const MARK_BYTES = 9;

/** The facts of a reader that outlive the actor's memory. */
export interface Flow {
  acks: boolean;
  /** The marks that are not acknowledged, the oldest first. */
  marks: readonly string[];
  /** Length that a client without acknowledgements has got, but for the last of it. */
  spent: number;
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

export const NEW_FLOW = { marks: [], spent: 0 } as const;

/** Lengths of all that was sent over a stretch of the connection, and of the answers in it. */
interface Stretch {
  length: number;
  answers: number;
}

const NOTHING: Stretch = { length: 0, answers: 0 };

export class SocketReader {
  #flow: Flow;
  /** The frames before each mark that is not acknowledged. */
  readonly #marked: Stretch[];
  /** The frames behind the last mark. */
  #unmarked: Stretch;
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
    const { acks, marks } = flow;
    this.#flow = flow;
    this.#marked = marks.map(() => ({ length: MARK_LENGTH, answers: 0 }));
    // After a wake the length is unknown. So a mark follows the next frame, and a full window has no room for answers.
    const restored = { length: acks ? MARK_LENGTH : WAKE_LENGTH, answers: MAX_ANSWERS };
    this.#unmarked = isRestored ? restored : NOTHING;
    this.#progressAt = ports.clock.now();
  }

  /** Sends published frames, or notes that the reader is behind. */
  publish(frames: readonly Frame[]): void {
    if (this.#isClosed) return;
    this.cursor.offer(frames, this.#take);
    this.advance();
  }

  /** Sends the answer to a frame of the client, or closes the socket of a client that does not read its answers. */
  answer(text: string): void {
    if (this.#isClosed) return;
    const { outflow, clock } = this.ports;
    const { length } = text;
    const isAdmitted =
      outflow.admits(this.socket, this.#held, length, clock.now()) ||
      (this.#flow.acks && this.#answers + length <= MAX_ANSWERS);
    if (isAdmitted) this.#sendCounted(text, length);
    else this.#cut("The client does not read its answers.");
  }

  /** Records the acknowledgement of a mark and all before it, and reports whether it was due. */
  acknowledge(mark: string): boolean {
    const { marks } = this.#flow;
    const count = marks.indexOf(mark) + 1;
    if (this.#isClosed || count === 0) return false;
    this.#marked.splice(0, count);
    this.#flow = { ...this.#flow, marks: marks.slice(count) };
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
    this.#sendCounted(text, 0);
    return true;
  };

  #sendCounted(text: string, answers: number): void {
    const before = this.#unmarked;
    this.#send(text);
    this.#unmarked = { length: before.length + text.length, answers: before.answers + answers };
    this.#noteHeld();
    if (this.#unmarked.length >= MARK_LENGTH) this.#mark();
  }

  #wait(): void {
    const { acks } = this.#flow;
    if (!acks && this.ports.outflow.exceedsWindow(this.#held, this.#refused)) {
      this.#cut("Too much for a connection without acknowledgements.");
      return;
    }
    // Without a mark under way, no acknowledgement would make room.
    if (this.#unmarked.length > 0 && this.#marked.length === 0) this.#mark();
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
    const { acks, marks, spent } = this.#flow;
    if (acks) {
      const mark = toBase64(crypto.getRandomValues(new Uint8Array(MARK_BYTES)));
      this.#flow = { ...this.#flow, marks: [...marks, mark] };
      this.#marked.push(this.#unmarked);
      this.#send(JSON.stringify(ephemeralFrame("mark", { mark }, {}, this.ports.clock.now())));
    } else this.#flow = { ...this.#flow, spent: spent + this.#unmarked.length };
    this.#unmarked = NOTHING;
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
    const { length } = this.#unmarked;
    return this.#marked.reduce((sum, marked) => sum + marked.length, this.#flow.spent + length);
  }

  /** Length of the answers under way. */
  get #answers(): number {
    return this.#marked.reduce((sum, { answers }) => sum + answers, this.#unmarked.answers);
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
