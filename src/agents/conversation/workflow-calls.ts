/**
 * The envelopes of runs that tool calls and hooks start, at the conversation.
 *
 * FLOWCALL-2  The output of a run is the result of its call. If the run ends in another way, the call fails, and its message has the run's code.
 * FLOWCALL-4  A start that the run refused fails the call, with the reason. If it is unknown whether a start has arrived, the outcome of the
 *             call is unknown, and the run is cancelled.
 * FLOWCALL-5  The end of a run brings the amounts that the run and all work below it have used. They count once, also if the call already has
 *             another result.
 * FLOWCALL-7  An output that does not fit into an envelope or the turn is a success (LARGE-1). The call of a hook fails, because the hook needs
 *             the whole output.
 * FLOWCALL-6  An end counts only if it comes from the run that the attempt has started.
 */

import { type Amounts, NOTHING } from "../../model/spending.ts";
import { isCalled } from "../../protocol/call-address.ts";
import type { ActorAddress } from "../../protocol/envelope.ts";
import type { ToolResult } from "../../protocol/executor-api.ts";
import { resolveId } from "../../protocol/ids.ts";
import {
  RUN_ENDED,
  RUN_START,
  RUN_WAITS,
  type RunCallAddress,
  type RunEndedBody,
  runEndedSchema,
  runStartSchema,
  runWaitsSchema,
} from "../../protocol/run-call.ts";
import type { CalledRun } from "../../protocol/workflow-call.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, type ErrorData } from "../../shared/errors.ts";
import type { DeliveryOutcome } from "../base/mailbox/handlers.ts";
import { NotNow } from "../base/mailbox/handlers.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import { calledRunOf } from "./core/called-run.ts";
import { extractionOf } from "./core/hooks.ts";
import { OUTCOME_UNKNOWN } from "./core/operation.ts";
import { refusedRun } from "./core/planning/run-call.ts";
import { failure } from "./core/planning/tool-call.ts";
import type { Signal } from "./core/signals.ts";
import type { ConversationState } from "./core/state.ts";
import type { Turn } from "./core/turn.ts";
import type { HookRuns } from "./effects/hook-runs.ts";
import { operationAt } from "./inbound/message-checks.ts";
import type { LargeResults } from "./large-results.ts";
import type { ConversationUnit } from "./runtime.ts";

export interface WorkflowCallPorts {
  begin(): ConversationUnit;
  state(): ConversationState;
  /** Returns a turn, active or over; `null` for an unknown number. */
  turn(n: number): Turn | null;
  hookRuns: Pick<HookRuns, "givenTo" | "end">;
  large: Pick<LargeResults, "viewOf" | "viewOfRemote">;
}

/** Registers the handlers of ends and of waits. Each stages its change in the transaction of the receipt. */
export function takeWorkflowCalls(
  mailbox: Pick<Mailbox, "receives" | "receivesAfter" | "outcomes">,
  ports: WorkflowCallPorts,
): void {
  const { begin, turn, state, large } = ports;
  const stage = (signals: Signal[], afterCommit: DeliveryOutcome["afterCommit"], ended?: string) => {
    const unit = begin();
    unit.stage(signals);
    afterCommit(() => {
      if (ended !== undefined) ports.hookRuns.end(ended);
      return unit.release();
    });
  };
  mailbox.receivesAfter(
    RUN_ENDED,
    runEndedSchema,
    async (ended, { from, to }) => {
      checkRun(ended, from, to);
      if (ended.large !== undefined) return large.viewOfRemote(ended, ended.large, from);
      return "output" in ended.outcome ? large.viewOf(ended, ended.outcome.output) : undefined;
    },
    (ended, { envelope: { from }, afterCommit }, view) => {
      const outcome = view === undefined ? ended.outcome : { output: view };
      const result = resultOf({ ...ended, outcome }, from.id);
      const { spent, tainted, operationId } = ended;
      stage(endSignals(ports, ended, { result, spent, tainted }), afterCommit, operationId);
      return null;
    },
  );
  mailbox.receives(RUN_WAITS, runWaitsSchema, (held, { envelope: { from, to }, afterCommit }) => {
    const { operationId, attempt, seq, isHeld } = held;
    if (from.kind === "conversation") checkConversation(held, from, to);
    else checkRun(held, from, to);
    const found = resolveId(operationId, "op", turn);
    if (found === null || !state().active.has(found.turn.n)) return null;
    const address = { turn: found.turn.n, item: found.item, attempt };
    stage([{ type: "conversation.work.held", ...address, seq, isHeld }], afterCommit);
    return null;
  });
  mailbox.outcomes(RUN_START, ({ envelope: { body }, outcome, afterCommit }) => {
    if (outcome.status === "delivered") return;
    const address = runStartSchema.parse(body);
    const result = outcome.status === "failed" ? refusedRun(outcome.error) : unknown(outcome.error);
    stage(endSignals(ports, address, { result }), afterCommit);
  });
}

/** Returns the data of the run of an attempt. Throws `NOT_FOUND` if the attempt waits for no run. */
export function calledRun(
  { record, active }: ConversationState,
  { operationId, attempt }: RunCallAddress,
): CalledRun {
  const found = resolveId(operationId, "op", (n) => active.get(n) ?? null);
  const operation = found?.turn.operations.find(({ item }) => item === found.item);
  const called =
    found === null || operation?.attempt !== attempt ? undefined : calledRunOf(record, found.turn, operation);
  if (called !== undefined) return called;
  throw new DramatisError("NOT_FOUND", "The conversation waits for no run of this attempt.");
}

interface EndOfRun {
  result: ToolResult;
  spent?: Amounts | undefined;
  tainted?: true | undefined;
}

/**
 * Returns the signals of the end of a run. If the run of a stopped call has completed, they include the note to the model (OP-6). Throws
 * `NOT_FOUND` for an unknown operation, and `NotNow` until a context hook has begun again after a crash.
 */
function endSignals(
  { state, turn: turnAt, hookRuns }: Pick<WorkflowCallPorts, "state" | "turn" | "hookRuns">,
  { operationId, attempt }: RunCallAddress,
  { result, spent = NOTHING, tainted }: EndOfRun,
): Signal[] {
  const found = resolveId(operationId, "op", turnAt);
  if (found === null) operationAt(operationId, turnAt);
  if (found === null) return [];
  const { turn, item } = found;
  const { n, agentId } = turn;
  const address = { turn: n, item, attempt };
  const operation = turn.operations.find((one) => one.item === item);
  if (operation?.status === "cancelled" && operation.effect === "once" && result.success) {
    const { name } = operation;
    const late = { turn: n, item, sessionId: agentId, operationId, name, result, spent };
    return [{ type: "conversation.tool.late", ...late }];
  }
  const hook = state().active.get(n)?.assembly ?? extractionOf(state(), n);
  const isHook = hook?.item === item && hook.attempt === attempt && hook.deadline === undefined;
  const given = isHook ? hookRuns.givenTo(operationId, attempt) : {};
  if (given === undefined) throw new NotNow("The hook has not begun again after a crash.");
  const isTransient = result.error?.retriable === true;
  return [
    {
      type: "conversation.tool.completed",
      ...{ ...address, result, agentId, spent },
      ...defined({ transient: isTransient || undefined, tainted, ...given }),
    },
  ];
}

/** Returns the result of a call from the end of its run (FLOWCALL-2). */
function resultOf({ outcome, status }: RunEndedBody, runId: string): ToolResult {
  if ("output" in outcome) return { tool_call_id: "", success: true, result: outcome.output };
  const { code, message } = outcome.error;
  const isOver = status ?? "failed";
  return failure(
    "",
    isOver === "timed_out" ? "TIMEOUT" : "EXECUTION_FAILED",
    `The run "${runId}" of the workflow is ${isOver}: ${code}: ${message}`,
  );
}

function unknown({ message }: Pick<ErrorData, "message">): ToolResult {
  const text = `${OUTCOME_UNKNOWN}: the run of the workflow may have begun, so it was cancelled. ${message}`;
  return failure("", "EXECUTION_FAILED", text);
}

/** Throws `FORBIDDEN` unless the run that an attempt has started has sent an envelope (FLOWCALL-6). */
function checkRun(address: RunCallAddress, from: ActorAddress, to: ActorAddress): void {
  if (from.kind === "coordinator" && isCalled(address, to, from)) return;
  throw new DramatisError("FORBIDDEN", "Only the run that a call has started may report its end.");
}

/** Throws `FORBIDDEN` unless the conversation that a call opened has sent an envelope (AGENTCALL-2). */
function checkConversation(address: RunCallAddress, from: ActorAddress, to: ActorAddress): void {
  if (from.kind === "conversation" && isCalled(address, to, from)) return;
  throw new DramatisError("FORBIDDEN", "Only the conversation of a call may report that it waits.");
}
