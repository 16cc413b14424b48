/**
 * The JSON of frames, made once for all readers.
 *
 * TEXT-1  Readers of a long frame share its text and its bytes while one of them holds it.
 */
import type { SubscribeOptions } from "../../../protocol/conversation-api.ts";
import type { Frame } from "../../../protocol/frames.ts";
import { WeakValues } from "../../../shared/weak-values.ts";
import type { ConversationState } from "../core/state.ts";

/** Length from which a text is found again by the number of its frame. */
const LONG = 16 * 1024;
/** Long texts to find. */
const MAX_LONG = 32;

const encoder = new TextEncoder();

/** The JSON of a frame. */
export class FrameText {
  readonly #bytes: { sse?: Uint8Array; ndjson?: Uint8Array } = {};

  constructor(
    readonly text: string,
    private readonly seq: number | undefined,
  ) {}

  /** Returns the frame as a server-sent event or as a line, made when it is first needed. Only durable frames have an `id`. */
  bytes(encoding: SubscribeOptions["encoding"]): Uint8Array {
    const id = this.seq === undefined ? "" : `id: ${this.seq}\n`;
    this.#bytes[encoding] ??= encoder.encode(
      encoding === "sse" ? `${id}data: ${this.text}\n\n` : `${this.text}\n`,
    );
    return this.#bytes[encoding];
  }
}

export class FrameTexts {
  readonly #byFrame = new WeakMap<Frame, WeakRef<FrameText>>();
  readonly #long = new WeakValues<number, FrameText>(MAX_LONG);
  readonly #snapshots = new WeakMap<ConversationState, WeakRef<Frame>>();

  /** Returns the snapshot of a state without text in progress, made once while a reader holds it. */
  snapshot(state: ConversationState, make: () => Frame): Frame {
    const known = this.#snapshots.get(state)?.deref();
    if (known !== undefined) return known;
    const made = make();
    this.#snapshots.set(state, new WeakRef(made));
    return made;
  }

  of(frame: Frame): FrameText {
    // A snapshot has the number of the last entry.
    const seq = frame.type === "snapshot" ? undefined : frame.seq;
    const known = this.#byFrame.get(frame)?.deref() ?? (seq === undefined ? undefined : this.#long.get(seq));
    if (known !== undefined) return known;
    const made = new FrameText(JSON.stringify(frame), frame.seq);
    this.#byFrame.set(frame, new WeakRef(made));
    if (seq !== undefined && made.text.length >= LONG) this.#long.set(seq, made);
    return made;
  }
}
