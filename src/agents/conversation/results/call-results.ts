/**
 * The handlers of the ends of calls: of agents, and of runs that tool calls and hooks start. Each handler stages its change in the transaction of
 * the receipt.
 *
 * AGENTCALL-2  A result counts only if it comes from the conversation that the call opened; a cancellation, only if it comes from the
 *              caller.
 * FLOWCALL-2  The output of a run is the result of its call. If the run ends in another way, the call fails, and its message has the run's code.
 * FLOWCALL-4  A start that the run refused fails the call, with the reason. If it is unknown whether a start has arrived, the outcome of the
 *             call is unknown, and the run is cancelled.
 * FLOWCALL-5  The end of a run brings the amounts that the run and all work below it have used. They count once, also if the call already has
 *             another result.
 * FLOWCALL-7  An output that does not fit into an envelope or the turn is a success (LARGE-1). The call of a hook fails, because the hook needs
 *             the whole output.
 * FLOWCALL-6  An end counts only if it comes from the run that the attempt has started.
 */
import { type Amounts, NOTHING } from "../../../model/spending.ts";
import {
  AGENT_ASK,
  AGENT_CALL,
  AGENT_RESULT,
  type AgentOutcome,
  agentAskSchema,
  agentCallSchema,
  agentResultSchema,
} from "../../../protocol/agent-call.ts";
import { type CallAddress, isCalled } from "../../../protocol/call-address.ts";
import type { Envelope } from "../../../protocol/envelope.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import { resolveId } from "../../../protocol/ids.ts";
import {
  RUN_ENDED,
  RUN_START,
  RUN_WAITS,
  type RunEndedBody,
  runEndedSchema,
  runStartSchema,
  runWaitsSchema,
} from "../../../protocol/run-call.ts";
import type { CalledRun } from "../../../protocol/workflow-call.ts";
import { defined } from "../../../shared/defined.ts";
import { type ErrorData, forbidden, notFound } from "../../../shared/errors.ts";
import { validate } from "../../../shared/validation.ts";
import { type DeliveryOutcome, NotNow } from "../../base/mailbox/handlers.ts";
import type { Mailbox } from "../../base/mailbox/mailbox.ts";
import { calledRunOf } from "../core/called-run.ts";
import { extractionOf } from "../core/hooks.ts";
import { OUTCOME_UNKNOWN } from "../core/operation.ts";
import { resultOf as answerOf } from "../core/planning/agent-call.ts";
import { refusedRun } from "../core/planning/run-call.ts";
import { failure } from "../core/planning/tool-call.ts";
import type { AgentEnded, Signal } from "../core/signals.ts";
import type { ConversationState } from "../core/state.ts";
import { operationAt } from "../inbound/message-checks.ts";
import type { ConversationRuntime } from "../runtime.ts";

type CallRuntime = Pick<ConversationRuntime, "begin" | "state" | "turn" | "hookRuns" | "large">;

/** Returns a function that stages signals in the transaction of a receipt, and releases them after its commit. */
export function staging(runtime: Pick<ConversationRuntime, "begin">) {
  return (signals: readonly Signal[], afterCommit: DeliveryOutcome["afterCommit"]): void => {
    const unit = runtime.begin();
    unit.stage(signals);
    afterCommit(() => unit.release());
  };
}

export function takeCallResults(
  mailbox: Pick<Mailbox, "receives" | "receivesAfter" | "outcomes">,
  runtime: CallRuntime,
): void {
  const { large } = runtime;
  const stage = staging(runtime);
  mailbox.receivesAfter(
    AGENT_RESULT,
    agentResultSchema,
    async (result, envelope) => {
      checkAgent(result, envelope, "Only the conversation that a call opened may report on the call.");
      const { outcome, large: excerpt } = result;
      if (outcome === undefined || "error" in outcome) return undefined;
      return excerpt === undefined
        ? large.viewOf(result, outcome.text)
        : large.viewOfRemote(result, excerpt, envelope.from);
    },
    (result, { afterCommit }, view) => {
      const { outcome, spent } = result;
      const seen = view === undefined ? outcome : { text: "", view };
      stage(agentEnd(runtime, result, { spent, ...defined({ outcome: seen }) }), afterCommit);
      return null;
    },
  );
  mailbox.receives(AGENT_ASK, agentAskSchema, ({ ask, outcome, ...address }, { envelope, afterCommit }) => {
    checkAgent(address, envelope, "Only the conversation that a call opened may report on the call.");
    const { turn: found, operation } = operationAt(address.operationId, runtime.turn);
    const { attempt } = address;
    const asked = { turn: found.n, item: operation.item, attempt, ask, ...defined({ outcome }) };
    stage([{ type: "conversation.agent.asked", ...asked }], afterCommit);
    return null;
  });
  mailbox.outcomes(AGENT_CALL, ({ envelope, outcome, afterCommit }) => {
    // If it is unknown whether the call arrived, its result may still come: the time limit of the call decides.
    if (outcome.status !== "failed") return;
    const call = validate(agentCallSchema, envelope.body);
    const ended = { outcome: unreached(call.agentId, outcome.error.message), spent: NOTHING };
    stage(agentEnd(runtime, call, ended), afterCommit);
  });
  mailbox.receivesAfter(
    RUN_ENDED,
    runEndedSchema,
    async (ended, envelope) => {
      checkRun(ended, envelope);
      if (ended.large !== undefined) return large.viewOfRemote(ended, ended.large, envelope.from);
      return "output" in ended.outcome ? large.viewOf(ended, ended.outcome.output) : undefined;
    },
    (ended, { envelope: { from }, afterCommit }, view) => {
      const outcome = view === undefined ? ended.outcome : { output: view };
      const result = resultOf({ ...ended, outcome }, from.id);
      const { spent, tainted, operationId } = ended;
      const unit = runtime.begin();
      unit.stage(runEnd(runtime, ended, { result, spent, tainted }));
      afterCommit(() => {
        runtime.hookRuns.end(operationId);
        return unit.release();
      });
      return null;
    },
  );
  mailbox.receives(RUN_WAITS, runWaitsSchema, (held, { envelope, afterCommit }) => {
    const { operationId, attempt, seq, isHeld } = held;
    if (envelope.from.kind === "conversation")
      checkAgent(held, envelope, "Only the conversation that a call opened may report that the call waits.");
    else checkRun(held, envelope);
    const found = resolveId(operationId, "op", runtime.turn);
    if (found === null || !runtime.state.active.has(found.turn.n)) return null;
    const address = { turn: found.turn.n, item: found.item, attempt };
    stage([{ type: "conversation.work.held", ...address, seq, isHeld }], afterCommit);
    return null;
  });
  mailbox.outcomes(RUN_START, ({ envelope: { body }, outcome, afterCommit }) => {
    if (outcome.status === "delivered") return;
    const address = runStartSchema.parse(body);
    const result = outcome.status === "failed" ? refusedRun(outcome.error) : unknown(outcome.error);
    stage(runEnd(runtime, address, { result }), afterCommit);
  });
}

/**
 * Returns the signals of the end of a call. If a stopped call has an answer, they include a note to the model (OP-6). Throws
 * `NOT_FOUND` for an operation that the conversation does not have.
 */
function agentEnd(
  runtime: CallRuntime,
  { operationId, attempt }: CallAddress,
  ended: Pick<AgentEnded, "outcome" | "spent">,
): Signal[] {
  const { turn, operation } = operationAt(operationId, runtime.turn);
  const { item, name, effect, status } = operation;
  const { n, agentId } = turn;
  const end: AgentEnded = { type: "conversation.agent.ended", turn: n, item, attempt, agentId, ...ended };
  const { outcome } = ended;
  const isLate = status === "cancelled" && effect === "once" && operation.attempt === attempt;
  if (!isLate || outcome === undefined || "error" in outcome) return [end];
  const result = answerOf(operation, outcome);
  return [
    end,
    { type: "conversation.tool.late", turn: n, item, sessionId: agentId, operationId, name, result },
  ];
}

function unreached(agentId: string, why: string): AgentOutcome {
  const message = `The agent "${agentId}" could not be called: ${why}`;
  return { error: { code: "EXECUTION_FAILED", message, retriable: true } };
}

/** Returns the data of the run of an attempt. Throws `NOT_FOUND` if the attempt waits for no run. */
export function calledRun(
  { record, active }: ConversationState,
  { operationId, attempt }: CallAddress,
): CalledRun {
  const found = resolveId(operationId, "op", (n) => active.get(n) ?? null);
  const operation = found?.turn.operations.find(({ item }) => item === found.item);
  const called =
    found === null || operation?.attempt !== attempt ? undefined : calledRunOf(record, found.turn, operation);
  if (called !== undefined) return called;
  throw notFound("The conversation does not wait for a run of this attempt.");
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
function runEnd(
  { state, turn: turnAt, hookRuns }: CallRuntime,
  { operationId, attempt }: CallAddress,
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
  const hook = state.active.get(n)?.assembly ?? extractionOf(state, n);
  const isHook = hook?.item === item && hook.attempt === attempt && hook.deadline === undefined;
  const given = isHook ? hookRuns.givenTo(operationId, attempt) : {};
  if (given === undefined) throw new NotNow("The hook has not restarted after a crash yet.");
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
function checkRun(address: CallAddress, { from, to }: Pick<Envelope, "from" | "to">): void {
  if (from.kind === "coordinator" && isCalled(address, to, from)) return;
  throw forbidden("Only the run that a call has started may report its end.");
}

/** Throws `FORBIDDEN` unless the conversation that a call opened has sent an envelope (AGENTCALL-2). */
function checkAgent(
  address: CallAddress,
  { from, to }: Pick<Envelope, "from" | "to">,
  message: string,
): void {
  if (from.kind === "conversation" && isCalled(address, to, from)) return;
  throw forbidden(message);
}
