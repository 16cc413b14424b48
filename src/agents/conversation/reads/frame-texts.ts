/**
 * The JSON of frames, serialized once for all readers.
 *
 * TEXT-1  Readers of a long frame share its text and its bytes while one of them holds it.
 * TEXT-2  New readers share a snapshot, also while text is in progress.
 */
import type { SubscribeOptions } from "../../../protocol/conversation-requests.ts";
import type { Frame } from "../../../protocol/frames.ts";
import type { Snapshot } from "../../../protocol/views.ts";
import { WeakValues } from "../../../shared/weak-values.ts";
import type { ConversationState } from "../core/state.ts";

/** Minimum length of a text that is cached by the number of its frame. */
const LONG = 16 * 1024;
/** Maximum number of cached long texts. */
const MAX_LONG = 32;

const encoder = new TextEncoder();

/** The JSON of a frame. */
export class FrameText {
  readonly #bytes: { sse?: Uint8Array; ndjson?: Uint8Array } = {};

  constructor(
    readonly text: string,
    private readonly seq: number | undefined,
  ) {}

  /** Returns the frame as a server-sent event or as a line. Encodes it on first use. Only durable frames have an `id`. */
  bytes(encoding: SubscribeOptions["encoding"]): Uint8Array {
    const id = this.seq === undefined ? "" : `id: ${this.seq}\n`;
    this.#bytes[encoding] ??= encoder.encode(
      encoding === "sse" ? `${id}data: ${this.text}\n\n` : `${this.text}\n`,
    );
    return this.#bytes[encoding];
  }
}

type SnapshotFrame = Extract<Frame, { type: "snapshot" }>;

interface SnapshotParts {
  /** Makes the snapshot without text in progress. */
  bare(): SnapshotFrame;
  /** Length of the text in progress. */
  length: number;
  partials(): Snapshot["partials"];
}

export class FrameTexts {
  readonly #byFrame = new WeakMap<Frame, WeakRef<FrameText>>();
  #long = new WeakValues<number, FrameText>(MAX_LONG);
  readonly #snapshots = new WeakMap<ConversationState, WeakRef<SnapshotFrame>>();
  /** The newest snapshot with text in progress, by the snapshot without it. `length` is the length of all text in progress. */
  readonly #withTexts = new WeakMap<SnapshotFrame, { length: number; frame: WeakRef<SnapshotFrame> }>();

  /** Clears the texts cached by number, after an erasure. */
  forget(): void {
    this.#long = new WeakValues<number, FrameText>(MAX_LONG);
  }

  /** Returns the cached snapshot of a state. Its text in progress is serialized once for each `length`. */
  snapshot(state: ConversationState, { bare, length, partials }: SnapshotParts): SnapshotFrame {
    const known = this.#snapshots.get(state)?.deref();
    const base = known ?? bare();
    if (known === undefined) this.#snapshots.set(state, new WeakRef(base));
    if (length === 0) return base;
    const last = this.#withTexts.get(base);
    const reusable = last?.length === length ? last.frame.deref() : undefined;
    if (reusable !== undefined) return reusable;
    const frame: SnapshotFrame = { ...base, data: { ...base.data, partials: partials() } };
    this.#byFrame.set(frame, new WeakRef(new FrameText(withPartials(this.of(base).text, frame), frame.seq)));
    this.#withTexts.set(base, { length, frame: new WeakRef(frame) });
    return frame;
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

/** Returns the JSON of a snapshot with text in progress. `bare` is its JSON without this text, and ends with its `partials`. */
function withPartials(bare: string, { data }: SnapshotFrame): string {
  return `${bare.slice(0, -"[]}}".length)}${JSON.stringify(data.partials)}}}`;
}
