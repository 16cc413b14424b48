/** What a watcher of a conversation begins with. */

import type { Clock } from "../../../ports/clock.ts";
import { type Frame, PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import type { Snapshot } from "../../../protocol/views.ts";
import type { ConversationState } from "../core/state.ts";
import type { ConversationQueries } from "../reads/queries.ts";
import type { OpeningSlice } from "./subscribers.ts";

/** The live side of a conversation: its state, and the texts in progress. */
export interface OpeningPorts {
  readonly state: ConversationState;
  readonly deltas: { flush(): void; partials(): Snapshot["partials"] };
  partialFrames(): Frame[];
}

/**
 * A snapshot, or, with `from`, the frames after that number and the partial texts. Each slice is up to date when it is
 * taken.
 */
export function* openingSlices(
  { runtime, queries, clock }: { runtime: OpeningPorts; queries: ConversationQueries; clock: Clock },
  from: number | undefined,
): Generator<OpeningSlice, void> {
  if (from === undefined) {
    runtime.deltas.flush();
    const { state, deltas } = runtime;
    const time = new Date(clock.now()).toISOString();
    const data = queries.snapshot(state, deltas.partials());
    yield { frames: [{ v: PROTOCOL_VERSION, seq: state.seq, type: "snapshot", time, data }], last: true };
    return;
  }
  for (let after = from, last = false; !last; ) {
    runtime.deltas.flush();
    const slice = queries.replay(runtime.state, after);
    after = Math.max(after, slice.upTo);
    last = slice.done;
    yield { frames: last ? [...slice.frames, ...runtime.partialFrames()] : slice.frames, last };
  }
}
