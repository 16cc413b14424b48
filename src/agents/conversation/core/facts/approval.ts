/**
 * The requests for approval: of the conversation's own calls, and of the agents that it calls. Pure.
 *
 * ELICIT-1  A question of an MCP server during a call is a request for approval, with the message and the schema of the question. The call waits
 *           durably. After the approval the call is sent again, with the answer and the state of the server. A denial ends the call.
 * ELICIT-2  The values of an answer are in the operation until the call ends. No journal and no frame has them.
 */
import { type AskView, type CallAsk, MAX_ASKS } from "../../../../protocol/agent-call.ts";
import type { ApprovalOutcome } from "../../../../protocol/approval.ts";
import type { Caller } from "../../../../protocol/caller-schemas.ts";
import { type ElicitationView, type Elicited, viewOfElicited } from "../../../../protocol/elicitation.ts";
import { defined } from "../../../../shared/defined.ts";
import type { Json, JsonObject } from "../../../../shared/json.ts";
import { toIso } from "../../../../shared/time.ts";
import { withOutcome } from "../isolation.ts";
import { answered, asking, callDeadline, type Operation, withAsk } from "../operation.ts";
import { answeredBy, shownCall } from "../shown-call.ts";
import { chainOf } from "../state.ts";
import type { Transition } from "../transition.ts";
import { askView } from "../view-members.ts";
import { resumed } from "./agent-call.ts";
import type { EntryOfTurn, FrameBody, TurnStep } from "./fact.ts";

export interface AnswerData {
  outcome: ApprovalOutcome;
  by?: Caller;
  reason?: string;
  /** The request of an agent below. */
  of?: AskView;
}

export const approval = {
  /** Waits until `deadline` for the answer of a person to a question of the server that answers the call (ELICIT-1). */
  ASK_PERSON(
    on: TurnStep,
    { item, elicited, deadline }: { item: number; elicited: Elicited; deadline: number },
  ): Transition {
    const changed = on.withOperation(item, (operation) => asking(operation, elicited, deadline));
    // SAFETY: a question is plain data.
    const elicitation = viewOfElicited({ ...elicited, round: nextRound(on, item) }) as unknown as Json;
    const data = { expiresAt: toIso(deadline), elicitation };
    return on.replace({ ...changed, ...withOutcome(on.turn) }, on.entry("approval.requested", item, data));
  },

  /** Ends the wait of an operation for a person. An approved operation starts, others need a result. */
  RESOLVE_APPROVAL(
    on: TurnStep,
    {
      item,
      outcome,
      by,
      reason,
      values,
    }: { item: number; outcome: ApprovalOutcome; by?: Caller; reason?: string; values?: JsonObject },
  ): Transition {
    const given = { outcome, ...defined({ by, reason }) };
    const changed = on.withOperation(item, (operation) =>
      answered(operation, { ...given, at: on.now }, values),
    );
    const next = { ...resumed(changed), ...withOutcome(on.turn) };
    return on.replace(next, on.entry("approval.resolved", item, given));
  },

  /** Shows that an agent, called by an operation, asks a person. */
  NOTE_ASK(on: TurnStep, { item, ask }: { item: number; ask: CallAsk }): Transition {
    const changed = on.withOperation(item, (operation) => withAsk(operation, ask));
    const data = { expiresAt: toIso(ask.expiresAt), of: jsonOf(ask) };
    const next = on.replace(changed, on.entry("approval.requested", item, data));
    return { ...next, asks: [...next.asks, ask] };
  },

  /** Shows the answer of a person, or its timeout. */
  NOTE_ANSWER(
    on: TurnStep,
    { item, ask, outcome }: { item: number; ask: CallAsk; outcome: ApprovalOutcome },
  ): Transition {
    const changed = on.withOperation(item, (operation) => answeredAsk(operation, ask.operationId, on.now));
    // The request's entry already has the input.
    const { input: _input, modelInput: _model, target: _target, ...rest } = ask;
    const data = { outcome, of: jsonOf(rest) };
    return on.replace(resumed(changed), on.entry("approval.resolved", item, data));
  },
};

function jsonOf(ask: CallAsk): Json {
  // SAFETY: a request is plain data.
  return askView(ask) as unknown as Json;
}

function answeredAsk(operation: Operation, operationId: string, now: number): Operation {
  const { agent } = operation;
  if (agent === undefined) return operation;
  const { asks: before = [], answered: known = [], ...rest } = agent;
  const asks = before.filter((ask) => ask.operationId !== operationId);
  const early = asks.length < before.length ? known : [...known, operationId].slice(-MAX_ASKS);
  const others = early.length === 0 ? rest : { ...rest, answered: early };
  if (asks.length > 0) return { ...operation, agent: { ...others, asks, answeredAt: now } };
  return { ...operation, deadline: callDeadline(operation, now), agent: { ...others, answeredAt: now } };
}

export const approvalFrames = {
  "approval.requested": (
    { expiresAt = "", of, elicitation }: { expiresAt?: string; of?: AskView; elicitation?: ElicitationView },
    { turn, operation, record }: EntryOfTurn,
  ): FrameBody => {
    const type = "approval.requested";
    if (of !== undefined) {
      const { name, input = {}, modelInput, target, rule, requester, policy, elicitation: asked } = of;
      const shown = defined({ modelInput, target, rule, requester, policy, elicitation: asked });
      return { type, data: { name, input, ...shown, expiresAt: of.expiresAt, of } };
    }
    if (operation === undefined) return { type, data: { name: "", input: {}, expiresAt } };
    const shown = shownCall(chainOf(record, turn.agentId), operation);
    const { elicitation: _newest, ...by } = answeredBy(record, turn, operation);
    return { type, data: { name: operation.name, ...shown, expiresAt, ...by, ...defined({ elicitation }) } };
  },
  "approval.resolved": (data: AnswerData): FrameBody => ({ type: "approval.resolved", data }),
};

function nextRound({ turn }: TurnStep, item: number): number {
  return (turn.operations.find((operation) => operation.item === item)?.elicited?.round ?? 0) + 1;
}
