/**
 * The metrics of model calls, for the application's sink.
 *
 * METRIC-1  A call is reported once, when its record is closed and committed: with all of its attempts, and as the turn
 *           shows it. A crash right after the commit may lose the report.
 * METRIC-2  So is a call for a summary: once, when its compaction ends, also by a stop. Its run is the turn whose end began it.
 */

import { type RequestMetrics, requestInfo } from "../../../adapters/resilience/telemetry.ts";
import { compactionProfile, profileAt } from "../../../library/definitions/version-chain.ts";
import { costOf } from "../../../model/cost.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { callId, summaryId } from "../../../protocol/ids.ts";
import { defined } from "../../../shared/defined.ts";
import type { CallContext } from "../../../shared/identifiers.ts";
import { closedRecords, outcomeOf } from "../core/calls.ts";
import { type ConversationIdentity, callContext, chainOf } from "../core/state.ts";
import type { AttemptsRecord, CallRecord, Turn } from "../core/turn.ts";
import type { CompactedTurn } from "./model-call.ts";

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
  const profile = profileAt(chainOf(record, turn.agentId), call.profile);
  return profile === undefined ? [] : metricsBy(profile, callContext(record, turn), call, requestId);
}

/** Returns the metrics of a finished call for a summary; `turn` is the turn that began the compaction when it ended. */
export function metricsOfSummary(
  record: ConversationIdentity,
  turn: CompactedTurn,
  call: AttemptsRecord,
): RequestMetrics[] {
  const profile = compactionProfile(chainOf(record, turn.agentId));
  return metricsBy(profile, callContext(record, turn), call, summaryId(turn));
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
