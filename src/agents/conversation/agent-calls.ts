/**
 * The envelopes of calls of agents, at both ends.
 *
 * AGENTCALL-2  A result counts only if it comes from the conversation that the call opened; a cancellation, only if it comes from the
 *              caller.
 */

import { NOTHING } from "../../model/spending.ts";
import {
  AGENT_ASK,
  AGENT_CALL,
  AGENT_CANCEL,
  AGENT_READERS,
  AGENT_RESULT,
  type AgentOutcome,
  agentAskSchema,
  agentCallSchema,
  agentCancelSchema,
  agentReadersSchema,
  agentResultSchema,
} from "../../protocol/agent-call.ts";
import { type CallAddress, isCalled } from "../../protocol/call-address.ts";
import type { Envelope } from "../../protocol/envelope.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError } from "../../shared/errors.ts";
import { validate } from "../../shared/validation.ts";
import type { DeliveryOutcome } from "../base/mailbox/handlers.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import { resultOf } from "./core/planning/agent-call.ts";
import type { AgentEnded, Signal } from "./core/signals.ts";
import type { Turn } from "./core/turn.ts";
import { operationAt } from "./inbound/message-checks.ts";
import type { LargeResults } from "./large-results.ts";
import type { Opening } from "./opening.ts";
import type { ConversationUnit } from "./runtime.ts";

export interface AgentCallPorts {
  opening: Pick<Opening, "read" | "take" | "cancel" | "setReaders">;
  begin(): ConversationUnit;
  /** Returns a turn, active or over; `null` for an unknown number. */
  turn(n: number): Turn | null;
  large: Pick<LargeResults, "viewOf" | "viewOfRemote">;
}

/** Registers the handlers of calls, cancellations and results. Each stages its change in the transaction of the receipt. */
export function takeAgentCalls(
  mailbox: Pick<Mailbox, "receives" | "receivesAfter" | "outcomes">,
  { opening, begin, turn, large }: AgentCallPorts,
): void {
  mailbox.receivesAfter(
    AGENT_CALL,
    agentCallSchema,
    (call, { from, to }) => opening.read(call, from, to),
    (call, { envelope: { from }, afterCommit }, found) => {
      opening.take(call, from, found, afterCommit);
      return null;
    },
  );
  mailbox.receives(AGENT_CANCEL, agentCancelSchema, (cancel, { envelope: { from, to }, afterCommit }) => {
    opening.cancel(cancel, from, to, afterCommit);
    return null;
  });
  mailbox.receives(AGENT_READERS, agentReadersSchema, (body, { envelope: { from, to }, afterCommit }) => {
    opening.setReaders(body, from, to, afterCommit);
    return null;
  });
  const end = (
    address: CallAddress,
    ended: Pick<AgentEnded, "outcome" | "spent">,
    afterCommit: DeliveryOutcome["afterCommit"],
  ) => {
    const unit = begin();
    unit.stage(endSignals(address, ended, turn));
    afterCommit(() => unit.release());
  };
  mailbox.receivesAfter(
    AGENT_RESULT,
    agentResultSchema,
    async (result, envelope) => {
      checkSender(result, envelope);
      const { outcome, large: excerpt } = result;
      if (outcome === undefined || "error" in outcome) return undefined;
      return excerpt === undefined
        ? large.viewOf(result, outcome.text)
        : large.viewOfRemote(result, excerpt, envelope.from);
    },
    (result, { afterCommit }, view) => {
      const { outcome, spent } = result;
      const seen = view === undefined ? outcome : { text: "", view };
      end(result, { spent, ...defined({ outcome: seen }) }, afterCommit);
      return null;
    },
  );
  mailbox.receives(AGENT_ASK, agentAskSchema, ({ ask, outcome, ...address }, { envelope, afterCommit }) => {
    checkSender(address, envelope);
    const { turn: found, operation } = operationAt(address.operationId, turn);
    const { attempt } = address;
    const { item } = operation;
    const unit = begin();
    const asked = { turn: found.n, item, attempt, ask, ...defined({ outcome }) };
    unit.stage([{ type: "conversation.agent.asked", ...asked }]);
    afterCommit(() => unit.release());
    return null;
  });
  mailbox.outcomes(AGENT_CALL, ({ envelope, outcome, afterCommit }) => {
    // Where it is unknown if the call arrived, its result may still come: the time limit of the call decides.
    if (outcome.status !== "failed") return;
    const call = validate(agentCallSchema, envelope.body);
    end(call, { outcome: unreached(call.agentId, outcome.error.message), spent: NOTHING }, afterCommit);
  });
}

/** Throws `FORBIDDEN` unless the conversation that a call opened has sent an envelope (AGENTCALL-2). */
function checkSender(address: CallAddress, { from, to }: Pick<Envelope, "from" | "to">): void {
  if (from.kind === "conversation" && isCalled(address, to, from)) return;
  throw new DramatisError("FORBIDDEN", "Only the conversation that a call opened may tell of it.");
}

/**
 * Returns the signals of the end of a call: also the note to the model where a stopped call has an answer all the same (OP-6). Throws
 * `NOT_FOUND` for an operation that the conversation does not have.
 */
function endSignals(
  { operationId, attempt }: CallAddress,
  ended: Pick<AgentEnded, "outcome" | "spent">,
  turnAt: (n: number) => Turn | null,
): Signal[] {
  const { turn, operation } = operationAt(operationId, turnAt);
  const { item, name, effect, status } = operation;
  const { n, agentId } = turn;
  const end: AgentEnded = { type: "conversation.agent.ended", turn: n, item, attempt, agentId, ...ended };
  const { outcome } = ended;
  const isLate = status === "cancelled" && effect === "once" && operation.attempt === attempt;
  if (!isLate || outcome === undefined || "error" in outcome) return [end];
  const result = resultOf(operation, outcome);
  return [
    end,
    { type: "conversation.tool.late", turn: n, item, sessionId: agentId, operationId, name, result },
  ];
}

function unreached(agentId: string, why: string): AgentOutcome {
  const message = `The agent "${agentId}" could not be called: ${why}`;
  return { error: { code: "EXECUTION_FAILED", message, retriable: true } };
}
