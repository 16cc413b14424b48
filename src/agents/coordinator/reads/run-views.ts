/** Runs as callers see them. */
import type {
  ActiveToken,
  RunEntryView,
  RunSummary,
  RunView,
  RunWorkflow,
} from "../../../protocol/coordinator-api.ts";
import { defined } from "../../../shared/defined.ts";
import { type Page, type PageOptions, pageOf, pageOptionsSchema } from "../../../shared/page.ts";
import { toIso } from "../../../shared/time.ts";
import { validate } from "../../../shared/validation.ts";
import { Draft } from "../core/draft.ts";
import type { RunState, Token } from "../core/state.ts";
import type { RunJournal } from "../store/run-journal.ts";

/** Tokens of one view. */
const MAX_ACTIVE = 1_000;

/** A run, and the time of its end in milliseconds since the epoch. */
interface ViewedRun {
  state: RunState;
  endedAt: number | undefined;
}

/** Returns a run as lists show it. */
export function runSummary(run: ViewedRun): RunSummary {
  return { ...members(run), ...defined({ errorCode: run.state.error?.code }) };
}

/** Returns a run as callers see it. */
export function runView(run: ViewedRun): RunView {
  const { state } = run;
  const { record, error, output, seq, made } = state;
  const places = new Draft(state, 0);
  return {
    ...members(run),
    input: record.input,
    state: state.state,
    ...defined({ output, error }),
    seq,
    tokens: made.tokens,
    active: [...state.tokens.values()]
      .slice(0, MAX_ACTIVE)
      .map((token) => activeToken(token, places.placeOf(token.scope).path)),
  };
}

/** Returns the workflow of a run. */
export function runWorkflow({ record }: RunState): RunWorkflow {
  const { library, id, version, hash, definition } = record.workflow;
  return { library, id, version, hash, definition };
}

function members({ state: { record, status }, endedAt }: ViewedRun) {
  const { library, id, version } = record.workflow;
  return {
    id: record.id,
    workflow: { library, id, version },
    projectId: record.projectId,
    status,
    startedBy: record.startedBy,
    createdAt: toIso(record.createdAt),
    ...defined({ endedAt: endedAt === undefined ? undefined : toIso(endedAt) }),
  };
}

function activeToken({ id: token, node, phase }: Token, path: string): ActiveToken {
  if (phase.kind !== "working") return { token, node, status: "pending", path };
  const status = phase.lostUntil === undefined ? "working" : "lost";
  return { token, node, status, path, attempt: phase.attempt };
}

const optionsSchema = pageOptionsSchema((cursor) => /^[0-9]{1,15}$/.test(cursor));

/** Returns a page of the journal, ascending. Throws `INVALID_INPUT`. */
export function journalPage(journal: RunJournal, options: PageOptions = {}): Page<RunEntryView> {
  const { limit, cursor } = validate(optionsSchema, options, "/options");
  const from = cursor === undefined ? 1 : Number(cursor) + 1;
  const rows = journal.forward(from, limit + 1);
  const entries = rows.flatMap(({ seq, at, entries }) =>
    entries.map((entry, index): RunEntryView => ({ seq: seq + index, time: toIso(at), ...entry })),
  );
  const left = entries.filter(({ seq }) => seq >= from).slice(0, limit + 1);
  return pageOf(
    left,
    limit,
    (entry) => entry,
    ({ seq }) => String(seq),
  );
}
