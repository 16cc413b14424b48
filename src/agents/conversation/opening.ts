/**
 * The opening of a conversation by a call of another agent: the call is kept, then the agent gives its versions, then the conversation
 * begins with the call's message, in one transaction.
 *
 * OPENING-1  A call that was acknowledged opens its conversation, or its caller gets the reason, whatever crashes in between.
 * OPENING-2  A cancellation that arrives before the call refuses it: nothing of it runs.
 * OPENING-3  An agent works only in a project that it shares with its caller, and where the application is strict only in its caller's
 *            jurisdiction: `PERMISSION_DENIED` otherwise.
 */

import { calledChain } from "../../library/agent-tool.ts";
import { checkPrices } from "../../library/prices.ts";
import { boundedChain } from "../../library/sub-agent.ts";
import { NOTHING } from "../../model/spending.ts";
import type { Clock } from "../../ports/clock.ts";
import type { KeyValue } from "../../ports/key-value.ts";
import type { AgentApi } from "../../protocol/agent-api.ts";
import type { AgentCallBody, AgentCancelBody, AgentReadersBody } from "../../protocol/agent-call.ts";
import type { ActorAddress, NewEnvelope } from "../../protocol/envelope.ts";
import type { ToolErrorCode } from "../../protocol/executor-api.ts";
import { calledConversationId } from "../../protocol/ids.ts";
import { type LocationPolicy, separation } from "../../protocol/location-policy.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, type ErrorData, toErrorData, unwrap } from "../../shared/errors.ts";
import { jurisdictionOf } from "../../shared/location.ts";
import type { AfterCommit } from "../base/mailbox/handlers.ts";
import { NotNow } from "../base/mailbox/handlers.ts";
import { newOperationId } from "../base/mailbox/operation-id.ts";
import type { Wakeup } from "../base/timers/wakeups.ts";
import { resultEnvelope } from "./core/call-envelopes.ts";
import { callerOf } from "./core/planning/agent-call.ts";
import type { ConversationIdentity } from "./core/state.ts";
import { agentPart, checkChainLength, severalOf } from "./door/create-conversation.ts";
import type { ConversationRuntime } from "./runtime.ts";

export interface OpeningPorts {
  clock: Clock;
  keyValue: KeyValue;
  transaction<Value>(body: () => Value): Value;
  runtime: Pick<ConversationRuntime, "exists" | "state" | "begin" | "stageCreation" | "stageMessage">;
  /** Finds the actor of an agent. */
  agent(tenant: string, id: string): Promise<Pick<AgentApi, "persona">>;
  /** Where the conversations of a tenant may live. */
  location(tenant: string): LocationPolicy;
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  /** Ends the connections of those who may not read the conversation any more. */
  expel(): void;
  /** The wake-up that calls `wake`. */
  wakeup: Wakeup;
}

/** A call whose conversation is not there yet, or the mark that it is not to be opened any more. */
type Stored = { call: AgentCallBody; from: ActorAddress } | { over: true };

const KEY = "opening";
/** Milliseconds after which an opening that was interrupted begins again. */
const AGAIN_MS = 2_000;
/** The longest pause between two tries to reach the agent. */
const MAX_PAUSE_MS = 60_000;

export class Opening {
  #running: Promise<void> | null = null;
  #tries = 0;

  constructor(private readonly ports: OpeningPorts) {}

  /** Takes a call, in the transaction of its receipt. Throws `INVALID_INPUT` for the call of another conversation, `CONFLICT`. */
  take(
    call: AgentCallBody,
    from: ActorAddress,
    to: ActorAddress,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const { runtime, keyValue, wakeup } = this.ports;
    checkAddress(call, from, to);
    if (runtime.exists) {
      if (runtime.state.record.call?.operationId === call.operationId) return;
      throw new DramatisError("CONFLICT", "Another conversation has the id that this call would open.");
    }
    if (this.#stored !== undefined) return;
    keyValue.put<Stored>(KEY, { call, from });
    const armed = wakeup.arm(AGAIN_MS);
    afterCommit(() => {
      this.#start();
      return armed;
    });
  }

  /** Stops a call, in the transaction of its receipt. Throws `FORBIDDEN` for another caller's. */
  cancel(
    { reason, ...call }: AgentCancelBody,
    from: ActorAddress,
    to: ActorAddress,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const { runtime, keyValue } = this.ports;
    checkAddress(call, from, to);
    if (runtime.exists) {
      const { call: origin } = runtime.state.record;
      if (origin?.from !== from.id) throw notCaller();
      const unit = runtime.begin();
      unit.stage([{ type: "conversation.complete", caller: callerOf(origin), ...defined({ reason }) }]);
      afterCommit(() => unit.release());
      return;
    }
    const stored = this.#stored;
    if (stored !== undefined && "call" in stored && stored.from.id !== from.id) throw notCaller();
    keyValue.put<Stored>(KEY, { over: true });
  }

  /** Changes who may read the conversation, in the transaction of a receipt. Throws `FORBIDDEN` for another caller's, `NotNow` before the call. */
  setReaders(
    { readers, ...call }: AgentReadersBody,
    from: ActorAddress,
    to: ActorAddress,
    afterCommit: (effect: AfterCommit) => void,
  ): void {
    const { runtime, keyValue, expel } = this.ports;
    checkAddress(call, from, to);
    if (runtime.exists) {
      if (runtime.state.record.call?.from !== from.id) throw notCaller();
      const unit = runtime.begin();
      unit.stage([{ type: "conversation.agent.readers", readers }]);
      afterCommit(async () => {
        await unit.release();
        expel();
      });
      return;
    }
    const stored = this.#stored;
    if (stored === undefined) throw new NotNow("The call has not arrived yet.");
    if (!("call" in stored)) return;
    if (stored.from.id !== from.id) throw notCaller();
    keyValue.put<Stored>(KEY, { ...stored, call: { ...stored.call, readers } });
  }

  /** Tries again to open the conversation. Returns the milliseconds until the next try; `null` where nothing is to be opened. */
  wake(): number | null {
    const stored = this.#stored;
    if (stored === undefined || !("call" in stored) || this.ports.runtime.exists) return null;
    this.#start();
    return Math.min(AGAIN_MS * 2 ** this.#tries, MAX_PAUSE_MS);
  }

  get #stored(): Stored | undefined {
    return this.ports.keyValue.get<Stored>(KEY);
  }

  #start(): void {
    this.#running ??= this.#open()
      .catch((error: unknown) => console.error(error))
      .finally(() => {
        this.#running = null;
      });
  }

  async #open(): Promise<void> {
    const stored = this.#stored;
    if (stored === undefined || !("call" in stored)) return;
    const { call, from } = stored;
    try {
      const record = await this.#record(call, from);
      await this.#begin(record, call);
    } catch (error) {
      const data = toErrorData(error);
      this.#tries += 1;
      if (data.retriable && this.ports.clock.now() < call.deadline) console.error(error);
      else this.#refuse(call, from, data);
    }
  }

  /** Creates the conversation with the call's message, unless the call was stopped meanwhile. */
  async #begin(record: ConversationIdentity, call: AgentCallBody): Promise<void> {
    const { runtime, keyValue, transaction, wakeup } = this.ports;
    const { budget, content, correlationId, traceparent } = call;
    if (budget !== undefined) checkPrices(record.agents[0].chain, budget);
    const unit = runtime.begin();
    const isBegun = transaction(() => {
      const stored = this.#stored;
      if (stored === undefined || !("call" in stored) || runtime.exists) return false;
      runtime.stageCreation(unit, record, defined({ budget }));
      runtime.stageMessage(unit, {
        type: "conversation.user.message",
        caller: { type: "agent", ...call.caller },
        correlationId,
        data: { content, ...defined({ traceparent }) },
      });
      keyValue.delete(KEY);
      return true;
    });
    if (!isBegun) return;
    wakeup.disarm();
    await unit.release();
  }

  /** Returns the record of the conversation, as its agent is now. Throws `FORBIDDEN` where no project is shared. */
  async #record(call: AgentCallBody, { tenant, id: from }: ActorAddress): Promise<ConversationIdentity> {
    const { clock, agent } = this.ports;
    const { agentId, operationId, attempt, path, readers, deadline, caller, bounds, calls } = call;
    const { chain, projectIds, leased } = unwrap(await agentPart(clock, () => agent(tenant, agentId)));
    const projectId = call.projectIds.find((one) => projectIds.includes(one));
    if (projectId === undefined)
      throw new DramatisError("FORBIDDEN", `The agent "${agentId}" shares no project with its caller.`);
    const id = calledConversationId(operationId, attempt, jurisdictionOf(from));
    const apart = separation(id, agentId, this.ports.location(tenant));
    if (apart !== null) throw new DramatisError("FORBIDDEN", apart);
    const called = calledChain(bounds === undefined ? chain : boundedChain(agentId, chain, bounds));
    checkChainLength(agentId, called);
    return {
      id,
      tenant,
      title: null,
      projectId,
      participants: [{ type: "agent", id: agentId }],
      agents: [{ id: agentId, ...defined({ leased, projectIds: severalOf(projectIds) }), chain: called }],
      listed: false,
      call: { operationId, attempt, path, readers, deadline, caller, from, ...defined({ bounds, calls }) },
      createdAt: clock.now(),
    };
  }

  /** Tells the caller why its call is not answered. */
  #refuse(call: AgentCallBody, from: ActorAddress, { code, message, retriable }: ErrorData): void {
    const { keyValue, transaction, send, wakeup } = this.ports;
    const error = { code: CODES[code] ?? "EXECUTION_FAILED", message, retriable };
    const { sent } = transaction(() => {
      keyValue.put<Stored>(KEY, { over: true });
      const result = resultEnvelope(
        from.tenant,
        { ...call, from: from.id },
        { outcome: { error }, spent: NOTHING },
      );
      return { sent: send({ operationId: newOperationId(), ...result }) };
    });
    sent.catch((cause: unknown) => console.error(cause));
    wakeup.disarm();
  }
}

/** The errors of tools for errors of an opening. */
const CODES: Readonly<Record<string, ToolErrorCode>> = {
  NOT_FOUND: "NOT_FOUND",
  FORBIDDEN: "PERMISSION_DENIED",
  INVALID_INPUT: "INVALID_INPUT",
};

/** Throws `INVALID_INPUT` unless the call opens this conversation (AGENTCALL-1). */
function checkAddress(
  call: Pick<AgentCallBody, "operationId" | "attempt">,
  from: ActorAddress,
  to: ActorAddress,
): void {
  const { operationId, attempt } = call;
  const opened = calledConversationId(operationId, attempt, jurisdictionOf(from.id));
  if (from.kind === "conversation" && opened === to.id) return;
  throw new DramatisError(
    "INVALID_INPUT",
    "Only a conversation can call an agent, in the conversation of its operation.",
  );
}

function notCaller(): DramatisError {
  return new DramatisError("FORBIDDEN", "Only the caller of a call may stop it.");
}
