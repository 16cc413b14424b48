/**
 * Reads the conversation's part of a turn's trace.
 *
 * TRACEREAD-1  The part of a turn contains the turns of its exchange: the turn of the user's message, and the turns that agents started
 *              after it. The part without a turn contains the conversation's first exchange: the work of the agent that a call reached.
 * TRACEREAD-3  The part for a run contains the turns of the exchange that the run invited, and the turns that agents started after them.
 * TRACEREAD-4  A person who may not read the runs of the turn gets the part without them, and the part says that it is partial.
 * TRACEREAD-2  The part has the spans of finished work in their export form, even if they were not exported, and the spans of open work up to
 *              the time of the reading.
 */
import type { Span } from "../../../model/span.ts";
import type { PinnedHook } from "../../../protocol/definitions.ts";
import { calledConversationId, operationId, turnId } from "../../../protocol/ids.ts";
import { type SpanView, spanView, type TracePart } from "../../../protocol/trace.ts";
import { mayReadAll, type Principal } from "../../../shared/principal.ts";
import { hookRunMember, isRefused, runMember, userOf } from "../core/called-workflow.ts";
import { exchangeOf } from "../core/exchange.ts";
import { awaitsApproval, type Operation } from "../core/operation.ts";
import { spansOf, spansUpTo } from "../core/spans.ts";
import { type ConversationIdentity, type ConversationState, chainOf } from "../core/state.ts";
import { traceOf } from "../core/trace.ts";
import type { Turn } from "../core/turn.ts";
import type { TurnFacts } from "../store/turn-reading.ts";

/** Maximum number of turns in the search for the turns of an exchange. */
export const MAX_TRACE_TURNS = 200;
export const MAX_TRACE_SPANS = 1_000;

interface Turns {
  read(n: number): Turn | undefined;
  /** Returns turns after number `n` without their content, ascending. */
  after(n: number, limit: number): { turns: readonly TurnFacts[]; more: boolean };
}

export interface TraceOptions {
  principal: Principal;
  /** The time of the reading, in milliseconds since the epoch. */
  now: number;
  /** The part contains only the turns that this run invited, and the turns after them. */
  invitedBy?: string | undefined;
}

export function readTrace(
  { record }: Pick<ConversationState, "record">,
  turn: Turn,
  turns: Turns,
  { principal, now, invitedBy }: TraceOptions,
): TracePart {
  const { numbers, more } = exchangeTurns(turn, turns);
  const spans: Span[] = [];
  const opened: string[] = [];
  const contained = new Set<string>();
  let hidden = false;
  for (const n of numbers) {
    const found = n === turn.n ? turn : turns.read(n);
    if (found === undefined || !isContained(found, invitedBy, contained)) continue;
    contained.add(turnId(found));
    spans.push(...spansUpTo(record, found, now));
    const runs = runsOf(record, found);
    const mayRead = mayReadAll(principal) || userOf(record, found) === principal.subject;
    hidden ||= runs.length > 0 && !mayRead;
    if (mayRead) opened.push(...runs);
    opened.push(...found.operations.flatMap((operation) => calledBy(found, operation)));
  }
  const partial = more || hidden || spans.length > MAX_TRACE_SPANS;
  return {
    traceId: traceOf(turn).traceId,
    spans: spans.slice(0, MAX_TRACE_SPANS).map(spanView),
    opened,
    ...(partial ? { partial } : {}),
  };
}

/** Reports whether the part contains a turn. Turns come in their order. */
function isContained(
  { caller }: Turn,
  invitedBy: string | undefined,
  contained: ReadonlySet<string>,
): boolean {
  if (invitedBy === undefined) return true;
  return caller.type === "workflow"
    ? caller.runId === invitedBy
    : caller.type === "agent" && contained.has(caller.turnId);
}

/** Returns the conversations that an operation opened: one for each attempt. */
function calledBy(turn: Turn, operation: Operation): string[] {
  const { item, agent, attempt, result } = operation;
  // A refused call has opened no conversation.
  if (agent?.mode !== "delegate" || awaitsApproval(operation) || isRefused(result?.error?.code)) return [];
  const id = operationId(turn, item);
  return attemptsTo(attempt).map((one) => calledConversationId(id, one, agent.jurisdiction));
}

/** Returns the runs of the hooks and the operations of a turn: one for each attempt. */
function runsOf(record: ConversationIdentity, turn: Turn): string[] {
  const { contextAssembly, memoryExtraction } = chainOf(record, turn.agentId);
  const { assembly, attempt, earlier = [], extraction, extractionAttempt } = turn.hooks ?? {};
  const runsOfHook = (hook: PinnedHook | undefined, item: number | undefined, attempts = 1) =>
    item === undefined
      ? []
      : attemptsTo(attempts).flatMap(
          (one) => hookRunMember(record, turn, hook, { item, attempt: one }).runId ?? [],
        );
  return [
    ...earlier.flatMap(([item, attempts]) => runsOfHook(contextAssembly, item, attempts)),
    ...runsOfHook(contextAssembly, assembly, attempt),
    ...runsOfHook(memoryExtraction, extraction, extractionAttempt),
    ...turn.operations.flatMap((operation) =>
      attemptsTo(operation.attempt).flatMap(
        (one) => runMember(record, turn, { ...operation, attempt: one }).runId ?? [],
      ),
    ),
  ];
}

function attemptsTo(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1);
}

/** Returns the numbers of the turns of an exchange, ascending; `more` if there may be others. */
function exchangeTurns(turn: Turn, { after, read }: Turns): { numbers: number[]; more: boolean } {
  const { of } = exchangeOf(turn);
  const numbers = [of];
  let end = endOf(of === turn.n ? turn : read(of));
  const later = after(of, MAX_TRACE_TURNS);
  for (const facts of later.turns) {
    // An exchange is open only while it has an active turn.
    if (facts.createdAt > end) return { numbers, more: false };
    if (facts.exchange?.of !== of) continue;
    numbers.push(facts.n);
    end = Math.max(end, endOf(facts));
  }
  return { numbers, more: later.more };
}

function endOf(turn: Pick<Turn, "completedAt"> | undefined): number {
  return turn?.completedAt ?? Infinity;
}

export function spanViews(record: ConversationState["record"], turn: Turn): SpanView[] {
  return spansOf(record, turn).map(spanView);
}
