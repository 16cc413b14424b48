/**
 * The place of a turn in a trace, and the places of its operations and calls. Pure.
 *
 * TRACE-1  A turn that a user starts begins a trace, unless its message came with a place in one. The same trace has its operations, the
 *          conversations that it opens, and the turns of agents that it starts.
 * TRACE-2  If the message's trace is not sampled, its spans are not exported.
 */
import { placeOf, spanIdOf, traceparentOf } from "../../../model/span.ts";
import { callId, operationId, type TurnKey, turnId } from "../../../protocol/ids.ts";
import type { Turn } from "./turn.ts";

export type TracedTurn = TurnKey & Pick<Turn, "traceparent">;

/** Returns the place of a turn's first span, and its parent if it has one. */
export const traceOf = (turn: TracedTurn) => placeOf(turnId(turn), turn.stem, turn.traceparent);

/** Returns the id of the span of a turn's work period; `index` is the position of the period. */
export function workSpanId(turn: TurnKey, index: number): string {
  return spanIdOf(index === 0 ? turnId(turn) : `${turnId(turn)}:${index}`);
}

/** Returns the id of the span of a model call; `index` is its place among the turn's calls. */
export function callSpanId(turn: TurnKey, index: number): string {
  return spanIdOf(callId(turn, index));
}

export function operationSpanId(turn: TurnKey, item: number): string {
  return spanIdOf(operationId(turn, item));
}

export function approvalSpanId(turn: TurnKey, item: number): string {
  return spanIdOf(`${operationId(turn, item)}:approval`);
}

/** Returns the place of a turn, for the turns that follow from it. */
export function turnTraceparent(turn: TracedTurn): string {
  return traceparentOf(traceOf(turn));
}

/** Returns the place of an operation, for its tool, or for the conversation that it opens. */
export function operationTraceparent(turn: TracedTurn, item: number): string {
  return traceparentOf({ ...traceOf(turn), spanId: operationSpanId(turn, item) });
}
