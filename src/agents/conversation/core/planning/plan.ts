/**
 * Planning: translates a signal into decisions. Pure: it uses no clock and no randomness.
 *
 * PLAN-1  The same state and input give equal decisions.
 * PLAN-2  A signal that no longer applies (a late or repeated result) gives no decisions.
 * PLAN-3  A refused signal throws and leaves the state unchanged.
 */
import { NOTHING } from "../../../../model/spending.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { coversReport } from "../erasure.ts";
import { extractionOf } from "../hooks.ts";
import type { ModelCompleted, ModelFailed, ModelNotCalled, Signal, ToolCompleted } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import type { CallingTurn } from "../turn.ts";
import { planAgentEnded, planCallExpiry, planReaders } from "./agent-call.ts";
import { planAgentAsked, planApproval } from "./approval.ts";
import { failTurn, planCancel, planResume, withOrigin } from "./cancel.ts";
import { planComplete, planUpdate } from "./complete.ts";
import { hasOutcome, planDeferral } from "./defer.ts";
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
import { planAgentDeleted, planJoin, planLeave } from "./participants.ts";
import { planAbandon, planExpiry, planRecovery } from "./recovery.ts";
import { chargeLateRun, isRepeated, planGivenResult, planStoppedTask, planToolResult } from "./results.ts";
import { planHold } from "./run-call.ts";
import { planRunInvited } from "./run-invitation.ts";
import { planSideCall, planSideCallRecovery } from "./side-call.ts";
import { planDrained, planIngest } from "./signal-queue.ts";
import { stopSideCalls } from "./stop-side-calls.ts";
import { planUserMessage } from "./user-message.ts";

export function plan(state: ConversationState, signal: Signal, input: PlanInput): AgentDecision[] {
  // SAFETY: the type of a signal names the function that takes it.
  const planned = PLANS[signal.type] as Plan<Signal>;
  return planned(state, signal, input);
}

type Plan<Taken> = (state: ConversationState, signal: Taken, input: PlanInput) => AgentDecision[];

const PLANS: { readonly [Type in Signal["type"]]: Plan<Extract<Signal, { type: Type }>> } = {
  "conversation.user.message": planUserMessage,
  "conversation.cancel": (state, signal, input) => {
    const extractions = signal.turn === undefined ? stopExtractions(state, input) : [];
    return withOrigin([...planCancel(state, signal, input), ...extractions], signal);
  },
  "conversation.resume": (state, signal) => withOrigin(planResume(state, signal), signal),
  "conversation.complete": planComplete,
  "conversation.update": planUpdate,
  "conversation.merged": (_, { merged, caller: by }) => [{ type: "NOTE_MERGE", merged, by }],
  "conversation.entry.erase": (state, { erasure, caller: by, envelopes }, input) => {
    const sends = envelopes.map((envelope) => ({ type: "SEND" as const, envelope }));
    const isTitled = erasure.turns.some(({ n }) => n === state.titling?.turn);
    const stops = stopSideCalls(
      state,
      input,
      ({ title }) => isTitled && title === true,
      "An entry was erased.",
    );
    return [...stops, { type: "ERASE_ENTRY", erasure, by }, ...sends];
  },
  "conversation.participant.add": planJoin,
  "conversation.participant.remove": planLeave,
  "conversation.agent.deleted": planAgentDeleted,
  "conversation.llm.completed": (state, signal, input) => {
    const turn = callingTurn(state, signal);
    return turn === undefined ? [] : planModelReply(state, turn, signal, input);
  },
  "conversation.llm.failed": (state, signal, input) => {
    const turn = callingTurn(state, signal);
    return turn === undefined ? [] : planModelFailure(state, turn, signal, input);
  },
  "conversation.llm.not_called": (state, signal, input) => {
    const turn = callingTurn(state, signal);
    return turn === undefined ? [] : [failTurn(turn, signal.error, input)];
  },
  "conversation.agent.asked": planAgentAsked,
  "conversation.agent.ended": planAgentEnded,
  "conversation.agent.invited": planInvited,
  "conversation.agent.readers": planReaders,
  "conversation.run.invited": planRunInvited,
  "conversation.work.held": planHold,
  "conversation.budget.leased": planLeased,
  "conversation.memories.learned": (_, signal) => [{ ...signal, type: "NOTE_LEARNED" }],
  "conversation.side_call.completed": planSideCall,
  "conversation.side_call.failed": planSideCall,
  "conversation.tool.completed": planResult,
  "conversation.tool.deferred": planDeferral,
  "conversation.tool.resolved": (state, signal) => planGivenResult(state, signal, hasOutcome),
  "conversation.tool.submitted": (state, signal) => planGivenResult(state, signal, isRepeated),
  "conversation.tool.late": (_, signal, input) => {
    const { type: _type, spent = NOTHING, ...late } = signal;
    const { turn: n, item, sessionId: agentId } = late;
    const notes = unlessErased([{ type: "NOTE_LATE_RESULT", ...late }], signal, input);
    return [...notes, ...chargeLateRun({ n, agentId }, item, spent)];
  },
  "conversation.approval.resolved": planApproval,
  "conversation.cmd.ingest": planIngest,
  "conversation.cmd.drained": (_, signal) => planDrained(signal),
  "conversation.cmd.expire": (state, _, input) => [
    ...planCallExpiry(state, input),
    ...planExpiry(state, input),
    ...planHookExpiry(state, input),
  ],
  "conversation.cmd.recover": (state, signal, input) => {
    // After the clock was set back, waiting work may have begun.
    const due = signal.wasSetBack ? Number.POSITIVE_INFINITY : input.now;
    return [
      ...planRecovery(state, due, input),
      ...planSideCallRecovery(state, due, input),
      ...planExtractionRecovery(state, due, input),
    ];
  },
  "conversation.cmd.abandon": planAbandon,
};

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
      : unlessErased(planStoppedTask(signal), signal, input);
  return turn.assembly?.item === signal.item
    ? planAssembly(state, turn, signal, input)
    : planToolResult(state, signal, input);
}

/** Returns the decisions about a report on a turn that is over; none if an erasure covers the report (ERASE-9). */
function unlessErased(
  decisions: AgentDecision[],
  { turn: n, item }: Pick<ToolCompleted, "turn" | "item">,
  { turns }: Pick<PlanInput, "turns">,
): AgentDecision[] {
  const turn = decisions.length === 0 ? undefined : turns?.turn(n);
  return turn !== undefined && coversReport(turn, item) ? [] : decisions;
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
