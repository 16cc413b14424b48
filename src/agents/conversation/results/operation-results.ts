/** Results of tools from outside the actor: from a client, by a handle, or from an executor that lost the actor. */
import { NOT_DEFERRABLE } from "../../../library/tools/deferred.ts";
import { type Amounts, NOTHING } from "../../../model/spending.ts";
import { type AgentOutcome, agentAnswerSchema, agentErrorSchema } from "../../../protocol/agent-call.ts";
import type { AnsweredBy } from "../../../protocol/approval.ts";
import type { CompletedOperation, SubmittedResult } from "../../../protocol/conversation-schemas.ts";
import {
  type TaskResult,
  type ToolResult,
  taskFailure,
  taskResultSchema,
} from "../../../protocol/executor-api.ts";
import { operationId, resolveId, turnId } from "../../../protocol/ids.ts";
import { DEFAULT_DEFER_MS, type DeferRequest, type GivenHandle } from "../../../protocol/operation-handle.ts";
import type { ToolOutcome, ToolSubmission } from "../../../protocol/requests.ts";
import { workflowErrorSchema, workflowResultSchema } from "../../../protocol/workflow-call.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict, invalid } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { validate } from "../../../shared/validation.ts";
import type { RuntimeContext, StoredConversation } from "../context.ts";
import type { ConversationShell } from "../conversation-core.ts";
import { extractionOf, hookOperation } from "../core/hooks.ts";
import { awaitsApproval, isGivenUp, isOpen, type Operation, takesByName } from "../core/operation.ts";
import { checkValues, isAnswered } from "../core/planning/approval.ts";
import { checkExpiry, hasOutcome, isDeferrable } from "../core/planning/defer.ts";
import { clientResult, isRepeated } from "../core/planning/results.ts";
import { answeredBy } from "../core/shown-call.ts";
import type { ApprovalResolved, EffectSignal } from "../core/signals.ts";
import { chainOf } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import type { Handles } from "../inbound/handles.ts";
import { operationAt } from "../inbound/message-checks.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";
import type { LargeResults } from "./large-results.ts";

interface RunEnd {
  operationId: string;
  attempt: number;
  result: ToolResult;
  spent?: Amounts;
}

interface ResultsContext extends Pick<RuntimeContext, "clock" | "isErased"> {
  handles: Handles;
  onProgress(turn: Turn, operationId: string, progress: Json): void;
  large: Pick<LargeResults, "viewOf">;
  shell: Pick<ConversationShell, "tick" | "retryUnsaved" | "commit">;
  runtime: StoredConversation;
  store: Pick<ConversationDatabase, "hasLateResult" | "askingConversation">;
}

export class OperationResults {
  constructor(private readonly context: ResultsContext) {}

  /**
   * Commits results of tools that the client ran, atomically. Throws `NOT_FOUND` for an unknown operation, `CONFLICT` for an operation that
   * does not accept this result. Resolves when the results are durable and the wake-up of the resumed turns is armed. `changed` has the operations
   * without the result before.
   */
  async submit(
    results: readonly ToolSubmission[],
  ): Promise<{ submitted: SubmittedResult[]; changed: string[] }> {
    void this.context.runtime.state;
    this.context.shell.tick([{ type: "conversation.cmd.expire" }]);
    const found = results.map((outcome) => ({
      ...operationAt(outcome.operationId, this.context.runtime.turn),
      outcome,
    }));
    const fresh = found.filter(({ operation, outcome }) => !isRepeated(operation, outcome));
    await this.context.shell.commit(
      fresh.map(({ turn, operation: { item }, outcome }) => ({
        type: "conversation.tool.submitted",
        turn: turn.n,
        item,
        outcome,
      })),
    );
    return {
      submitted: found.map(({ turn, outcome }) => ({
        operationId: outcome.operationId,
        turnId: turnId(turn),
      })),
      changed: fresh.map(({ outcome }) => outcome.operationId),
    };
  }

  /**
   * Commits the answer of a person to a request for approval. Idempotent. Throws `NOT_FOUND` for an unknown operation, `INVALID_INPUT` for
   * values that do not fit its question, `CONFLICT` for an operation that has another answer or does not wait for an answer. Returns the operation when the answer is durable.
   */
  async approve(
    id: string,
    {
      round,
      ...answer
    }: Pick<ApprovalResolved, "approved" | "caller" | "reason" | "values"> & {
      round?: number;
    },
  ): Promise<{ turn: Turn; operation: Operation }> {
    this.context.shell.tick([{ type: "conversation.cmd.expire" }]);
    const find = () => operationAt(id, this.context.runtime.turn);
    const { turn, operation } = find();
    if (isAnswered(operation, answer.approved)) return { turn, operation };
    checkValues(operation, { ...answer, ...defined({ round }) });
    const address = { turn: turn.n, item: operation.item };
    await this.context.shell.commit([{ type: "conversation.approval.resolved", ...address, ...answer }]);
    return find();
  }

  /** Returns whether the operation has this answer. Throws as `approve`. Takes no answer, but commits an expiry that is due. */
  hasAnswer(id: string, answer: Pick<ApprovalResolved, "approved" | "values"> & { round?: number }): boolean {
    this.context.shell.tick([{ type: "conversation.cmd.expire" }]);
    const { operation } = operationAt(id, this.context.runtime.turn);
    if (isAnswered(operation, answer.approved)) return true;
    checkValues(operation, answer);
    return false;
  }

  /** Returns who may answer the request of an operation; `undefined` for an unknown operation. */
  answeredBy(id: string): AnsweredBy | undefined {
    const found = resolveId(id, "op", this.context.runtime.turn);
    const operation = found?.turn.operations.find(({ item }) => item === found.item);
    if (found === null || operation === undefined) return undefined;
    return answeredBy(this.context.runtime.state.record, found.turn, operation);
  }

  /** Returns the called conversation that requested the approval with this id; `undefined` for other ids. */
  askingConversation(id: string): string | undefined {
    return this.context.store.askingConversation(id);
  }

  /** Throws `NOT_FOUND` for an unknown operation, `CONFLICT` for an operation that does not wait for a client's result. */
  checkClientCall(id: string): void {
    const { operation } = operationAt(id, this.context.runtime.turn);
    if (operation.target === "client" && isOpen(operation)) return;
    throw conflict("The call does not wait for a result of a client.");
  }

  /**
   * Commits the result of an operation after its executor lost this actor. Has no effect if the operation no longer waits for this attempt.
   * The success of a cancelled `once` operation becomes a note to the model, once (OP-6). Throws `NOT_FOUND` for an unknown operation.
   * Resolves when the result is durable.
   */
  async takeResult({ operationId, attempt, ...ended }: TaskResult): Promise<void> {
    this.context.shell.retryUnsaved();
    const hook = this.#hookAt(operationId);
    if (hook !== undefined) {
      if (!("result" in ended) || hook.attempt !== attempt) return;
      if (!takesByName(hook.operation, ended.result, hook.recoveries)) return;
      const { n, item } = hook;
      await this.context.shell.commit([
        { type: "conversation.tool.completed", turn: n, item, attempt, ...ended },
      ]);
      return;
    }
    if (await this.context.isErased(operationId)) return;
    const { turn, operation } = operationAt(operationId, this.context.runtime.turn);
    const { item, status } = operation;
    const address = { turn: turn.n, item, attempt };
    if ("deferred" in ended) {
      await this.context.shell.commit([
        { type: "conversation.tool.deferred", ...address, ...ended.deferred },
      ]);
      return;
    }
    const { result } = ended;
    if (status === "cancelled") await this.#noteLate(turn, operation, result);
    else if (takesByName(operation, result, turn.recoveries))
      await this.context.shell.commit([{ type: "conversation.tool.completed", ...address, ...ended }]);
  }

  /**
   * Commits the end of an agent call that did not come by envelope. Has no effect if the operation no longer waits for this attempt. Throws
   * `NOT_FOUND` for an unknown operation. Resolves when the end is durable.
   */
  async takeAgentEnd(
    { operationId, attempt, spent = NOTHING }: { operationId: string; attempt: number; spent?: Amounts },
    outcome: AgentOutcome,
  ): Promise<void> {
    this.context.shell.retryUnsaved();
    const address = { operationId, attempt };
    const view = "text" in outcome ? await this.context.large.viewOf(address, outcome.text) : undefined;
    const { turn, operation } = operationAt(operationId, this.context.runtime.turn);
    const { item, status } = operation;
    if (status !== "dispatched" || operation.attempt !== attempt) return;
    const { n, agentId } = turn;
    const seen = view === undefined ? outcome : { text: "", view };
    await this.context.shell.commit([
      { type: "conversation.agent.ended", turn: n, item, attempt, agentId, outcome: seen, spent },
    ]);
  }

  /**
   * Commits the end of a run that did not come by envelope. Has no effect if the operation no longer waits for this attempt. Throws `NOT_FOUND`
   * for an unknown operation. Resolves when the end is durable.
   */
  async takeRunEnd({ operationId, attempt, result: given, spent }: RunEnd): Promise<void> {
    this.context.shell.retryUnsaved();
    const view = given.success
      ? await this.context.large.viewOf({ operationId, attempt }, given.result ?? null)
      : undefined;
    const result = view === undefined ? given : { ...given, result: view };
    const { turn, operation } = operationAt(operationId, this.context.runtime.turn);
    const { item, status, target } = operation;
    if (target !== "workflow" || status !== "dispatched" || operation.attempt !== attempt) return;
    const { n, agentId } = turn;
    const transient = result.error?.retriable === true || undefined;
    await this.context.shell.commit([
      {
        type: "conversation.tool.completed",
        ...{ turn: n, item, attempt, agentId, result },
        ...defined({ spent, transient }),
      },
    ]);
  }

  /**
   * Returns a handle of an operation with a running tool. Throws `CONFLICT` unless the operation waits for this attempt, `NOT_FOUND` for an
   * unknown operation.
   */
  async defer({ operationId, attempt, expiresInMs = DEFAULT_DEFER_MS }: DeferRequest): Promise<GivenHandle> {
    if (this.#hookAt(operationId) !== undefined) throw invalid("A hook cannot defer its result. Return it.");
    const { operation } = operationAt(operationId, this.context.runtime.turn);
    if (!isDeferrable(operation)) throw invalid(NOT_DEFERRABLE);
    if (!isOpen(operation) || awaitsApproval(operation) || operation.attempt !== attempt)
      throw conflict("The operation no longer waits for this attempt.");
    const { tenant, id: conversationId } = this.context.runtime.state.record;
    const expiresAt = this.context.clock.now() + expiresInMs;
    const handle = await this.context.handles.give({ tenant, conversationId, operationId, expiresAt });
    return { handle, expiresAt };
  }

  /**
   * Commits the result of a deferred operation. Idempotent. Throws `NOT_FOUND` for a handle of another conversation, `CONFLICT` for a late
   * or different result. The late success of an abandoned `once` operation still becomes a note to the model (OP-6). Resolves when the
   * result is durable.
   */
  async complete(handle: unknown, outcome: ToolOutcome): Promise<CompletedOperation> {
    const claim = await this.context.handles.check(handle, this.context.runtime.state.record);
    const { operationId } = claim;
    this.context.shell.tick([{ type: "conversation.cmd.expire" }]);
    const { turn, operation } = operationAt(operationId, this.context.runtime.turn);
    const now = this.context.clock.now();
    if (isGivenUp(operation) && claim.expiresAt > now)
      await this.#noteLate(turn, operation, clientResult(operation, outcome));
    if (!hasOutcome(operation, outcome)) {
      checkExpiry(claim, now);
      const { item } = operation;
      await this.context.shell.commit([{ type: "conversation.tool.resolved", turn: turn.n, item, outcome }]);
    }
    return { operationId, status: outcome.error === undefined ? "completed" : "failed" };
  }

  /**
   * Shows the progress of a deferred operation to readers. Returns whether the operation waits for its result. Throws `NOT_FOUND` for a
   * handle of another conversation.
   */
  async report(handle: unknown, progress?: Json): Promise<boolean> {
    const { operationId } = await this.context.handles.check(handle, this.context.runtime.state.record);
    this.context.shell.tick([{ type: "conversation.cmd.expire" }]);
    const { turn, operation } = operationAt(operationId, this.context.runtime.turn);
    if (!isOpen(operation) || operation.status === "cancelled") return false;
    if (progress !== undefined) this.context.onProgress(turn, operationId, progress);
    return true;
  }

  /** Reports whether an outcome may be the success of a `once` operation that was stopped before. Never throws. */
  isLate(outcome: EffectSignal): boolean {
    if (outcome.type !== "conversation.tool.completed" || !outcome.result.success) return false;
    const { turn: n, item } = outcome;
    if (
      this.context.runtime.state.active.has(n) ||
      extractionOf(this.context.runtime.state, n)?.item === item
    )
      return false;
    try {
      const operation = this.context.runtime.turn(n)?.operations.find((one) => one.item === item);
      return operation?.status === "cancelled" && operation.effect === "once";
    } catch (error) {
      console.error(error);
      return true;
    }
  }

  /** Commits the success of an abandoned `once` operation as one note to the model (OP-6). */
  async #noteLate(turn: Turn, { item, name, effect }: Operation, result: ToolResult): Promise<void> {
    const id = operationId(turn, item);
    if (effect !== "once" || !result.success || this.context.store.hasLateResult(id)) return;
    const { n, agentId: sessionId } = turn;
    const late = { turn: n, item, sessionId, operationId: id, name, result };
    await this.context.shell.commit([{ type: "conversation.tool.late", ...late }]);
  }

  #hookAt(id: string) {
    const found = resolveId(id, "op", this.context.runtime.turn);
    if (found === null) return undefined;
    const { turn, item } = found;
    const { contextAssembly, memoryExtraction } = chainOf(this.context.runtime.state.record, turn.agentId);
    const extraction = extractionOf(this.context.runtime.state, turn.n);
    const [hook, run, recoveries] =
      turn.assembly?.item === item
        ? [contextAssembly, turn.assembly, turn.recoveries]
        : [memoryExtraction, extraction, extraction?.recoveries ?? 0];
    if (hook === undefined || run?.item !== item) return undefined;
    return {
      n: turn.n,
      item,
      attempt: run.attempt,
      recoveries,
      operation: hookOperation(turn, hook, run, {}),
    };
  }
}

/** Checks the ends of calls that come by RPC: of tools from the Executor, and of agents and workflows from actors of an application. */
export class CallEnds {
  constructor(private readonly results: OperationResults) {}

  taskResult(result: unknown): Promise<void> {
    return this.results.takeResult(validate(taskResultSchema, result));
  }

  taskError(failure: unknown): Promise<void> {
    return this.results.takeResult(taskFailure(failure));
  }

  workflowResult(ended: unknown): Promise<void> {
    const { output, ...address } = validate(workflowResultSchema, ended);
    return this.results.takeRunEnd({
      ...address,
      result: { tool_call_id: "", success: true, result: output },
    });
  }

  workflowError(failure: unknown): Promise<void> {
    const { error, ...address } = validate(workflowErrorSchema, failure);
    return this.results.takeRunEnd({ ...address, result: { tool_call_id: "", success: false, error } });
  }

  agentResult(answer: unknown): Promise<void> {
    const { text, ...address } = validate(agentAnswerSchema, answer);
    return this.results.takeAgentEnd(address, { text });
  }

  agentError(failure: unknown): Promise<void> {
    const { error, partial, ...address } = validate(agentErrorSchema, failure);
    return this.results.takeAgentEnd(address, { error, ...defined({ partial }) });
  }
}
