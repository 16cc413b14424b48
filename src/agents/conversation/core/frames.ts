/** Journal entries as wire frames. Pure: the same entries and turns give the same frames, live or replayed. */
import { type Frame, PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import type { TurnKey } from "../../../protocol/ids.ts";
import { toIso } from "../../../shared/time.ts";
import type { EntryOfTurn, FrameBody } from "./facts/fact.ts";
import { FRAMES } from "./facts/families.ts";
import type { JournalEntry, JournalRow } from "./journal-entry.ts";
import type { Turn } from "./turn.ts";
import { idsOf } from "./view-members.ts";

/** Returns a turn with its content; `undefined` if its content was erased. */
export type TurnLookup = (n: number) => Turn | undefined;

/**
 * Returns the frames of a row's entries with a number above `after`. `keyOf` names turns without loaded content, which suffices for entries
 * after the end of a turn.
 */
export function framesOf(
  row: JournalRow,
  after: number,
  record: EntryOfTurn["record"],
  turnOf: TurnLookup,
  keyOf: (n: number) => TurnKey | undefined = turnOf,
): Frame[] {
  const time = toIso(row.at);
  return row.entries.flatMap((entry, index): Frame[] => {
    const seq = row.seq + index;
    // SAFETY: the family of an entry wrote its data, and its turn if the frame needs the turn.
    // A newer release may have written entries of other types.
    const show = FRAMES[entry.type] as
      | ((data: JournalEntry["data"], of?: EntryOfTurn) => FrameBody)
      | null
      | undefined;
    if (seq <= after || !show) return [];
    const { turn: n, item = 0, data } = entry;
    const base = { v: PROTOCOL_VERSION, seq, time } as const;
    if (n === undefined) return [{ ...base, ...show(data) }];
    if (entry.type === "turn.finalized") {
      const key = keyOf(n);
      return key === undefined ? [] : [{ ...base, ...idsOf(entry, key), ...show(data) }];
    }
    const turn = turnOf(n);
    if (turn === undefined) return [];
    const of = {
      ...{ turn, item, record },
      get operation() {
        return turn.operations.find((candidate) => candidate.item === entry.item);
      },
    };
    return [{ ...base, ...idsOf(entry, turn), ...show(data, of) }];
  });
}

/** Returns a frame that is not a durable fact. */
export function ephemeralFrame<
  Type extends
    | "message.delta"
    | "message.user"
    | "tool.progress"
    | "tool.claimed"
    | "pong"
    | "error"
    | "mark",
>(
  type: Type,
  data: Extract<Frame, { type: Type }>["data"],
  ids: { turnId?: string; messageId?: string; operationId?: string },
  now: number,
): Frame {
  // SAFETY: `type` and `data` belong together by this function's own signature.
  return { v: PROTOCOL_VERSION, type, ...ids, time: toIso(now), data } as Frame;
}
