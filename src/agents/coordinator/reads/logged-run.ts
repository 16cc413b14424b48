/**
 * The journal of a run, as the log of its tenant has it.
 *
 * RUNLOG-1  The log has each entry of a run's journal, with the ids of the run and of its parent run. So it has the entries of sub-workflows
 *           and of parts, too.
 * RUNLOG-2  The log gets the entries when the run ends, and before with the wake-ups of its work. If the run waits for others, the entries
 *           follow after 15 seconds.
 * RUNLOG-3  Only readers of the log find the entries. They are operators and administrators, who may read each run (RUNACCESS-1).
 */
import type { RunEntry } from "../../../protocol/workflow-run.ts";
import { defined } from "../../../shared/defined.ts";
import { type LoggedActor, loggedCode, loggedData } from "../../base/copies/events-target.ts";
import type { CopiedActor } from "../../base/copies/journal-copy.ts";
import type { ActorContext, StoredRun } from "../context.ts";
import { codeOf } from "../core/spans.ts";
import { correlationOf } from "../core/trace.ts";
import type { RunJournalRow } from "../store/run-journal.ts";

type CopiedRun = StoredRun & CopiedActor<RunJournalRow>;

export function loggedRun(
  runtime: CopiedRun,
  { eventLog }: Pick<ActorContext, "eventLog">,
): LoggedActor<RunEntry> {
  return {
    runtime: () => runtime,
    events: eventLog,
    address: () => runtime.state.record,
    head: () => {
      const { record, seq } = runtime.state;
      return { runId: record.id, projectId: record.projectId, readers: [], newest: seq };
    },
    entries: () => {
      const { record } = runtime.state;
      const links = {
        correlationId: correlationOf(record),
        ...defined({ parentRunId: record.parent?.runId }),
      };
      return ({ data, ...entry }, _seq, at) => ({
        ...entry,
        at,
        ...links,
        ...loggedCode(codeOf(data)),
        ...loggedData(data),
      });
    },
    isErasure: () => false,
  };
}
