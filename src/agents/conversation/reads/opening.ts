/** The frames with which a subscriber begins. */

import type { Clock } from "../../../ports/clock.ts";
import { type Frame, PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import type { Snapshot } from "../../../protocol/views.ts";
import { toIso } from "../../../shared/time.ts";
import type { ConversationState } from "../core/state.ts";
import type { ConversationQueries } from "./queries.ts";

/** A part of an opening. Subscribe in the same moment as you take the last one, or frames are missed. */
export interface OpeningSlice {
  frames: readonly Frame[];
  last: boolean;
}

export interface OpeningPorts {
  runtime: {
    readonly state: ConversationState;
    /** The texts in progress. */
    readonly deltas: { flush(): void; partials(): Snapshot["partials"]; partialFrames(): Frame[] };
  };
  queries: ConversationQueries;
  clock: Pick<Clock, "now">;
}

/**
 * Yields a snapshot, or, with `from`, the frames after that number and the partial texts. Each slice is up to date when it
 * is taken.
 */
export function* openingSlices(
  { runtime, queries, clock }: OpeningPorts,
  from: number | undefined,
): Generator<OpeningSlice, void> {
  const { deltas } = runtime;
  if (from === undefined) {
    deltas.flush();
    const { state } = runtime;
    const data = queries.snapshot(state, deltas.partials());
    const time = toIso(clock.now());
    yield { frames: [{ v: PROTOCOL_VERSION, seq: state.seq, type: "snapshot", time, data }], last: true };
    return;
  }
  for (let after = from, last = false; !last; ) {
    deltas.flush();
    const slice = queries.replay(runtime.state, after);
    after = Math.max(after, slice.upTo);
    last = slice.done;
    yield { frames: last ? [...slice.frames, ...deltas.partialFrames()] : slice.frames, last };
  }
}
