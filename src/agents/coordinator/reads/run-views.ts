/** Runs as callers see them. */
import type { ActiveToken, RunEntryView, RunView } from "../../../protocol/coordinator-api.ts";
import { defined } from "../../../shared/defined.ts";
import { type Page, type PageOptions, pageOf, pageOptionsSchema } from "../../../shared/page.ts";
import { toIso } from "../../../shared/time.ts";
import { validate } from "../../../shared/validation.ts";
import { Draft } from "../core/draft.ts";
import type { RunState, Token } from "../core/state.ts";
import type { RunJournal } from "../store/run-journal.ts";

/** Tokens of one view. */
const MAX_ACTIVE = 1_000;

/** Returns a run as callers see it. */
export function runView(state: RunState): RunView {
  const { record, status, error, output, seq, made } = state;
  const { library, id, version } = record.workflow;
  const places = new Draft(state, 0);
  return {
    id: record.id,
    workflow: { library, id, version },
    projectId: record.projectId,
    status,
    startedBy: record.startedBy,
    createdAt: toIso(record.createdAt),
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
