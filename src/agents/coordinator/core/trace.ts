/**
 * The place of a run in a trace, and the places of its nodes. Pure.
 *
 * RUNTRACE-1  A run is in the trace of its caller, below the caller's span. A run that starts without a place begins a trace. A node is below
 *             its run, and the work of a node is below the node.
 * RUNTRACE-2  A run that starts without a correlation id has its own id as correlation id.
 */
import { placeOf, spanIdOf, traceparentOf } from "../../../model/span.ts";
import type { CallTrail } from "../../../shared/call-trail.ts";
import { operationOf } from "./operations.ts";
import type { RunRecord } from "./record.ts";
import type { Token } from "./state.ts";

export type TracedRun = Pick<RunRecord, "id" | "stem" | "correlationId" | "traceparent">;

/** Returns the correlation id of a run (RUNTRACE-2). */
export function correlationOf({ id, correlationId }: Pick<TracedRun, "id" | "correlationId">): string {
  return correlationId ?? id;
}

export const traceOf = ({ id, traceparent }: TracedRun) => placeOf(id, id, traceparent);

/** Returns the id of the span of a token's work. `before`: the number of attempts before the newest retry of the run. */
export function nodeSpanId(record: TracedRun, token: number, before: number): string {
  const id = operationOf(record, token);
  return spanIdOf(before === 0 ? id : `${id}:${before}`);
}

export function nodeTrail(
  record: TracedRun,
  { id, again }: Pick<Token, "id" | "again">,
): Required<Pick<CallTrail, "correlationId" | "traceparent">> {
  const place = { ...traceOf(record), spanId: nodeSpanId(record, id, again?.attempts ?? 0) };
  return { correlationId: correlationOf(record), traceparent: traceparentOf(place) };
}
