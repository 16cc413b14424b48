/**
 * Reports the ends of work after each commit of a conversation: metrics of model calls, spans, and lines of the log.
 *
 * METRIC-1  A call is reported once, when its record is closed and committed: with all of its attempts, and as the turn
 *           shows it. A crash right after the commit may lose the report.
 * METRIC-2  A call for a summary or for a title is reported once, when its work ends, also by a stop. Its run is the turn that began the
 *           call when it ended.
 */
import { type RequestMetrics, reportMetrics, requestInfo } from "../../../adapters/resilience/telemetry.ts";
import { profileAt } from "../../../library/definitions/version-chain.ts";
import { costOf } from "../../../model/cost.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { Span } from "../../../model/span.ts";
import { callId, sideCallId } from "../../../protocol/ids.ts";
import { defined } from "../../../shared/defined.ts";
import type { CallContext } from "../../../shared/identifiers.ts";
import type { RuntimeContext } from "../context.ts";
import { closedRecords, outcomeOf } from "../core/calls.ts";
import { sideProfile } from "../core/side-calls.ts";
import { endedSpans, sideSpan } from "../core/spans.ts";
import { type ConversationIdentity, callContext, chainOf } from "../core/state.ts";
import { type TracedTurn, traceOf } from "../core/trace.ts";
import type { ClosedSideCall, Transition } from "../core/transition.ts";
import type { AttemptsRecord, CallRecord, Turn } from "../core/turn.ts";
import type { CompactedTurn } from "./model-call.ts";

export class Reports {
  constructor(
    private readonly context: Pick<RuntimeContext, "metrics" | "spans" | "log">,
    /** Returns the turn that began a side call when it ended. */
    private readonly endedTurn: (n: number) => CompactedTurn,
  ) {}

  /** Reports a commit; `active` are the active turns before it. */
  report(
    record: ConversationIdentity,
    active: ReadonlyMap<number, Turn>,
    { touched, summaries }: Pick<Transition, "touched" | "summaries">,
  ): void {
    const { metrics, spans, log } = this.context;
    if (metrics === undefined && spans === undefined && log === undefined) return;
    const ended: Span[] = [];
    const sampled: Span[] = [];
    const add = (turn: TracedTurn, found: readonly Span[]) => {
      ended.push(...found);
      if (traceOf(turn).isSampled) sampled.push(...found);
    };
    for (const turn of touched.values()) {
      const before = active.get(turn.n);
      for (const one of metricsOfClosedCalls(record, before, turn)) reportMetrics(metrics, one);
      add(turn, endedSpans(record, before, turn));
    }
    for (const call of summaries) {
      const turn = this.endedTurn(call.turn);
      for (const one of metricsOfSideCall(record, turn, call)) reportMetrics(metrics, one);
      add(turn, sideSpan(record, turn, call));
    }
    if (sampled.length > 0) spans?.(sampled);
    log?.(ended);
  }
}

export function metricsOfClosedCalls(
  record: ConversationIdentity,
  before: Turn | undefined,
  turn: Turn,
): RequestMetrics[] {
  const known = closedRecords(before ?? {}).length;
  return closedRecords(turn)
    .slice(known)
    .flatMap((call, index) => metricsOf(record, turn, call, callId(turn, known + index)));
}

function metricsOf(
  record: ConversationIdentity,
  turn: Turn,
  call: CallRecord,
  requestId: string,
): RequestMetrics[] {
  const profile = profileAt(chainOf(record, turn.agentId), call.profile);
  return profile === undefined ? [] : metricsBy(profile, callContext(record, turn), call, requestId);
}

/** Returns the metrics of a finished side call; `turn` is the turn that began it when it ended. */
function metricsOfSideCall(
  record: ConversationIdentity,
  turn: CompactedTurn,
  { record: call, ...place }: ClosedSideCall,
): RequestMetrics[] {
  const context = callContext(record, turn);
  return metricsBy(sideProfile(record, place), context, call, sideCallId(turn, place));
}

function metricsBy(
  profile: ModelProfile,
  context: CallContext,
  call: AttemptsRecord,
  requestId: string,
): RequestMetrics[] {
  const { attempts, usage } = call;
  const outcome = outcomeOf(call);
  if (outcome === undefined) return [];
  const info = requestInfo({ profile, body: {}, context, trace: { attempt: attempts } }, requestId);
  const cost = usage === undefined ? undefined : costOf(usage, profile);
  return [{ span: "dramatis.chat", outcome, info, ...defined({ usage, cost }) }];
}
