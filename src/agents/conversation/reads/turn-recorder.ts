/**
 * Reads the recording of an ended turn.
 *
 * RECORDER-1  A recording reads the rows of the journal from the first entry of the turn to its end. Beyond `MAX_RECORDED_ROWS` rows the
 *             turn has no recording, and the error is `TOO_LARGE`.
 */
import { turnId } from "../../../protocol/ids.ts";
import type { TurnRecording } from "../../../protocol/recording.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict, tooLarge } from "../../../shared/errors.ts";
import { lastSeq } from "../../../shared/journal-row.ts";
import {
  checkRecordable,
  type RecordedEntry,
  type RecordedRow,
  type ReplayOptions,
  writeRecording,
} from "../core/replay/recording.ts";
import type { ConversationIdentity } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import type { Journal } from "../store/journal.ts";

/** Rows between the beginning and the end of a recorded turn. */
export const MAX_RECORDED_ROWS = 20_000;
/** Rows that are read at a time. */
const SLICE = 64;

/** Returns the recording of a turn. Throws `CONFLICT` for an active or erased turn, `TOO_LARGE` beyond the limit. */
export function recordTurn(
  record: ConversationIdentity,
  turn: Turn,
  journal: Pick<Journal, "headAt" | "withHeads">,
  { agentTurns, approvalTimeoutMs, clientToolTimeoutMs, calls }: ReplayOptions,
): TurnRecording {
  checkRecordable(turn);
  const options = defined({ agentTurns, approvalTimeoutMs, clientToolTimeoutMs, calls });
  const rows = rowsOf(turn, journal);
  // A history from elsewhere has turns without entries.
  if (rows[0]?.entries[0]?.type !== "turn.started")
    throw conflict("The journal does not have the beginning of the turn, so it has no recording.");
  return writeRecording(turnId(turn), { record, turn, options, rows });
}

function rowsOf({ n, firstSeq }: Turn, journal: Pick<Journal, "headAt" | "withHeads">): RecordedRow[] {
  const rows: RecordedRow[] = [];
  let before = journal.headAt(firstSeq - 1);
  let next = firstSeq;
  for (let read = 0; read < MAX_RECORDED_ROWS; ) {
    const slice = journal.withHeads(next, SLICE);
    if (slice.length === 0) return rows;
    for (const { row, head } of slice) {
      const entries = row.entries.flatMap(({ turn, ...entry }, index): RecordedEntry[] =>
        turn === n ? [{ ...entry, seq: row.seq + index }] : [],
      );
      // The first row of the turn may begin before the turn.
      const isFirst = row.seq < firstSeq;
      const from = isFirst ? journal.headAt(row.seq - 1) : before;
      if (entries.length > 0 && from !== null) rows.push({ at: row.at, before: from, after: head, entries });
      if (entries.some(({ type }) => type === "turn.completed" || type === "turn.failed")) return rows;
      before = head;
      next = lastSeq(row) + 1;
    }
    read += slice.length;
  }
  throw tooLarge(
    `More than ${MAX_RECORDED_ROWS} commits of the conversation lie between the beginning and the end of the turn, so it has no recording.`,
  );
}
