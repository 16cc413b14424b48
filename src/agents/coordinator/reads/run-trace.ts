/** Reads the part of a trace in a run: the spans of work that is over, and the ids of the runs and conversations that its nodes opened. */
import { spanView, type TracePart } from "../../../protocol/trace.ts";
import { spansOf } from "../core/spans.ts";
import type { RunState } from "../core/state.ts";
import { traceOf } from "../core/trace.ts";
import type { RunJournal, RunJournalRow } from "../store/run-journal.ts";

const MAX_RUN_SPANS = 1_000;
/** Entries of the journal that are read for a trace. */
const MAX_ENTRIES = 20_000;

export function readRunTrace({ record, seq }: RunState, journal: Pick<RunJournal, "from">): TracePart {
  const { id: runId, origin } = record;
  const { spans, opened, hasInvited, isCut } = spansOf(record, rowsOf(journal), MAX_RUN_SPANS);
  return {
    traceId: traceOf(record).traceId,
    spans: spans.map(spanView),
    opened,
    ...(hasInvited &&
      origin && { invited: { conversationId: origin.conversationId, turnId: origin.turnId, runId } }),
    ...(isCut || seq > MAX_ENTRIES ? { partial: true } : {}),
  };
}

function* rowsOf(journal: Pick<RunJournal, "from">): Generator<RunJournalRow> {
  for (const row of journal.from(1)) {
    if (row.seq > MAX_ENTRIES) return;
    yield row;
  }
}
