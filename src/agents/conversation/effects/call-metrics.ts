/**
 * The metrics of model calls, for the application's sink.
 *
 * METRIC-1  A call is reported once, when its record is closed and committed: with all of its attempts, and as the turn
 *           shows it. A crash right after the commit may lose the report.
 */

import { type RequestMetrics, requestInfo } from "../../../adapters/resilience/telemetry.ts";
import { profileAt } from "../../../library/version-chain.ts";
import { costOf } from "../../../model/cost.ts";
import { callId } from "../../../protocol/ids.ts";
import { defined } from "../../../shared/defined.ts";
import { closedRecords, outcomeOf } from "../core/calls.ts";
import {
  type CallRecord,
  type ConversationIdentity,
  callContext,
  chainOf,
  type Turn,
} from "../core/state.ts";

/** Returns the metrics of the calls that were closed since the turn was as `before`. */
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
  const { attempts, usage } = call;
  const outcome = outcomeOf(call);
  const profile = profileAt(chainOf(record, turn.agentId), call.profile);
  if (outcome === undefined || profile === undefined) return [];
  const context = callContext(record, turn);
  const info = requestInfo({ profile, body: {}, context, trace: { attempt: attempts } }, requestId);
  const cost = usage === undefined ? undefined : costOf(usage, profile);
  return [{ span: "dramatis.chat", outcome, info, ...defined({ usage, cost }) }];
}
