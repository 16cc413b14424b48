/**
 * Runs as callers see them.
 *
 * RUNVIEW-1  Views and pages of runs of any size fit into an answer of an actor. They name left-out parts, or later pages have them.
 * RUNVIEW-2  A run names its newest undelivered reports to its caller, because the caller may wait for them.
 */
import { NOTHING } from "../../../model/spending.ts";
import { approversOf } from "../../../protocol/approval.ts";
import { spendingView } from "../../../protocol/budget.ts";
import type { ActiveStatus } from "../../../protocol/coordinator-api.ts";
import { PART_ENDED, PART_PROGRESS, RUN_ENDED, RUN_WAITS } from "../../../protocol/run-call.ts";
import type {
  ActiveToken,
  GateView,
  RunEntryView,
  RunSummary,
  RunView,
  RunWorkflow,
} from "../../../protocol/run-schemas.ts";
import type { ListedApproval } from "../../../protocol/waiting-approvals.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { type Page, type PageOptions, pageOptionsSchema } from "../../../shared/page.ts";
import { cut } from "../../../shared/text.ts";
import { toIso } from "../../../shared/time.ts";
import { validate } from "../../../shared/validation.ts";
import type { Mailbox } from "../../base/mailbox/mailbox.ts";
import { Draft } from "../core/draft.ts";
import { answerSchema, gateAnsweredBy } from "../core/gates.ts";
import { childRunId, operationOf } from "../core/operations.ts";
import type { RunRecord } from "../core/record.ts";
import { calledBy } from "../core/run-envelopes.ts";
import { repeatedEffects } from "../core/run-retry.ts";
import { OVERTIME, openGate } from "../core/run-time.ts";
import { isOver, type RunState, type Token } from "../core/state.ts";
import { correlationOf } from "../core/trace.ts";
import { type NodeWork, shownStatus, workOf } from "../core/work.ts";
import type { RunJournal } from "../store/run-journal.ts";

const MAX_ACTIVE = 1_000;
const MAX_ISSUES = 10;
const MAX_GATES = 100;
/** Characters of the input in a list. */
const MAX_PREVIEW = 200;
/** Characters of the state of one view, of its gates, and of a page of the journal, as JSON. An answer over RPC has at most 32 MiB. */
const MAX_PART = 4 * 1024 * 1024;

/** A run, and the time of its end in milliseconds since the epoch. */
interface ViewedRun {
  state: RunState;
  endedAt: number | undefined;
}

/** Returns a run as lists show it. */
export function runSummary(run: ViewedRun): RunSummary {
  const { record, error } = run.state;
  const input = JSON.stringify(record.input);
  const inputPreview = input.length <= MAX_PREVIEW ? input : `${cut(input, MAX_PREVIEW)}…`;
  return { ...members(run), inputPreview, ...defined({ errorCode: error?.code }) };
}

/** Returns a run as callers see it. */
export function runView(run: ViewedRun): RunView {
  const { state } = run;
  const { record, error, output, seq, made } = state;
  const places = new Draft(state, 0);
  const tokens = [...state.tokens.values()];
  return {
    ...members(run),
    correlationId: correlationOf(record),
    input: record.input,
    ...boundedState(state.state),
    ...defined({ output, error, retry: retryOf(state) }),
    seq,
    tokens: made.tokens,
    usage: spendingView(state.spent ?? NOTHING),
    active: tokens
      .slice(0, MAX_ACTIVE)
      .map((token) => activeToken(state.record, token, places.placeOf(token.scope).path)),
    gates: gatesOf(state, tokens),
  };
}

/** Returns a run without contents, for a person who may answer a gate and not see the run (RUNACCESS-4). */
export function outerView(run: ViewedRun): RunView {
  const empty = { input: {}, state: {}, tokens: 0, usage: spendingView(NOTHING), active: [], gates: [] };
  return { ...members(run), ...empty, seq: run.state.seq, correlationId: correlationOf(run.state.record) };
}

const REPORTS: Readonly<Record<string, string>> = {
  [RUN_ENDED]: "The end of this run",
  [PART_ENDED]: "The end of this part",
  [PART_PROGRESS]: "The progress of this part",
  [RUN_WAITS]: "A wait of this run",
};

/** Returns the issues of a run with a mailbox (RUNVIEW-2). The message of a letter's error is only for operators. */
export function runIssues(mailbox: Pick<Mailbox, "newestDeadLetters">): Pick<RunView, "issues"> {
  const letters = mailbox.newestDeadLetters(Object.keys(REPORTS), MAX_ISSUES);
  const issues = letters.map(({ envelope: { operationId, type, to }, error }) => {
    const message = `${REPORTS[type]} did not reach its caller "${to.id}", which may wait for it (${error.code}). Ask an operator to redeliver the dead letter ${operationId}.`;
    return { code: "UNDELIVERED" as const, deadLetter: operationId, message };
  });
  return issues.length === 0 ? {} : { issues };
}

function retryOf(state: RunState): RunView["retry"] {
  const { stopped, status } = state;
  if (status !== "failed" || stopped === undefined || stopped.tokens.size === 0) return undefined;
  return { tokens: stopped.tokens.size, repeatsOnce: repeatedEffects(state) };
}

function boundedState(state: JsonObject): Pick<RunView, "state" | "omitted"> {
  let left = MAX_PART;
  const omitted = Object.keys(state).filter((name) => {
    left -= JSON.stringify(state[name]).length;
    return left < 0;
  });
  if (omitted.length === 0) return { state };
  const hidden = new Set(omitted);
  return {
    state: Object.fromEntries(
      Object.entries(state).map(([name, value]) => [name, hidden.has(name) ? null : value]),
    ),
    omitted,
  };
}

/** Returns the gates that wait for people, as the inbox lists them. A finished run has no gates. */
export function waitingGates(state: RunState): ListedApproval[] {
  if (isOver(state)) return [];
  const { record, tokens } = state;
  const { library, id, version } = record.workflow;
  const place = { projectId: record.projectId, runId: record.id, workflow: { library, id, version } };
  return gatesOf(state, [...tokens.values()]).map(({ token, kind: question, rule, requester, ...gate }) => {
    const at = token === undefined ? state.time?.askedAt : tokens.get(token)?.createdAt;
    const asked = defined({ rule, requester });
    const approval = {
      kind: "gate" as const,
      ...place,
      ...gate,
      question,
      ...asked,
      requestedAt: toIso(at ?? record.createdAt),
    };
    return { approval, approvers: approversOf(asked, [record.startedBy]) };
  });
}

function gatesOf(state: RunState, tokens: readonly Token[]): GateView[] {
  const gates = overtimeGate(state);
  let length = 0;
  for (const token of tokens) {
    if (gates.length >= MAX_GATES) break;
    const gate = gateView(state.record, token);
    if (gate === undefined) continue;
    length += JSON.stringify(gate).length;
    // The first gate is always shown. Its input has its own limit.
    if (length > MAX_PART && gates.length > 0) break;
    gates.push(gate);
  }
  return gates;
}

export function runWorkflow({ record }: RunState): RunWorkflow {
  const { library, id, version, hash, definition } = record.workflow;
  return { library, id, version, hash, definition };
}

function members({ state, endedAt }: ViewedRun) {
  const { record } = state;
  const { library, id, version, definition } = record.workflow;
  return {
    id: record.id,
    ...defined({ name: record.name ?? definition.name }),
    workflow: { library, id, version },
    projectId: record.projectId,
    status: shownStatus(state),
    startedBy: record.startedBy,
    createdAt: toIso(record.createdAt),
    ...defined({ endedAt: endedAt === undefined ? undefined : toIso(endedAt) }),
  };
}

function activeToken(record: RunRecord, active: Token, path: string): ActiveToken {
  const { id: token, node, phase } = active;
  if (phase.kind !== "working") return { token, node, status: "pending", path };
  const { attempt, lostUntil } = phase;
  const work = workOf(record, active)?.kind ?? "task";
  const status = lostUntil === undefined ? STATUSES[work] : "lost";
  const runId = work === "workflow" || work === "part" ? childRunId(record, token, attempt) : undefined;
  const conversationId = work === "agent" ? calledBy(record, active, attempt) : undefined;
  return { token, node, status, path, attempt, ...defined({ runId, conversationId }) };
}

const STATUSES: Readonly<Record<NodeWork["kind"], ActiveStatus>> = {
  task: "executing",
  gate: "awaiting_human_input",
  workflow: "waiting_for_subworkflow",
  part: "waiting_for_part",
  agent: "waiting_for_agent",
};

/** Returns the question for more time, while it waits for a person. */
function overtimeGate({ record, time, ...state }: RunState): GateView[] {
  const gate = openGate({ time });
  if (gate === undefined || isOver(state)) return [];
  const { kind, prompt } = OVERTIME;
  return [
    { operationId: operationOf(record, gate), kind, prompt, input: {}, schema: answerSchema(OVERTIME) },
  ];
}

function gateView(record: RunRecord, active: Token): GateView | undefined {
  const { id: token, node, phase, again } = active;
  const work = workOf(record, active);
  if (phase.kind !== "working" || work?.kind !== "gate") return undefined;
  const { prompt = "", input, deadline } = phase;
  const { question } = work;
  const expiresAt = deadline === undefined ? undefined : toIso(deadline);
  const operationId = operationOf(record, token, again);
  const schema = answerSchema(question);
  const view = { operationId, token, node, kind: question.kind, prompt, input, schema };
  return { ...view, ...defined({ expiresAt }), ...gateAnsweredBy(record, question) };
}

const optionsSchema = pageOptionsSchema((cursor) => /^[0-9]{1,15}$/.test(cursor));

/** Returns a page of the journal, ascending. It ends before the entry that would exceed `MAX_PART` characters. Throws `INVALID_INPUT`. */
export function journalPage(
  journal: Pick<RunJournal, "from">,
  options: PageOptions = {},
): Page<RunEntryView> {
  const { limit, cursor } = validate(optionsSchema, options, "/options");
  const items: RunEntryView[] = [];
  let length = 0;
  const first = cursor === undefined ? 1 : Number(cursor) + 1;
  for (const { seq: start, at, entries } of journal.from(first))
    for (const [index, entry] of entries.entries()) {
      const seq = start + index;
      if (seq < first) continue;
      const view: RunEntryView = { seq, time: toIso(at), ...entry };
      length += JSON.stringify(view).length;
      if (items.length === limit || (items.length > 0 && length > MAX_PART))
        return { items, nextCursor: String(seq - 1) };
      items.push(view);
    }
  return { items };
}
