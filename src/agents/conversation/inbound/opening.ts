/**
 * A call of another agent opens a conversation. The called agent supplies its versions. The conversation then begins with the call's
 * message, in the transaction of the call's receipt.
 *
 * OPENING-1  An acknowledged call has opened its conversation, or its caller gets the reason. If the agent cannot be reached, it is retried
 *            here, and then with each attempt of the caller's mailbox, until the call expires.
 * OPENING-2  If a cancellation arrives before its call, the call is refused and does not run.
 * OPENING-3  An agent works only in a project that it shares with its caller. If the application is strict, it must also be in its caller's
 *            jurisdiction. Other calls fail with `PERMISSION_DENIED`.
 */
import { checkPrices } from "../../../library/registry/prices.ts";
import { calledChain } from "../../../library/tools/agent-tool.ts";
import { boundedChain, withheldTools } from "../../../library/tools/sub-agent.ts";
import { NOTHING } from "../../../model/spending.ts";
import type { AgentApi } from "../../../protocol/agent-api.ts";
import type { AgentCallBody, AgentCancelBody, AgentReadersBody } from "../../../protocol/agent-call.ts";
import { type CallAddress, isCalled } from "../../../protocol/call-address.ts";
import type { ActorAddress } from "../../../protocol/envelope.ts";
import { calledConversationId } from "../../../protocol/ids.ts";
import { separation } from "../../../protocol/location-policy.ts";
import { defined } from "../../../shared/defined.ts";
import {
  asResult,
  conflict,
  type DramatisError,
  forbidden,
  invalid,
  type Result,
  toErrorData,
  unwrap,
} from "../../../shared/errors.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { type AfterCommit, NotNow } from "../../base/mailbox/handlers.ts";
import type { ActorContext, Find } from "../context.ts";
import { resultEnvelope } from "../core/caller-envelopes.ts";
import { callerOf } from "../core/planning/agent-call.ts";
import { TOOL_CODES } from "../core/planning/loop-in.ts";
import type { ConversationIdentity } from "../core/state.ts";
import type { ConversationRuntime } from "../runtime.ts";
import { agentPart, checkChainLength, severalOf } from "./create-conversation.ts";

interface OpeningContext
  extends Pick<ActorContext, "clock" | "ids" | "keyValue" | "database" | "location" | "send" | "expel"> {
  agent: Find<Pick<AgentApi, "persona">>;
  runtime: Pick<ConversationRuntime, "exists" | "state" | "begin" | "stageCreation" | "stageMessage">;
}

/** The record of a call's conversation, or the reason of a refusal. */
export type Found = Result<ConversationIdentity>;

/** Milliseconds to retry an unreachable agent. Together with the agent's own time limit, they are shorter than one attempt. */
const ASK_AGAIN_WITHIN_MS = 12_000;
/** The first pause before a retry, in milliseconds. The pauses double. */
const FIRST_PAUSE_MS = 500;

/** The key of a call that must not be opened. */
const OVER = "opening:over";

export class Opening {
  constructor(private readonly context: OpeningContext) {}

  /**
   * Returns the record of the conversation that a call opens, with its agent's current versions, or the reason of a refusal. Throws
   * `INVALID_INPUT`.
   */
  async read(call: AgentCallBody, from: ActorAddress, to: ActorAddress): Promise<Found> {
    checkAddress(call, from, to);
    const { clock } = this.context;
    const until = Math.min(clock.now() + ASK_AGAIN_WITHIN_MS, call.deadline);
    for (let pause = FIRST_PAUSE_MS; ; pause *= 2) {
      const found = await asResult(() => this.#found(call, from));
      if (found.ok || !found.error.retriable || clock.now() + pause > until) return found;
      await clock.sleep(pause);
    }
  }

  /**
   * Opens the conversation with the call's message, in the transaction of the call's receipt. Without a record it sends the refusal to the
   * caller. Throws `CONFLICT`, or a retriable error if the agent did not answer.
   */
  take(
    call: AgentCallBody,
    from: ActorAddress,
    found: Found,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const { runtime, database } = this.context;
    if (runtime.exists) {
      if (runtime.state.record.call?.operationId === call.operationId) return;
      throw conflict("The id for the conversation of this call is already used.");
    }
    if (this.#isOver) return;
    try {
      database.transaction(() => this.#begin(call, unwrap(found), afterCommit));
    } catch (error) {
      this.#refuse(call, from, error, afterCommit);
    }
  }

  /** Stops a call, in the transaction of its receipt. Throws `FORBIDDEN` for a call of another caller. */
  cancel(
    { reason, ...call }: AgentCancelBody,
    from: ActorAddress,
    to: ActorAddress,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const { runtime, keyValue } = this.context;
    checkAddress(call, from, to);
    if (runtime.exists) {
      const { call: origin } = runtime.state.record;
      if (origin?.from !== from.id) throw notCaller();
      const unit = runtime.begin();
      unit.stage([{ type: "conversation.complete", caller: callerOf(origin), ...defined({ reason }) }]);
      afterCommit(() => unit.release());
      return;
    }
    keyValue.put(OVER, true);
  }

  /** Changes the readers of the conversation, in the transaction of a receipt. Throws `FORBIDDEN` for another caller's, `NotNow` before the call. */
  setReaders(
    { readers, readersSeq, ...call }: AgentReadersBody,
    from: ActorAddress,
    to: ActorAddress,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const { runtime, expel } = this.context;
    checkAddress(call, from, to);
    if (runtime.exists) {
      if (runtime.state.record.call?.from !== from.id) throw notCaller();
      const unit = runtime.begin();
      unit.stage([{ type: "conversation.agent.readers", readers, readersSeq }]);
      afterCommit(async () => {
        await unit.release();
        expel();
      });
      return;
    }
    if (!this.#isOver) throw new NotNow("The call has not arrived yet.");
  }

  /** The call was stopped before it arrived, or has its answer. It must not be opened. */
  get #isOver(): boolean {
    return this.context.keyValue.get<boolean>(OVER) ?? false;
  }

  #begin(
    call: AgentCallBody,
    record: ConversationIdentity,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const { runtime } = this.context;
    const { budget, content, correlationId, traceparent } = call;
    const unit = runtime.begin();
    runtime.stageCreation(unit, record, defined({ budget }));
    runtime.stageMessage(unit, {
      type: "conversation.user.message",
      caller: callerOf(call),
      correlationId,
      data: { content, ...defined({ traceparent }) },
    });
    afterCommit(() => unit.release());
  }

  async #found(call: AgentCallBody, from: ActorAddress): Promise<ConversationIdentity> {
    const record = await this.#record(call, from);
    if (call.budget !== undefined) checkPrices(record.agents[0].chain, call.budget);
    return record;
  }

  /** Returns the record of the conversation with its agent's current versions. Throws `FORBIDDEN` without a shared project. */
  async #record(call: AgentCallBody, { tenant, id: from }: ActorAddress): Promise<ConversationIdentity> {
    const { clock, agent } = this.context;
    const { agentId, operationId, attempt, path, readers, readersSeq, requester } = call;
    const { deadline, caller, bounds, calls, worksForRun } = call;
    const part = await agentPart(clock, () => agent(tenant, agentId), call.projectIds);
    const { chain, projectIds, leased } = unwrap(part);
    const projectId = call.projectIds.find((one) => projectIds.includes(one));
    if (projectId === undefined) throw forbidden(`The agent "${agentId}" shares no project with its caller.`);
    const id = calledConversationId(operationId, attempt, jurisdictionOf(from));
    const apart = separation(id, agentId, this.context.location(tenant));
    if (apart !== null) throw forbidden(apart);
    const called = calledChain(bounds === undefined ? chain : boundedChain(agentId, chain, bounds));
    const withheld = bounds && withheldTools(chain, bounds);
    checkChainLength(agentId, called);
    return {
      id,
      tenant,
      title: null,
      projectId,
      participants: [{ type: "agent", id: agentId }],
      agents: [{ id: agentId, ...defined({ leased, projectIds: severalOf(projectIds) }), chain: called }],
      listed: false,
      call: {
        ...{ operationId, attempt, path, readers, deadline, caller, from },
        ...defined({ readersSeq, requester, bounds, calls, withheld, worksForRun }),
        // The workspace belongs to the caller's project.
        ...defined({ workspace: projectId === call.projectIds[0] ? call.workspace : undefined }),
      },
      createdAt: clock.now(),
    };
  }

  /** Sends the reason of a failure to the caller. If the agent may answer later, throws so that the caller's mailbox retries. */
  #refuse(
    call: AgentCallBody,
    from: ActorAddress,
    thrown: unknown,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const { clock, ids, keyValue, send } = this.context;
    const { code, message, retriable } = toErrorData(thrown);
    if (retriable && clock.now() < call.deadline) throw thrown;
    keyValue.put(OVER, true);
    const error = { code: TOOL_CODES[code] ?? "EXECUTION_FAILED", message, retriable };
    const result = resultEnvelope(
      from.tenant,
      { ...call, from: from.id },
      { outcome: { error }, spent: NOTHING },
    );
    const sent = send({ operationId: `op_${ids.ulid()}`, ...result });
    afterCommit(() => sent);
  }
}

/** Throws `INVALID_INPUT` unless the call opens this conversation (AGENTCALL-1). */
function checkAddress(call: CallAddress, from: ActorAddress, to: ActorAddress): void {
  const isCaller = from.kind === "conversation" || from.kind === "coordinator";
  if (isCaller && isCalled(call, from, to)) return;
  throw invalid(
    "Only a conversation or a run can call an agent. Send the call to the conversation with the id of its operation.",
  );
}

function notCaller(): DramatisError {
  return forbidden("Only the caller of a call may stop it.");
}
