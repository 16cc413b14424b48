/**
 * Reads the part that a conversation has in the trace of a turn.
 *
 * TRACEREAD-1  The part of a turn contains the turns of its exchange: that of the user's message, and those that agents started after
 *              it. The part without a turn contains the conversation's first exchange: the work of the agent that a call reached.
 * TRACEREAD-2  It has the spans of work that is over, as they are exported, whether or not they were.
 */
import type { Span } from "../../../model/span.ts";
import { calledConversationId, operationId } from "../../../protocol/ids.ts";
import type { SpanView, TracePart } from "../../../protocol/trace.ts";
import { defined } from "../../../shared/defined.ts";
import { toIso } from "../../../shared/time.ts";
import { exchangeOf } from "../core/exchange.ts";
import type { Operation } from "../core/operation.ts";
import { spansOf } from "../core/spans.ts";
import type { ConversationState } from "../core/state.ts";
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
    opened.push(...found.operations.flatMap((operation) => openedBy(found, operation)));
  }
  const partial = more || spans.length > MAX_TRACE_SPANS;
  return {
    traceId: traceOf(turn).traceId,
    spans: spans.slice(0, MAX_TRACE_SPANS).map(spanView),
    opened,
    ...(partial ? { partial } : {}),
  };
}

/** Returns the conversations that a call of an agent opened: one for each attempt. */
function openedBy(turn: Turn, { item, agent, attempt }: Operation): string[] {
  if (agent?.mode !== "delegate") return [];
  const id = operationId(turn, item);
  return Array.from({ length: attempt }, (_, index) =>
    calledConversationId(id, index + 1, agent.jurisdiction),
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

function spanView({
  spanId,
  parentSpanId,
  name,
  kind,
  startedAt,
  endedAt,
  attributes,
  error,
}: Span): SpanView {
  return {
    spanId,
    ...defined({ parentSpanId }),
    name,
    kind,
    startedAt: toIso(startedAt),
    endedAt: toIso(endedAt),
    // Arrays of a span are read-only; those of an answer are not.
    attributes: Object.fromEntries(
      Object.entries(attributes).map(([key, value]) => [key, typeof value === "object" ? [...value] : value]),
    ),
    ...defined({ error }),
  };
}
