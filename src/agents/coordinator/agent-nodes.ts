/**
 * The envelopes of the agents that a run asks.
 *
 * AGENTNODE-2  An answer counts only if it comes from the conversation that the attempt has opened, or that has started the run. A request for approval waits in that
 *              conversation, which the principal who started the run may read and answer.
 */
import type { z } from "zod";
import {
  AGENT_ASK,
  AGENT_CALL,
  AGENT_RESULT,
  type AgentOutcome,
  agentAskSchema,
  agentCallSchema,
  agentResultSchema,
} from "../../protocol/agent-call.ts";
import type { Envelope } from "../../protocol/envelope.ts";
import { calledConversationId } from "../../protocol/ids.ts";
import type { RunCallAddress } from "../../protocol/run-call.ts";
import { AGENT_INVITE, agentInviteSchema } from "../../protocol/run-invitation.ts";
import { DramatisError } from "../../shared/errors.ts";
import { jurisdictionOf } from "../../shared/location.ts";
import { validate } from "../../shared/validation.ts";
import type { DeliveryOutcome } from "../base/mailbox/handlers.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import type { RunRecord } from "./core/record.ts";
import { type RunSignal, undelivered } from "./core/signals.ts";
import type { NodeOutcome } from "./core/state.ts";
import { usedSignals } from "./core/usage.ts";
import type { RunRuntime } from "./run-runtime.ts";

/** Registers the handlers of answers. Each stages its change in the transaction of the receipt. */
export function takeAgentAnswers(
  mailbox: Pick<Mailbox, "receives" | "outcomes">,
  runtime: Pick<RunRuntime, "begin" | "endSignals" | "state">,
): void {
  const stage = (signals: readonly RunSignal[], afterCommit: DeliveryOutcome["afterCommit"]) => {
    if (signals.length === 0) return;
    const unit = runtime.begin();
    unit.stage(signals);
    afterCommit(() => unit.release());
  };
  mailbox.receives(
    AGENT_RESULT,
    agentResultSchema,
    ({ outcome, spent, ...address }, { envelope, afterCommit }) => {
      checkSender(address, envelope, runtime.state.record);
      // A later report has no outcome: it brings what calls below have used up.
      const ends = outcome === undefined ? [] : runtime.endSignals(address, outcomeOf(outcome));
      stage([...usedSignals(spent), ...ends], afterCommit);
      return null;
    },
  );
  mailbox.receives(AGENT_ASK, agentAskSchema, (ask, { envelope }) => {
    checkSender(ask, envelope, {});
    return null;
  });
  const requests: readonly [type: string, schema: z.ZodType<RunCallAddress>][] = [
    [AGENT_CALL, agentCallSchema],
    [AGENT_INVITE, agentInviteSchema],
  ];
  for (const [type, schema] of requests)
    mailbox.outcomes(type, ({ envelope, outcome, afterCommit }) => {
      if (outcome.status === "delivered") return;
      const address = validate(schema, envelope.body);
      stage(runtime.endSignals(address, { error: undelivered(outcome) }), afterCommit);
    });
}

function outcomeOf(outcome: AgentOutcome): NodeOutcome {
  if ("text" in outcome) return { output: { text: outcome.text } };
  const { code, message } = outcome.error;
  return { error: { code, message } };
}

/** Throws `FORBIDDEN` unless an envelope comes from a conversation in which an agent of the run works (AGENTNODE-2). */
export function checkSender(
  { operationId, attempt }: RunCallAddress,
  { from, to }: Pick<Envelope, "from" | "to">,
  { origin }: Pick<RunRecord, "origin">,
): void {
  const opened = calledConversationId(operationId, attempt, jurisdictionOf(to.id));
  if (from.kind === "conversation" && (from.id === opened || from.id === origin?.conversationId)) return;
  throw new DramatisError("FORBIDDEN", "Only the conversation of a call may answer it.");
}
