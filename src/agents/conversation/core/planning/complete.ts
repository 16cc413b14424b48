/**
 * Planning the end of a conversation by its users, and changes of its settings. Pure.
 *
 * LIFE-3  Only a person who may speak in a conversation completes it: no agent, tool, workflow or time does. The conversation of a call is
 *         the exception (DELEGATE-6). The turns end as by a stop, with the side calls and extractions, in the same commit. A second
 *         completion has no effect.
 * LIFE-4  An ended conversation accepts only the removal of a user, the erasure of entries and notes of merges. Messages, stops, resumes and other changes get `CONVERSATION_CLOSED`. A
 *         repeated message has the same answer as before. Late results are noted as results of stopped turns.
 * TITLE-1  A person who may speak renames an open conversation. Its readers and the list get the new title. The same title again changes
 *          nothing, unless an automatic title may still follow: then the title, or its absence, becomes the person's.
 */
import { checkPrices } from "../../../../library/registry/prices.ts";
import { defined } from "../../../../shared/defined.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import { canonicalJson, type Json } from "../../../../shared/json.ts";
import type { Update } from "../change-signals.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { checkOpen } from "../life.ts";
import type { ConversationState } from "../state.ts";
import type { Complete, Stop } from "../stop-signals.ts";
import { presentAgents } from "./address.ts";
import { stopTurn } from "./cancel.ts";
import { stopExtractions } from "./hooks.ts";
import { stopSideCalls } from "./stop-side-calls.ts";

/** The error of a turn that ends with its conversation. */
export const ENDED: ErrorData = {
  code: "CANCELLED",
  message: "The conversation was ended.",
  retriable: false,
};

/** Ends the conversation for good. Throws `CONVERSATION_CLOSED` if it has failed. */
export function planComplete(
  state: ConversationState,
  { caller: by, reason }: Complete,
  input: PlanInput,
): AgentDecision[] {
  if (state.status === "completed") return [];
  checkOpen(state);
  return endAs("completed", state, { caller: by, ...defined({ reason }) }, ENDED, input);
}

/** Ends the conversation, and all its work with `error`. */
export function endAs(
  status: "completed" | "failed",
  state: ConversationState,
  stop: Stop,
  error: ErrorData,
  input: PlanInput,
): AgentDecision[] {
  const { caller: by, reason } = stop;
  return [
    ...[...state.active.values()].flatMap((turn) => stopTurn(turn, error, stop, input)),
    ...stopSideCalls(state, input),
    ...stopExtractions(state, input),
    { type: "END_CONVERSATION", status, by, ...defined({ reason }) },
  ];
}

/** Throws `INVALID_INPUT` for a budget in dollars if a model has no price, and `CONVERSATION_CLOSED` after the conversation's end. */
export function planUpdate(
  state: ConversationState,
  { title, order, budget, orchestration, caller: by }: Update,
  input: Pick<PlanInput, "sideCallInProgress"> = {},
): AgentDecision[] {
  checkOpen(state);
  const decisions: AgentDecision[] = [];
  const { title: current, automaticTitle } = state.record;
  const isUntitled = current === null && (state.turns === 0 || state.active.has(1));
  const mayChange = (automaticTitle ?? isUntitled) || state.titling !== undefined;
  if (title !== undefined && (mayChange || title !== current)) {
    const titling = stopSideCalls(state, input, (call) => call.title === true, "A person changed the title.");
    decisions.push(...titling, { type: "SET_TITLE", title, by });
  }
  if (orchestration !== undefined && orchestration !== (state.orchestration ?? true))
    decisions.push({ type: "SET_ORCHESTRATION", on: orchestration, by });
  if (order !== undefined && order !== state.order) decisions.push({ type: "SET_ORDER", order, by });
  if (budget !== undefined && textOf(budget) !== textOf(state.budget ?? null)) {
    if (budget !== null) for (const { chain } of presentAgents(state.record)) checkPrices(chain, budget);
    decisions.push({ type: "SET_BUDGET", budget, by });
  }
  return decisions;
}

function textOf(budget: Update["budget"]): string {
  // SAFETY: a budget is JSON.
  return canonicalJson((budget ?? null) as unknown as Json);
}
