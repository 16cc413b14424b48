/**
 * The place of one reader in the frames of a conversation.
 *
 * CURSOR-1  A reader first gets a snapshot, or, with `from`, the frames after that number; then every durable frame
 *           once, in order, and the text in progress without a gap.
 * CURSOR-2  There is no queue. A slow reader later reads missed frames from the journal and the texts in progress. It does not get other
 *           frames, such as progress.
 * CURSOR-4  A filter leaves out frames. The other frames keep their order, and the reader counts as having the omitted frames. Without
 *           deltas, a snapshot has no text in progress either.
 * CURSOR-3  A reader that follows a turn until it waits gets all frames up to the current wait. Earlier waits, after which the turn
 *           resumed, do not end the reader.
 */
import type { Clock } from "../../../ports/clock.ts";
import { admits, type FrameFilter } from "../../../protocol/frame-filter.ts";
import { endsTurn, type Frame, PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import type { Snapshot } from "../../../protocol/views.ts";
import { toIso } from "../../../shared/time.ts";
import type { ConversationState } from "../core/state.ts";
import type { FrameText, FrameTexts } from "./frame-texts.ts";
import type { ConversationQueries } from "./queries.ts";

export interface CursorContext {
  runtime: {
    readonly state: ConversationState;
    /** The published part of the texts in progress. */
    readonly deltas: {
      partials(limit: number): Snapshot["partials"];
      lengths(): { messageId: string; turnId: string; length: number }[];
      piece(messageId: string, offset: number): Frame | undefined;
    };
  };
  queries: ConversationQueries;
  texts: FrameTexts;
  clock: Pick<Clock, "now">;
}

export interface CursorStart {
  /** Continues after this entry; begins with a snapshot when absent. */
  from?: number | undefined;
  /** Only this turn's frames, up to its last frame. */
  turnId?: string | undefined;
  /** With `turnId`: ends also at the frame that begins the turn's current wait for background work. */
  untilWaiting?: boolean | undefined;
  /** The frames that the reader gets; all when absent. */
  filter?: FrameFilter | undefined;
  /** The reader has all entries up to `from`, or also the text in progress. */
  has?: "entries" | "texts";
}

/** Takes a frame, or refuses it for now. */
export type Take = (text: FrameText, frame: Frame) => boolean;

/** Length of all text in progress in a snapshot; the rest follows as deltas. */
const MAX_SNAPSHOT_TEXT = 64 * 1024;

export class FrameCursor {
  #seq: number | undefined;
  readonly #turnId: string | undefined;
  readonly #untilWaiting: boolean;
  readonly #filter: FrameFilter;
  /** Length of the text that the reader has, by the id of its message. */
  readonly #offsets = new Map<string, number>();
  #isBehind: boolean;
  #isOver = false;

  constructor(
    private readonly context: CursorContext,
    { from, turnId, has, untilWaiting = false, filter = {} }: CursorStart,
  ) {
    this.#seq = from;
    this.#turnId = turnId;
    this.#untilWaiting = untilWaiting;
    this.#filter = filter;
    this.#isBehind = has === undefined;
    if (has !== "texts") return;
    for (const { messageId, length } of this.#inProgress()) this.#offsets.set(messageId, length);
  }

  /** Number of the last entry that the reader has; `undefined` before the snapshot. */
  get seq(): number | undefined {
    return this.#seq;
  }

  /** The reader refused a frame, or has not started. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** The reader has the last frame of its turn. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Passes published frames to a reader that is not behind. A reader that refuses a frame is behind. */
  offer(frames: readonly Frame[], take: Take): void {
    for (const frame of frames) {
      if (this.#isBehind || this.#isOver) return;
      const missing = this.#isOwn(frame) ? this.#missing(frame) : null;
      if (missing === "later" || (missing !== null && !this.#pass(missing, take))) this.#isBehind = true;
    }
  }

  /**
   * Passes missed frames to the reader, until it refuses a frame or is up to date. `room` returns the length that the reader may take now,
   * and bounds the reads.
   */
  catchUp(take: Take, room = () => Infinity): void {
    if (!this.#isBehind || this.#isOver) return;
    if (this.#seq === undefined && !this.#passSnapshot(take)) return;
    if (!this.#passEntries(take, room) || !this.#passTexts(take)) return;
    this.#isBehind = false;
  }

  #passSnapshot(take: Take): boolean {
    const { runtime, queries, clock, texts } = this.context;
    const { state, deltas } = runtime;
    const snapshot = texts.snapshot(state, {
      bare: () => ({
        v: PROTOCOL_VERSION,
        seq: state.seq,
        type: "snapshot",
        time: toIso(clock.now()),
        data: queries.snapshot(state, []),
      }),
      length: this.#hasDeltas ? deltas.lengths().reduce((sum, { length }) => sum + length, 0) : 0,
      partials: () => deltas.partials(MAX_SNAPSHOT_TEXT),
    });
    return this.#pass(snapshot, take);
  }

  #passEntries(take: Take, room: () => number): boolean {
    const { runtime, queries } = this.context;
    const { state } = runtime;
    for (let done = (this.#seq ?? 0) >= state.seq; !done && !this.#isOver; ) {
      const length = room();
      if (length <= 0) return false;
      const slice = queries.replay(state, this.#seq ?? 0, length);
      for (const frame of slice.frames) {
        if (this.#isOwn(frame) && !this.#pass(frame, take)) return false;
        if (this.#isOver) return true;
      }
      this.#seq = Math.max(this.#seq ?? 0, slice.upTo);
      done = slice.done;
    }
    return true;
  }

  #passTexts(take: Take): boolean {
    if (!this.#hasDeltas) return true;
    const { deltas } = this.context.runtime;
    const texts = this.#inProgress();
    for (const { messageId, length } of texts) {
      for (let offset = this.#offsets.get(messageId) ?? 0; offset < length; ) {
        const piece = deltas.piece(messageId, offset);
        if (piece?.type !== "message.delta") break;
        if (!this.#pass(piece, take)) return false;
        offset += piece.data.text.length;
      }
    }
    const inProgress = new Set(texts.map(({ messageId }) => messageId));
    for (const id of this.#offsets.keys()) if (!inProgress.has(id)) this.#offsets.delete(id);
    return true;
  }

  #inProgress(): { messageId: string; turnId: string; length: number }[] {
    const texts = this.context.runtime.deltas.lengths();
    return texts.filter(({ turnId }) => this.#turnId === undefined || turnId === this.#turnId);
  }

  get #hasDeltas(): boolean {
    return admits(this.#filter, "message.delta");
  }

  #isOwn({ turnId }: Frame): boolean {
    return this.#turnId === undefined || turnId === this.#turnId;
  }

  /** Returns the part of a published frame that the reader misses, `later` if it misses something before it. */
  #missing(frame: Frame): Frame | "later" | null {
    if (frame.seq !== undefined) return this.#seq === undefined || frame.seq > this.#seq ? frame : null;
    if (frame.type !== "message.delta") return frame;
    if (!this.#hasDeltas) return null;
    const { offset, text } = frame.data;
    const known = this.#offsets.get(frame.messageId ?? "") ?? 0;
    if (offset > known) return "later";
    if (offset === known) return frame;
    const rest = text.slice(known - offset);
    return rest === "" ? null : { ...frame, data: { offset: known, text: rest } };
  }

  #pass(frame: Frame, take: Take): boolean {
    if (admits(this.#filter, frame.type) && !take(this.context.texts.of(frame), frame)) return false;
    const { messageId = "", seq } = frame;
    if (seq !== undefined) this.#seq = seq;
    switch (frame.type) {
      case "snapshot":
        for (const partial of frame.data.partials) this.#offsets.set(partial.messageId, partial.text.length);
        break;
      case "message.delta":
        this.#offsets.set(messageId, frame.data.offset + frame.data.text.length);
        break;
      case "message.reset":
      case "message.completed":
        this.#offsets.delete(messageId);
        break;
      default:
        this.#isOver = this.#turnId !== undefined && (endsTurn(frame) || this.#isLastWait(frame));
    }
    return true;
  }

  #isLastWait({ type, seq }: Frame): boolean {
    if (!this.#untilWaiting || type !== "turn.waiting") return false;
    return [...this.context.runtime.state.active.values()].some(({ waiting }) => waiting === seq);
  }
}
