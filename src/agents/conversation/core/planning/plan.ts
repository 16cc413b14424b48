/**
 * Planning: translates a signal into decisions. Pure: it uses neither clock nor randomness.
 *
 * PLAN-1  The same state and input give equal decisions.
 * PLAN-2  A signal that no longer applies (a late or repeated result) gives no decisions.
 * PLAN-3  A signal that is refused throws and leaves no trace.
 */

import { NOTHING } from "../../../../model/spending.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { extractionOf } from "../hooks.ts";
import type { ModelCompleted, ModelFailed, ModelNotCalled, Signal, ToolCompleted } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import type { CallingTurn } from "../turn.ts";
import { planAgentAsked } from "./agent-ask.ts";
import { planAgentEnded, planCallExpiry, planReaders } from "./agent-call.ts";
import { planApproval } from "./approval.ts";
import { failTurn, planCancel, planResume } from "./cancel.ts";
import { planCompactionRecovery, planSummary } from "./compaction.ts";
import { planComplete } from "./complete.ts";
import { planDeferral, planDeferredResult } from "./defer.ts";
import {
  planAssembly,
  planExtraction,
  planExtractionRecovery,
  planHookExpiry,
  stopExtractions,
} from "./hooks.ts";
import { planLeased } from "./lease.ts";
import { planInvited } from "./loop-in.ts";
import { planModelFailure } from "./model-failure.ts";
import { planModelReply } from "./model-reply.ts";
import { withOrigin } from "./origin.ts";
import { planAgentDeleted, planJoin, planLeave } from "./participants.ts";
import { planAbandon, planExpiry, planRecovery } from "./recovery.ts";
import { chargeLateRun, planClientResult, planStoppedTask, planToolResult } from "./results.ts";
import { planHeld } from "./run-call.ts";
import { planRunInvited } from "./run-invitation.ts";
import { planDrained, planIngest } from "./signal-queue.ts";
import { planUpdate } from "./update.ts";
import { planUserMessage } from "./user-message.ts";

export function plan(state: ConversationState, signal: Signal, input: PlanInput): AgentDecision[] {
  switch (signal.type) {
    case "conversation.user.message":
      return planUserMessage(state, signal, input);
    case "conversation.cancel":
      return withOrigin(
        [
          ...planCancel(state, signal, input),
          ...(signal.turn === undefined ? stopExtractions(state, input) : []),
        ],
        signal,
      );
    case "conversation.resume":
      return withOrigin(planResume(state, signal), signal);
    case "conversation.complete":
      return planComplete(state, signal, input);
    case "conversation.cmd.ingest":
      return planIngest(state, signal);
    case "conversation.cmd.drained":
      return planDrained(signal);
    case "conversation.participant.add":
      return planJoin(state, signal, input);
    case "conversation.participant.remove":
      return planLeave(state, signal, input);
    case "conversation.agent.deleted":
      return planAgentDeleted(state, signal, input);
    case "conversation.entry.erase": {
      const { erasure, caller: by, envelopes } = signal;
      const sends = envelopes.map((envelope) => ({ type: "SEND" as const, envelope }));
      return [{ type: "ERASE_ENTRY", erasure, by }, ...sends];
    }
    case "conversation.update":
      return planUpdate(state, signal);
    case "conversation.llm.completed": {
      const turn = callingTurn(state, signal);
      return turn === undefined ? [] : planModelReply(state, turn, signal, input);
    }
    case "conversation.llm.failed": {
      const turn = callingTurn(state, signal);
      return turn === undefined ? [] : planModelFailure(state, turn, signal, input);
    }
    case "conversation.llm.not_called": {
      const turn = callingTurn(state, signal);
      return turn === undefined ? [] : [failTurn(turn, signal.error, input)];
    }
    case "conversation.agent.asked":
      return planAgentAsked(state, signal);
    case "conversation.work.held":
      return planHeld(state, signal);
    case "conversation.agent.readers":
      return planReaders(state, signal);
    case "conversation.agent.ended":
      return planAgentEnded(state, signal, input);
    case "conversation.agent.invited":
      return planInvited(state, signal, input);
    case "conversation.run.invited":
      return planRunInvited(state, signal, input);
    case "conversation.budget.leased":
      return planLeased(state, signal);
    case "conversation.memories.learned":
      return [{ ...signal, type: "NOTE_LEARNED" }];
    case "conversation.compaction.completed":
    case "conversation.compaction.failed":
      return planSummary(state, signal, input);
    case "conversation.tool.completed":
      return planResult(state, signal, input);
    case "conversation.tool.deferred":
      return planDeferral(state, signal, input);
    case "conversation.tool.resolved":
      return planDeferredResult(state, signal);
    case "conversation.tool.late": {
      const { type: _type, spent = NOTHING, ...late } = signal;
      const { turn: n, item, sessionId: agentId } = late;
      return [{ type: "NOTE_LATE_RESULT", ...late }, ...chargeLateRun({ n, agentId }, item, spent)];
    }
    case "conversation.tool.submitted":
      return planClientResult(state, signal);
    case "conversation.approval.resolved":
      return planApproval(state, signal);
    case "conversation.cmd.expire":
      return [...planCallExpiry(state, input), ...planExpiry(state, input), ...planHookExpiry(state, input)];
    case "conversation.cmd.recover": {
      // After the clock was set back, waiting work may have begun.
      const due = signal.wasSetBack ? Number.POSITIVE_INFINITY : input.now;
      return [
        ...planRecovery(state, due, input),
        ...planCompactionRecovery(state, due, input),
        ...planExtractionRecovery(state, due, input),
      ];
    }
    case "conversation.cmd.abandon":
      return planAbandon(state, signal, input);
    default:
      return signal satisfies never;
  }
}

/** Plans after a result of the Executor or of a run: of a tool, or of a hook. The use of a run counts also if its result does not (LEDGER-7). */
function planResult(state: ConversationState, signal: ToolCompleted, input: PlanInput): AgentDecision[] {
  const planned = planEnd(state, signal, input);
  const { turn: n, item, agentId, spent } = signal;
  if (planned.length > 0 || agentId === undefined || spent === undefined) return planned;
  return chargeLateRun({ n, agentId }, item, spent);
}

function planEnd(state: ConversationState, signal: ToolCompleted, input: PlanInput): AgentDecision[] {
  const turn = state.active.get(signal.turn);
  if (turn === undefined)
    return extractionOf(state, signal.turn)?.item === signal.item
      ? planExtraction(state, signal, input)
      : planStoppedTask(signal);
  return turn.assembly?.item === signal.item
    ? planAssembly(state, turn, signal, input)
    : planToolResult(state, signal, input);
}

/** Returns the turn with the attempt that the signal answers; `undefined` for a late or repeated signal. */
function callingTurn(
  { active }: ConversationState,
  { turn: n, item, attempt }: ModelCompleted | ModelFailed | ModelNotCalled,
): CallingTurn | undefined {
  const turn = active.get(n);
  const call = turn?.call ?? null;
  if (turn === undefined || call === null || call.item !== item || call.attempt !== attempt) return undefined;
  return { ...turn, call };
}
