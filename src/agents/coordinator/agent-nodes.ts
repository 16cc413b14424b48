/**
 * The envelopes of the agents that a run asks.
 *
 * AGENTNODE-2  An answer counts only if it comes from the conversation that the attempt has opened, or that has started the run. A request for approval waits in that
 *              conversation, which the principal who started the run may read and answer.
 * AGENTNODE-5  A node gets the whole answer of its agent up to 1 MiB of JSON, and the beginning of a longer answer. The limit of an invited agent
 *              is its envelope.
 */
import { z } from "zod";
import {
  AGENT_ASK,
  AGENT_CALL,
  AGENT_RESULT,
  type AgentOutcome,
  type AgentResultBody,
  agentAskSchema,
  agentCallSchema,
  agentResultSchema,
} from "../../protocol/agent-call.ts";
import { type CallAddress, isCalled } from "../../protocol/call-address.ts";
import type { Envelope } from "../../protocol/envelope.ts";
import { MAX_OUTPUT_BYTES } from "../../protocol/executor-api.ts";
import type { WholeResultApi } from "../../protocol/large-result.ts";
import { AGENT_INVITE, agentInviteSchema } from "../../protocol/run-invitation.ts";
import { forbidden, unwrap } from "../../shared/errors.ts";
import { validate } from "../../shared/validation.ts";
import type { DeliveryOutcome } from "../base/mailbox/handlers.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import type { ActorContext } from "./context.ts";
import type { RunRecord } from "./core/record.ts";
import { type RunSignal, undelivered } from "./core/signals.ts";
import type { NodeOutcome } from "./core/state.ts";
import { usedSignals } from "./core/usage.ts";
import type { RunRuntime } from "./run-runtime.ts";

/** Registers the handlers of answers. Each stages its change in the transaction of the receipt. */
export function takeAgentAnswers(
  mailbox: Pick<Mailbox, "receives" | "receivesAfter" | "outcomes">,
  {
    runtime,
    sender,
  }: Pick<ActorContext, "sender"> & {
    runtime: Pick<RunRuntime, "begin" | "endSignals" | "state">;
  },
): void {
  const stage = (signals: readonly RunSignal[], afterCommit: DeliveryOutcome["afterCommit"]) => {
    if (signals.length === 0) return;
    const unit = runtime.begin();
    unit.stage(signals);
    afterCommit(() => unit.release());
  };
  mailbox.receivesAfter(
    AGENT_RESULT,
    agentResultSchema,
    async (result, envelope) => {
      checkSender(result, envelope, runtime.state.record);
      return wholeText(result, () => sender(envelope.from));
    },
    ({ outcome, spent, ...address }, { afterCommit }, whole) => {
      const seen = whole === undefined ? outcome : { text: whole };
      // A later report has no outcome: it brings what calls below have used up. The words of an agent are untrusted (MEMTOOL-6).
      const ends = seen === undefined ? [] : runtime.endSignals(address, outcomeOf(seen), true);
      stage([...usedSignals(spent), ...ends], afterCommit);
      return null;
    },
  );
  mailbox.receives(AGENT_ASK, agentAskSchema, (ask, { envelope }) => {
    checkSender(ask, envelope, {});
    return null;
  });
  const requests: readonly [type: string, schema: z.ZodType<CallAddress>][] = [
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

/** Returns the text of an answer that its envelope shortens, if a node has room for it (AGENTNODE-5); `undefined` for other results. */
async function wholeText(
  { large, operationId, attempt }: AgentResultBody,
  sender: () => Promise<WholeResultApi>,
): Promise<string | undefined> {
  if (large === undefined || large.bytes > MAX_OUTPUT_BYTES) return undefined;
  const found = await (await sender()).wholeResult({ operationId, attempt });
  if (!found.ok && !found.error.retriable) return undefined;
  return z.string().parse(JSON.parse(new TextDecoder().decode(unwrap(found))));
}

function outcomeOf(outcome: AgentOutcome): NodeOutcome {
  if ("text" in outcome) return { output: { text: outcome.text } };
  const { code, message } = outcome.error;
  return { error: { code, message } };
}

/** Throws `FORBIDDEN` unless an agent of the run works in the envelope's conversation (AGENTNODE-2). */
export function checkSender(
  address: CallAddress,
  { from, to }: Pick<Envelope, "from" | "to">,
  { origin }: Pick<RunRecord, "origin">,
): void {
  if (from.kind === "conversation" && (from.id === origin?.conversationId || isCalled(address, to, from)))
    return;
  throw forbidden("Only the conversation of a call may answer it.");
}
