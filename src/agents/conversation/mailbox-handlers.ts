/**
 * The handlers of envelopes that begin or change work of a conversation, and of answers of its agents. Each handler stages its change in the
 * transaction of the receipt.
 *
 * RUNINVITE-5  An acknowledged invitation has started its turn, or the run gets the reason. If a run withdraws its invitation, the turn
 *              stops. If the invitation arrives after its withdrawal, the turn does not start. Handlers are idempotent.
 * RUNINVITE-6  An invitation counts only if its first run has an id that derives from the operation of its origin.
 */
import { NOTHING } from "../../model/spending.ts";
import {
  AGENT_CALL,
  AGENT_CANCEL,
  AGENT_READERS,
  agentCallSchema,
  agentCancelSchema,
  agentReadersSchema,
} from "../../protocol/agent-call.ts";
import { BUDGET_LEASE, leaseAnswerSchema, leaseRequestSchema } from "../../protocol/budget-lease.ts";
import type { CallAddress } from "../../protocol/call-address.ts";
import type { Envelope } from "../../protocol/envelope.ts";
import type { ToolErrorCode } from "../../protocol/executor-api.ts";
import { calledRunId, parseItemId } from "../../protocol/ids.ts";
import { MEMORY_EXTRACTED } from "../../protocol/memory.ts";
import { learnedMemories } from "../../protocol/memory-schemas.ts";
import { RUN_CANCEL } from "../../protocol/run-call.ts";
import {
  AGENT_INVITE,
  AGENT_UNINVITE,
  type AgentInviteBody,
  agentInviteSchema,
  agentUninviteSchema,
} from "../../protocol/run-invitation.ts";
import { defined } from "../../shared/defined.ts";
import { asResult, forbidden, type Result, toErrorData, unwrap } from "../../shared/errors.ts";
import { jurisdictionOf } from "../../shared/location.ts";
import { validate } from "../../shared/validation.ts";
import type { DeliveryOutcome } from "../base/mailbox/handlers.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import type { RuntimeContext } from "./context.ts";
import { resultEnvelope } from "./core/caller-envelopes.ts";
import type { BudgetLeased, Invitation, MemoriesLearned, RunInvited } from "./core/signals.ts";
import { invitation } from "./effects/join.ts";
import { operationAt } from "./inbound/message-checks.ts";
import type { Opening } from "./inbound/opening.ts";
import { staging, takeCallResults } from "./results/call-results.ts";
import type { ConversationRuntime } from "./runtime.ts";

interface HandlerContext
  extends Pick<RuntimeContext, "database" | "ids" | "invite" | "keyValue" | "listing" | "send"> {
  opening: Pick<Opening, "read" | "take" | "cancel" | "setReaders">;
  runtime: ConversationRuntime;
}

type Handlers = Pick<Mailbox, "receives" | "receivesAfter" | "outcomes">;

/** Envelopes that end work, and have no content. */
const CANCELLATIONS = [AGENT_CANCEL, RUN_CANCEL];

/**
 * Returns the messages of a conversation over its mailbox. They may use the reserved room of the outbox. Calls of agents use only the other
 * room.
 */
export function outgoing(
  mailbox: Pick<Mailbox, "send" | "withdraw" | "discard" | "room">,
): Pick<RuntimeContext, "send" | "withdraw" | "discard" | "outboxRoom"> {
  return {
    send: (envelope) => mailbox.send(envelope, { owed: true }),
    withdraw: ({ to, type }) => mailbox.withdraw(to, type),
    discard: (operationId) => mailbox.discard(operationId, CANCELLATIONS),
    outboxRoom: () => mailbox.room(),
  };
}

/** Registers the handlers of all envelopes of a conversation. */
export function takeEnvelopes(mailbox: Handlers, context: HandlerContext): void {
  takeAnswers(mailbox, context.runtime);
  takeAgentCalls(mailbox, context);
  takeInvitations(mailbox, context);
  takeCallResults(mailbox, context.runtime);
}

/** Registers the handlers of the answers of agents to requests for budget and to operations of extractions. */
export function takeAnswers(
  mailbox: Pick<Handlers, "outcomes">,
  runtime: Pick<ConversationRuntime, "begin" | "exists">,
): void {
  const stage = staging(runtime);
  mailbox.outcomes(BUDGET_LEASE, (outcome) => stage([leased(outcome)], outcome.afterCommit));
  mailbox.outcomes(MEMORY_EXTRACTED, (outcome) => {
    const signal = learned(outcome);
    // A deleted conversation needs no answer.
    if (signal !== undefined && runtime.exists) stage([signal], outcome.afterCommit);
  });
}

function leased({ envelope, outcome }: DeliveryOutcome): BudgetLeased {
  const { seq } = validate(leaseRequestSchema, envelope.body);
  const address = { type: "conversation.budget.leased", agentId: envelope.to.id, seq } as const;
  if (outcome.status === "delivered")
    return { ...address, answer: validate(leaseAnswerSchema, outcome.result) };
  const { message } = outcome.error;
  const error = {
    code: "UNAVAILABLE" as const,
    message: `The agent did not answer a request for its budget: ${message}`,
    retriable: true,
  };
  return { ...address, answer: { error } };
}

/** Returns the signal of an answer; `undefined` if the envelope names no turn. */
function learned({ envelope: { operationId }, outcome }: DeliveryOutcome): MemoriesLearned | undefined {
  const address = parseItemId(operationId);
  if (address === null) return undefined;
  const { n: of, item } = address;
  const named = { type: "conversation.memories.learned", of, item } as const;
  if (outcome.status === "delivered") return { ...named, answer: validate(learnedMemories, outcome.result) };
  return { ...named, answer: { error: outcome.error } };
}

function takeAgentCalls(mailbox: Handlers, { opening }: HandlerContext): void {
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
}

const CODES: Readonly<Record<string, ToolErrorCode>> = {
  NOT_FOUND: "NOT_FOUND",
  FORBIDDEN: "PERMISSION_DENIED",
  INVALID_INPUT: "INVALID_INPUT",
  TOO_MANY_TURNS: "BUDGET_EXCEEDED",
};

function takeInvitations(mailbox: Handlers, context: HandlerContext): void {
  const { database, ids, keyValue, listing, runtime, send } = context;
  mailbox.receivesAfter(
    AGENT_INVITE,
    agentInviteSchema,
    async (body, envelope): Promise<Result<Invitation>> => {
      checkOrigin(body, envelope);
      const { record } = runtime.state;
      return asResult(() => invitation(context, record, body.agentId));
    },
    (body, { envelope: { from, to }, afterCommit }, found) => {
      const key = withdrawnKeyOf(body);
      if (keyValue.get<boolean>(key) === true) return null;
      try {
        const unit = database.transaction(() => {
          const staged = runtime.begin();
          staged.stage([invited(body, from.id, found, runtime)]);
          return staged;
        });
        const isListed = runtime.state.record.listed !== false;
        const noted = isListed ? listing.note() : undefined;
        afterCommit(async () => {
          await unit.release();
          await noted;
        });
      } catch (error) {
        const { code, message, retriable } = toErrorData(error);
        if (retriable) throw error;
        const refusal = { code: CODES[code] ?? "EXECUTION_FAILED", message, retriable };
        const caller = { ...body, from: from.id, caller: { runId: from.id } };
        const result = resultEnvelope(to.tenant, caller, { outcome: { error: refusal }, spent: NOTHING });
        const sent = send({ operationId: `op_${ids.ulid()}`, ...result });
        afterCommit(() => sent);
      }
      return null;
    },
  );
  mailbox.receives(AGENT_UNINVITE, agentUninviteSchema, (body, { envelope: { from }, afterCommit }) => {
    const turn = [...runtime.state.active.values()].find(
      ({ invited: by, caller }) =>
        caller.type === "workflow" &&
        caller.runId === from.id &&
        by?.operationId === body.operationId &&
        by.attempt === body.attempt,
    );
    if (turn === undefined) {
      keyValue.put(withdrawnKeyOf(body), true);
      return null;
    }
    const { n, caller } = turn;
    const { reason } = body;
    staging(runtime)([{ type: "conversation.cancel", turn: n, caller, ...defined({ reason }) }], afterCommit);
    return null;
  });
}

function withdrawnKeyOf({ operationId, attempt }: CallAddress): string {
  return `uninvited:${operationId}:${attempt}`;
}

/** Throws `FORBIDDEN` unless a run that an operation of the conversation has started, or a run below it, invites (RUNINVITE-6). */
function checkOrigin({ origin, rootRunId }: AgentInviteBody, { from, to }: Envelope): void {
  const started = calledRunId(origin.operationId, origin.attempt, jurisdictionOf(to.id));
  if (from.kind === "coordinator" && rootRunId === started) return;
  throw forbidden("Only a run that the conversation has started may invite an agent.");
}

/** Returns the signal of an invitation. Throws the reason of a refusal. */
function invited(
  { agentId, node, content, operationId, attempt, path, origin, traceparent }: AgentInviteBody,
  runId: string,
  found: Result<Invitation>,
  runtime: ConversationRuntime,
): RunInvited {
  const brought = unwrap(found);
  const { turn, operation } = operationAt(origin.operationId, runtime.turn);
  return {
    type: "conversation.run.invited",
    by: { type: "workflow", runId, node },
    ...{ agentId, content },
    invited: { operationId, attempt, path },
    origin: { turn: turn.n, item: operation.item, attempt: origin.attempt },
    ...brought,
    ...defined({ traceparent }),
  };
}
