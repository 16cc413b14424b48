/**
 * The tool calls of a turn: requested, run, repeated, deferred, answered. Pure.
 *
 * TASKLOG-2  The journal has the beginning and the end of each attempt of a task, and its events and measurements, in the commits of its
 *            call. A call of code has no such entries. If a stop ended the attempt, they follow after the Executor reports its progress.
 */
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import type { PinnedTask } from "../../../../protocol/task-definition.ts";
import type { TaskSummary } from "../../../../protocol/task-summary.ts";
import { defined } from "../../../../shared/defined.ts";
import type { JsonObject } from "../../../../shared/json.ts";
import { toIso } from "../../../../shared/time.ts";
import { runMember } from "../called-workflow.ts";
import { withOutcome } from "../isolation.ts";
import type { JournalEntry } from "../journal-entry.ts";
import { withSpending } from "../ledger.ts";
import { awaitsApproval, continued, deferred, type Operation, repeated, settled } from "../operation.ts";
import type { LateResult } from "../signals.ts";
import { nextEvent } from "../state.ts";
import { repeatedEntries, requestedEntries, stoppedEntries } from "../sub-agents.ts";
import { dueFor, taskOf } from "../task-spending.ts";
import { type Transition, withTurn } from "../transition.ts";
import type { Turn } from "../turn.ts";
import { lateResultEvent } from "../turn-events.ts";
import { agentMember, clientMember, taskMember, wireError } from "../view-members.ts";
import { type EntryOfTurn, type FailureText, type FrameBody, noted, silent, type TurnStep } from "./fact.ts";
import { retriableError } from "./model-call.ts";

export const tool = {
  /** Records a call of the current reply. A refused call has its result. */
  DISPATCH_TASK(
    on: TurnStep,
    { operation: given }: { operation: Omit<Operation, "item" | "reply"> },
  ): Transition {
    const { transition, state, turn, chain, now } = on;
    const { items: item } = turn;
    const task = taskOf(chain, given);
    const isRefused = given.result !== undefined;
    const operation = {
      ...given,
      item,
      reply: turn.replies.length - 1,
      ...(isRefused ? { completedAt: now } : dueFor(task)),
    };
    const { deadline } = operation;
    const spending = isRefused ? {} : withSpending(state, turn.agentId, { toolCalls: 1 });
    const next = {
      ...turn,
      items: item + 1,
      operations: [...turn.operations, operation],
      ...(isRefused ? { issues: oneMoreFailure(turn) } : { toolCalls: (turn.toolCalls ?? 0) + 1 }),
    };
    const { requested, refused } = requestedEntries(on.record, turn, operation);
    const asks = awaitsApproval(operation)
      ? [on.entry("approval.requested", item, deadline === undefined ? {} : { expiresAt: toIso(deadline) })]
      : [];
    return withTurn({ ...transition, state: { ...state, ...spending } }, next, [
      on.entry("tool.requested", item),
      ...decidedEntries(on, operation),
      ...requested,
      ...(isRefused ? [] : dispatchedEntries(turn.n, item, task)),
      ...asks,
      ...(isRefused ? [on.entry("tool.failed", item)] : []),
      ...refused,
    ]);
  },

  /** Waits until `deadline` for the result of a run that the actor no longer follows. */
  INTERRUPT_TASK(on: TurnStep, { item, deadline }: { item: number; deadline: number }): Transition {
    const changed = on.withOperation(item, (operation) => ({
      ...operation,
      status: "interrupted",
      deadline,
    }));
    return on.replace(changed, on.entry("tool.interrupted", item));
  },

  /** Waits until `deadline` for a result by a handle. */
  DEFER_TASK(on: TurnStep, { item, deadline }: { item: number; deadline: number }): Transition {
    const changed = on.withOperation(item, (operation) => deferred(operation, deadline, on.now));
    const entry = on.entry("tool.deferred", item, { expiresAt: toIso(deadline) });
    return on.replace({ ...changed, ...withOutcome(on.turn) }, entry);
  },

  /** Asks for the result of a remote agent in the next attempt, no earlier than `notBefore` (A2ATASK-1). */
  CONTINUE_TASK(on: TurnStep, { item, notBefore }: { item: number; notBefore: number }): Transition {
    const changed = on.withOperation(item, (operation) => continued(operation, notBefore));
    const entry = on.entry("tool.continued", item, { notBefore: toIso(notBefore) });
    return on.replace({ ...changed, ...withOutcome(on.turn) }, entry);
  },

  /** Repeats a failed attempt of an operation, no earlier than `notBefore`. */
  RETRY_TASK(
    on: TurnStep,
    data: { item: number; error: FailureText; notBefore: number; task?: TaskSummary },
  ): Transition {
    const { item, error, notBefore, task } = data;
    const { turn, chain } = on;
    const failed = turn.operations.find((operation) => operation.item === item);
    const changed = on.withOperation(item, (operation) => ({
      ...repeated(operation, notBefore),
      ...dueFor(taskOf(chain, operation)),
      ...keptTask(task),
    }));
    const failure = { attempt: failed?.attempt ?? 1, code: error.code, message: error.message };
    return on.replace(
      { ...changed, ...withOutcome(turn) },
      ...taskEntries(turn.n, item, task, false),
      on.entry("tool.call.failed", item, failure),
      ...repeatedEntries(on.record, turn, failed, error),
    );
  },

  /** Gives an operation its result. `isUnused`: the call was counted, and did not run. */
  RESUME_FROM_TOOL(
    on: TurnStep,
    data: { item: number; result: ToolResult; task?: TaskSummary; isUnused?: true },
  ): Transition {
    const { item, result, task, isUnused } = data;
    const { transition, state, turn, record, now } = on;
    const changed = on.withOperation(item, (operation) => ({
      ...settled(operation, result, now),
      ...keptTask(task),
    }));
    const issues = result.success ? {} : { issues: oneMoreFailure(turn) };
    const { rule } = result.error ?? {};
    const entries = [
      ...taskEntries(turn.n, item, task, result.success),
      // A rule denied the call while it ran (POLICY-7).
      ...(rule === undefined ? [] : [on.entry("policy.denied", item, { rule })]),
      on.entry(result.success ? "tool.completed" : "tool.failed", item),
      ...turn.operations
        .filter((operation) => operation.item === item)
        .flatMap((operation) => stoppedEntries(record, turn, operation, result)),
    ];
    const resumed = { ...changed, ...withOutcome(turn), ...issues };
    if (!isUnused) return on.replace(resumed, ...entries);
    const spending = withSpending(state, turn.agentId, { toolCalls: -1 });
    const uncounted = { ...resumed, toolCalls: (turn.toolCalls ?? 0) - 1 };
    return withTurn({ ...transition, state: { ...state, ...spending } }, uncounted, entries);
  },
};

/** Decisions about calls of turns that are over. */
export const lateTool = {
  /** Tells the model of a result that came after its turn was over. */
  NOTE_LATE_RESULT(
    transition: Transition,
    { turn, item, ...result }: Omit<LateResult, "type" | "spent">,
    now: number,
  ): Transition {
    const { state, notes, late } = transition;
    const { sessionId, operationId } = result;
    const seq = nextEvent(state.sessions, sessionId);
    const next = {
      ...transition,
      state: { ...state, sessions: { ...state.sessions, [sessionId]: seq + 1 } },
      notes: [...notes, lateResultEvent({ ...result, seq }, now)],
      late: [...late, operationId],
    };
    return noted(next, { type: "tool.late", turn, item });
  },

  /** Records the progress of a task after its turn was stopped. */
  NOTE_STOPPED_TASK(
    transition: Transition,
    { turn, item, task }: { turn: number; item: number; task: TaskSummary },
  ): Transition {
    return noted(transition, ...taskEntries(turn, item, task, false));
  },
};

function oneMoreFailure({ issues }: Pick<Turn, "issues">): Turn["issues"] {
  return { ...issues, toolFailures: (issues.toolFailures ?? 0) + 1 };
}

/** Returns the entry of a task that begins; an empty list without a task. */
function dispatchedEntries(turn: number, item: number, task: PinnedTask | undefined): JournalEntry[] {
  if (task === undefined) return [];
  const { library = "", id, version, steps } = task;
  const data = { task: `${library}/${id}@${version}`, steps: steps.length };
  return [{ type: "task.dispatched", turn, item, data }];
}

/** Returns the entries of a finished attempt of a task; an empty list without a task. */
export function taskEntries(
  turn: number,
  item: number,
  summary: TaskSummary | undefined,
  isSuccess: boolean,
): JournalEntry[] {
  if (summary === undefined) return [];
  const { task, steps, durationMs, models, events = [], metrics = [] } = summary;
  const failed = steps.find(({ status }) => status === "failed" || status === "ended");
  const data: JsonObject = {
    task: `${task.library}/${task.id}@${task.version}`,
    steps: steps.length,
    durationMs,
    ...defined({ models: models && { ...models }, failedStep: isSuccess ? undefined : failed?.ref }),
  };
  return [
    ...events.map((event): JournalEntry => ({ type: "task.event", turn, item, data: { ...event } })),
    ...metrics.map((metric): JournalEntry => ({ type: "task.metric", turn, item, data: { ...metric } })),
    { type: isSuccess ? "task.completed" : "task.failed", turn, item, data },
  ];
}

/** Returns the entry of the decision of a rule about a call (POLICY-4). */
function decidedEntries(on: TurnStep, { item, policy }: Operation): JournalEntry[] {
  if (policy === undefined) return [];
  const { decision, rule, reason, taint } = policy;
  return [on.entry(ENTRY_OF[decision], item, defined({ rule, reason, taint: taint && [...taint] }))];
}

const ENTRY_OF = { allow: "policy.allowed", ask: "policy.asked", deny: "policy.denied" } as const;

/** Returns the part of a task that its operation stores, as a member; `{}` without a task. */
function keptTask(summary: TaskSummary | undefined): Pick<Operation, "task"> {
  if (summary === undefined) return {};
  const { events: _events, metrics: _metrics, ...task } = summary;
  return { task };
}

/** Returns the agent and the run of an entry's call, as members. */
function called({ turn, operation, record }: EntryOfTurn) {
  return operation === undefined
    ? {}
    : { ...agentMember(turn, operation), ...runMember(record, turn, operation) };
}

export const toolFrames = {
  ...silent(
    "policy.allowed",
    "policy.asked",
    "policy.denied",
    "tool.interrupted",
    "tool.continued",
    "tool.late",
  ),
  ...silent("task.dispatched", "task.event", "task.metric", "task.completed", "task.failed"),
  "tool.requested": (_: undefined, of: EntryOfTurn): FrameBody => {
    const { name = "", input = {}, target, mode } = of.operation ?? {};
    const members = { ...clientMember(target), ...called(of) };
    return { type: "tool.requested", data: { name, input, async: mode === "async", ...members } };
  },
  "tool.deferred": ({ expiresAt }: { expiresAt: string }): FrameBody => ({
    type: "tool.deferred",
    data: { expiresAt },
  }),
  "tool.call.failed": retriableError,
  "tool.completed": (_: undefined, of: EntryOfTurn): FrameBody => {
    const { operation } = of;
    const members = { ...called(of), ...taskMember(operation ?? {}) };
    return { type: "tool.completed", data: { result: operation?.result?.result ?? null, ...members } };
  },
  "tool.failed": (_: undefined, of: EntryOfTurn): FrameBody => {
    const { operation } = of;
    const members = { ...called(of), ...taskMember(operation ?? {}) };
    return { type: "tool.failed", data: { error: wireError(operation?.result?.error), ...members } };
  },
  "tool.cancelled": (_: unknown, { operation }: EntryOfTurn): FrameBody => ({
    type: "tool.cancelled",
    data: { error: wireError(operation?.result?.error) },
  }),
};
