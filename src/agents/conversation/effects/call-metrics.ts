/**
 * What a metrics sink is told of the model calls of turns.
 *
 * METRIC-1  A call is reported once, when the record of it that is kept with its turn is closed and committed: with all
 *           of its attempts, as the turn shows it. A crash right behind the commit may lose the report.
 */

import { type RequestMetrics, requestInfo } from "../../../adapters/resilience/telemetry.ts";
import { profileAt } from "../../../library/version-chain.ts";
import { costOf } from "../../../model/cost.ts";
import { defined } from "../../../shared/defined.ts";
import { outcomeOf } from "../core/calls.ts";
import { callId, turnId } from "../core/ids.ts";
import type { CallRecord, ConversationIdentity, Turn } from "../core/state.ts";

const SPAN = "dramatis.chat";

/** The calls of a turn that have come to their end since it was as `before`. */
export function closedCalls(
  record: ConversationIdentity,
  before: Turn | undefined,
  turn: Turn,
): RequestMetrics[] {
  const known = (before?.calls ?? []).filter(({ finishedAt }) => finishedAt !== undefined).length;
  return (turn.calls ?? [])
    .slice(known)
    .flatMap((call, index) => metricsOf(record, turn, call, known + index));
}

function metricsOf(
  record: ConversationIdentity,
  turn: Turn,
  call: CallRecord,
  index: number,
): RequestMetrics[] {
  const { tenant, projectId, id: conversationId, chain } = record;
  const { stem, n, agentId } = turn;
  const { attempts, usage } = call;
  const outcome = outcomeOf(call);
  const profile = profileAt(chain, call.profile);
  if (outcome === undefined || profile === undefined) return [];
  const context = { tenant, projectId, agentId, conversationId, turnId: turnId(stem, n) };
  const request = { profile, body: {}, context, trace: { attempt: attempts } };
  return [
    {
      span: SPAN,
      outcome,
      info: requestInfo(request, callId(stem, n, index)),
      ...defined({ usage, cost: costOf(usage, profile) }),
    },
  ];
}
