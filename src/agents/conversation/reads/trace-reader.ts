/**
 * Reads the part that a conversation has in the trace of a turn.
 *
 * TRACEREAD-1  The part of a turn contains the turns of its exchange: that of the user's message, and those that agents started after
 *              it. The part without a turn contains the conversation's first exchange: the work of the agent that a call reached.
 * TRACEREAD-2  It has the spans of work that is over, as they are exported, whether or not they were.
 */
import type { Span } from "../../../model/span.ts";
import type { PinnedHook } from "../../../protocol/definitions.ts";
import { calledConversationId, operationId } from "../../../protocol/ids.ts";
import { type SpanView, spanView, type TracePart } from "../../../protocol/trace.ts";
import { hookRunMark, isRefused, runMark } from "../core/called-workflow.ts";
import { exchangeOf } from "../core/exchange.ts";
import { awaitsApproval, type Operation } from "../core/operation.ts";
import { spansOf } from "../core/spans.ts";
import { type ConversationIdentity, type ConversationState, chainOf } from "../core/state.ts";
import { traceOf } from "../core/trace.ts";
import type { Turn } from "../core/turn.ts";
import type { TurnFacts } from "../store/turn-reading.ts";

/** Turns among which those of an exchange are looked for. */
export const MAX_TRACE_TURNS = 200;
/** Spans of one conversation in a trace. */
export const MAX_TRACE_SPANS = 1_000;

interface Turns {
  /** Returns a turn with its content. */
  read(n: number): Turn | undefined;
  /** Returns turns after number `n` without their content, ascending. */
  after(n: number, limit: number): { turns: readonly TurnFacts[]; more: boolean };
}

/** Returns the part of the trace of `turn`. */
export function readTrace(
  { record }: Pick<ConversationState, "record">,
  turn: Turn,
  turns: Turns,
): TracePart {
  const { numbers, more } = exchangeTurns(turn, turns);
  const spans: Span[] = [];
  const opened: string[] = [];
  for (const n of numbers) {
    const found = n === turn.n ? turn : turns.read(n);
    if (found === undefined) continue;
    spans.push(...spansOf(record, found));
    opened.push(
      ...hookRuns(record, found),
      ...found.operations.flatMap((operation) => openedBy(record, found, operation)),
    );
  }
  const partial = more || spans.length > MAX_TRACE_SPANS;
  return {
    traceId: traceOf(turn).traceId,
    spans: spans.slice(0, MAX_TRACE_SPANS).map(spanView),
    opened,
    ...(partial ? { partial } : {}),
  };
}

/** Returns the conversations and the runs that an operation opened: one for each attempt. */
function openedBy(record: ConversationIdentity, turn: Turn, operation: Operation): string[] {
  const { item, agent, attempt, result } = operation;
  const attempts = Array.from({ length: attempt }, (_, index) => index + 1);
  if (agent?.mode !== "delegate")
    return attempts.flatMap((one) => runMark(record, turn, { ...operation, attempt: one }).runId ?? []);
  // A refused call has opened no conversation.
  if (awaitsApproval(operation) || isRefused(result?.error?.code)) return [];
  const id = operationId(turn, item);
  return attempts.map((one) => calledConversationId(id, one, agent.jurisdiction));
}

/** Returns the runs of a turn's hooks, in their first attempts. */
function hookRuns(record: ConversationIdentity, turn: Turn): string[] {
  const { contextAssembly, memoryExtraction } = chainOf(record, turn.agentId);
  const { assembly, extraction } = turn.hooks ?? {};
  const runOf = (hook: PinnedHook | undefined, item: number | undefined) =>
    item === undefined ? undefined : hookRunMark(record, turn, hook, { item, attempt: 1 }).runId;
  return [runOf(contextAssembly, assembly), runOf(memoryExtraction, extraction)].filter(
    (id) => id !== undefined,
  );
}

/** Returns the numbers of the turns of an exchange, ascending; `more` if there may be others. */
function exchangeTurns(turn: Turn, { after, read }: Turns): { numbers: number[]; more: boolean } {
  const { of } = exchangeOf(turn);
  const numbers = [of];
  let end = endOf(of === turn.n ? turn : read(of));
  const later = after(of, MAX_TRACE_TURNS);
  for (const facts of later.turns) {
    // An exchange goes on only while one of its turns does.
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

/** Returns the spans of a turn as readers get them. */
export function spanViews(record: ConversationState["record"], turn: Turn): SpanView[] {
  return spansOf(record, turn).map(spanView);
}
