/**
 * One WebSocket as a reader of frames. The platform does not report what a socket has sent, so clients acknowledge. After each
 * `MARK_LENGTH` of frames the server sends a `mark`, which the client returns. Marks are random, so a client can return a mark only after
 * reading it.
 *
 * READER-1  A client with acknowledgements has at most the window of `confirmed` in flight, or one longer frame. Further frames wait in the
 *           journal. A client that stops acknowledging while frames wait is closed with 1013.
 * READER-2  A client without acknowledgements gets the window of `unconfirmed` over one connection, and is then closed with 1013. It
 *           reconnects and continues after its last `seq`. Only its latest frames count against other readers, and `GUARANTEED` of small
 *           frames never wait for other readers. If a client waits for room longer than it may need to read its frames, it is closed.
 * READER-3  The place of a reader and its marks survive an eviction of the actor.
 * READER-4  Answers to a client's own frames count as frames. With a full window, a client gets further `MAX_ANSWERS` of answers, and is
 *           then closed with 1013.
 * READER-5  After the last possible frame a connection is closed with 1000.
 */
import { CONTINUE_LATER_CLOSE, PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import { toBase64 } from "../../../shared/base64.ts";
import { defined } from "../../../shared/defined.ts";
import { toIso } from "../../../shared/time.ts";
import { countedMs, GUARANTEED } from "./outflow.ts";
import type { ReaderCursor, Take } from "./reader-cursor.ts";
import { Stall, type StallPorts } from "./stall.ts";

/** Length of frames between two marks, in UTF-16 units. */
const MARK_LENGTH = 32 * 1024;
/** Length that an unconfirmed reader is charged for each wake of the actor, which does not remember its last frames. */
const WAKE_LENGTH = 4 * 1024;
/** Maximum length of unacknowledged answers to a client, in addition to a full window. */
const MAX_ANSWERS = 32 * 1024;
/** Random bytes of a mark; a multiple of three, so that Base64 needs no padding. */
const MARK_BYTES = 9;
/** The close code after the last frame. */
const OVER_CLOSE = 1000;

/** The facts of a reader that survive hibernation. */
export interface Flow {
  /** The key of the connection in the outflow; absent before the first frame. */
  id?: string;
  acks: boolean;
  /** The marks that are not acknowledged, the oldest first. */
  marks: readonly string[];
  /** Length that a client without acknowledgements has got, without the latest frames. */
  spent: number;
  /** Number of the last entry that was sent, while the reader is behind. */
  seq?: number;
}

/** The used part of a connection. */
export interface Socket {
  send(text: string): void;
  close(code: number, reason: string): void;
}

export const NEW_FLOW = { marks: [], spent: 0 } as const;

/** Lengths of all frames in a stretch of the connection, and of the answers among them. */
interface Stretch {
  length: number;
  answers: number;
}

const NOTHING: Stretch = { length: 0, answers: 0 };

export class SocketReader<Published> {
  #flow: Flow;
  /** The frames before each mark that is not acknowledged. */
  readonly #marked: Stretch[];
  /** The frames behind the last mark. */
  #unmarked: Stretch;
  /** The latest frames to a client without acknowledgements. */
  #lately = { length: 0, small: 0, since: 0 };
  readonly #stall: Stall;
  #isClosed = false;

  /** `keep` keeps facts with the connection. If `isRestored`, `flow` comes from an earlier life of the actor. */
  constructor(
    private readonly socket: Socket,
    private readonly cursor: ReaderCursor<Published>,
    private readonly ports: StallPorts & { keep(flow: Flow): void },
    flow: Flow,
    isRestored: boolean,
  ) {
    const { id, acks, marks } = flow;
    this.#flow = flow;
    this.#marked = marks.map(() => ({ length: MARK_LENGTH, answers: 0 }));
    // After a wake the length is unknown. So a mark follows the next frame, and a full window has no room for answers.
    const restored = { length: acks ? MARK_LENGTH : WAKE_LENGTH, answers: MAX_ANSWERS };
    this.#unmarked = isRestored ? restored : NOTHING;
    this.#stall = new Stall(ports, {
      ...defined({ connection: id }),
      held: () => this.#underWay,
      since: () => (acks ? ports.clock.now() : this.#lately.since),
      // The server cannot see whether such a client reads. This small length is harmless.
      spared: acks ? 0 : GUARANTEED,
      advance: () => this.#retry(),
      cut: () => this.#cut("The client does not read."),
    });
  }

  /** Sends published frames, or notes that the reader is behind. */
  publish(frames: readonly Published[]): void {
    if (this.#isClosed) return;
    this.cursor.offer(frames, this.#take);
    this.advance();
  }

  /** Sends the answer to a frame of the client, or closes the socket of a client that does not read its answers. */
  answer(text: string): void {
    if (this.#isClosed) return;
    const { length } = text;
    const isAdmitted = this.#flow.acks
      ? this.#stall.fits(length) || this.#answers + length <= MAX_ANSWERS
      : !this.ports.outflow.exceedsWindow(this.#used, length);
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
    this.#stall.progress();
    this.#stall.note();
    this.#keep();
    this.advance();
    return true;
  }

  /** Sends missed frames, as far as there is room. */
  advance(): void {
    const { cursor } = this;
    if (this.#isClosed) return;
    if (cursor.isBehind && this.#stall.hasRoom()) cursor.catchUp(this.#take, () => this.#room);
    if (this.#isClosed) return;
    if (cursor.isOver) {
      this.#end();
      return;
    }
    // Without a mark in flight, no acknowledgement would make room.
    if (cursor.isBehind && this.#unmarked.length > 0 && this.#marked.length === 0) this.#mark();
    this.#stall.watch(cursor.isBehind);
    if (this.#flow.seq !== this.#waitingSeq) this.#keep();
  }

  /** Forgets the socket. Unless it is closed, its length still counts for a while. */
  leave(isClosed: boolean): void {
    this.#isClosed = true;
    this.#stall.end(isClosed);
  }

  readonly #take: Take = ({ text }) => {
    if (!this.#flow.acks && this.ports.outflow.exceedsWindow(this.#used, text.length)) {
      this.#cut("The client without acknowledgements is too slow.");
      return false;
    }
    if (!this.#isSmall(text.length) && !this.#stall.admits(text.length)) return false;
    this.#sendCounted(text, 0);
    // Such a client waits for other readers only.
    if (!this.#flow.acks) this.#stall.progress();
    return true;
  };

  #sendCounted(text: string, answers: number): void {
    const before = this.#unmarked;
    this.#send(text);
    this.#unmarked = { length: before.length + text.length, answers: before.answers + answers };
    if (!this.#flow.acks) this.#noteSent(text.length);
    this.#stall.note();
    if (this.#unmarked.length >= MARK_LENGTH) this.#mark();
  }

  #noteSent(length: number): void {
    const { length: before, small, since } = this.#recent;
    this.#lately = {
      length: before + length,
      small: this.#isSmall(length) ? small + length : small,
      since,
    };
  }

  /** Reports whether a frame for a client without acknowledgements is within `GUARANTEED`. */
  #isSmall(length: number): boolean {
    return !this.#flow.acks && this.#recent.small + length <= GUARANTEED;
  }

  #retry(): void {
    try {
      this.advance();
    } catch (error) {
      console.error(error);
      this.#cut("The frames cannot be read right now.");
    }
  }

  #cut(reason: string): void {
    this.leave(false);
    this.socket.close(CONTINUE_LATER_CLOSE, `${reason} Connect again with the last seq.`);
  }

  /** Ends the connection of a complete reader. */
  #end(): void {
    this.leave(true);
    this.socket.close(OVER_CLOSE, "Nothing follows.");
  }

  #mark(): void {
    const { acks, marks, spent } = this.#flow;
    if (acks) {
      const mark = toBase64(crypto.getRandomValues(new Uint8Array(MARK_BYTES)));
      this.#flow = { ...this.#flow, marks: [...marks, mark] };
      this.#marked.push(this.#unmarked);
      const time = toIso(this.ports.clock.now());
      this.#send(JSON.stringify({ v: PROTOCOL_VERSION, type: "mark", time, data: { mark } }));
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

  /** Length of the window that the connection has used. */
  get #used(): number {
    const { length } = this.#unmarked;
    return this.#marked.reduce((sum, marked) => sum + marked.length, this.#flow.spent + length);
  }

  /** Length that may be in flight to the client. */
  get #underWay(): number {
    return this.#flow.acks ? this.#used : this.#recent.length;
  }

  /** Frames to a client without acknowledgements that may be in flight: their length, the length of the small frames, and the start time. */
  get #recent(): { length: number; small: number; since: number } {
    const { length, since } = this.#lately;
    const now = this.ports.clock.now();
    return now - since < countedMs(length) ? this.#lately : { length: 0, small: 0, since: now };
  }

  get #room(): number {
    return this.ports.outflow.room(this.#used);
  }

  /** Length of the answers in flight. */
  get #answers(): number {
    return this.#marked.reduce((sum, { answers }) => sum + answers, this.#unmarked.answers);
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
