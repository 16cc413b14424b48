/** Applies decisions about one operation of a turn, and about the waits of a turn for operations. Pure. */
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { toIso } from "../../../shared/time.ts";
import type { AgentDecision } from "./decisions.ts";
import { withOutcome } from "./isolation.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { answered, awaitsApproval, deferred, type Operation, repeated, settled } from "./operation.ts";
import { withSpending } from "./own-spending.ts";
import { chainOf } from "./state.ts";
import { repeatedEntries, stoppedEntries } from "./sub-agents.ts";
import { keptTask, taskEntries } from "./task-entries.ts";
import { dueFor, taskOf } from "./task-spending.ts";
import { type Transition, withTurn } from "./transition.ts";
import { blockingOperations, type Turn } from "./turn.ts";
import { waitForResults } from "./waits.ts";

type OperationDecision = Extract<
  AgentDecision,
  {
    type:
      | "INTERRUPT_TASK"
      | "DEFER_TASK"
      | "RETRY_TASK"
      | "RESOLVE_APPROVAL"
      | "RESUME_FROM_TOOL"
      | "WAIT_FOR_PERSON"
      | "WAIT_FOR_CLIENT"
      | "MARK_WAITING";
  }
>;

export function reduceOperation(
  transition: Transition,
  turn: Turn,
  decision: OperationDecision,
  now: number,
): Transition {
  const entry = (type: JournalEntry["type"], item?: number, data?: JournalEntry["data"]): JournalEntry => ({
    type,
    turn: turn.n,
    ...defined({ item, data }),
  });
  /** Number of the next entry. */
  const nextSeq = transition.state.seq + transition.entries.length + 1;
  const change = (item: number, changed: (operation: Operation) => Operation): Turn => ({
    ...turn,
    operations: turn.operations.map((one) => (one.item === item ? changed(one) : one)),
  });
  switch (decision.type) {
    case "INTERRUPT_TASK": {
      const { item, deadline } = decision;
      const changed = change(item, (operation) => ({ ...operation, status: "interrupted", deadline }));
      return withTurn(transition, changed, [entry("tool.interrupted", item)]);
    }
    case "DEFER_TASK": {
      const { item, deadline } = decision;
      const changed = change(item, (operation) => deferred(operation, deadline, now));
      const entries = [entry("tool.deferred", item, { expiresAt: toIso(deadline) })];
      return withTurn(transition, { ...changed, ...withOutcome(turn) }, entries);
    }
    case "RETRY_TASK": {
      const { item, notBefore, error, task } = decision;
      const failed = turn.operations.find((operation) => operation.item === item);
      const { attempt = 1 } = failed ?? {};
      const chain = chainOf(transition.state.record, turn.agentId);
      const changed = change(item, (operation) => ({
        ...repeated(operation, notBefore),
        ...dueFor(taskOf(chain, operation)),
        ...keptTask(task),
      }));
      const data = { attempt, code: error.code, message: error.message };
      const entries = [
        ...taskEntries(turn.n, item, task, false),
        entry("tool.call.failed", item, data),
        ...repeatedEntries(transition.state.record, turn, failed, error),
      ];
      return withTurn(transition, { ...changed, ...withOutcome(turn) }, entries);
    }
    case "RESOLVE_APPROVAL": {
      const { item, outcome, by, reason } = decision;
      const given = { outcome, ...defined({ by, reason }) };
      const changed = change(item, (operation) => answered(operation, { ...given, at: now }));
      const wait = waitForResults(blockingOperations(changed));
      const goesOn = wait === "tools" || wait === "agents";
      const next = goesOn ? withoutWait(changed) : changed;
      return withTurn(transition, { ...next, ...withOutcome(turn) }, [
        entry("approval.resolved", item, given),
      ]);
    }
    case "RESUME_FROM_TOOL": {
      const { item, result, task, isUnused } = decision;
      const changed = change(item, (operation) => ({
        ...settled(operation, result, now),
        ...keptTask(task),
      }));
      const issues = result.success ? {} : { issues: oneMoreFailure(turn) };
      const entries = [
        ...taskEntries(turn.n, item, task, result.success),
        entry(result.success ? "tool.completed" : "tool.failed", item),
        ...turn.operations
          .filter((operation) => operation.item === item)
          .flatMap((operation) => stoppedEntries(transition.state.record, turn, operation, result)),
      ];
      const resumed = { ...changed, ...withOutcome(turn), ...issues };
      if (!isUnused) return withTurn(transition, resumed, entries);
      const { state } = transition;
      const uncounted = {
        ...transition,
        state: { ...state, ...withSpending(state, turn.agentId, { toolCalls: -1 }) },
      };
      return withTurn(uncounted, { ...resumed, toolCalls: (turn.toolCalls ?? 0) - 1 }, entries);
    }
    case "WAIT_FOR_PERSON": {
      const entries = [entry("turn.waiting", undefined, { reason: "approval" })];
      return withTurn(transition, { ...turn, waiting: nextSeq }, entries);
    }
    case "WAIT_FOR_CLIENT":
      return withTurn(transition, withoutWait(turn), [entry("turn.waiting")]);
    case "MARK_WAITING": {
      const entries = decision.isIdle ? [entry("turn.waiting", undefined, { reason: "operations" })] : [];
      return withTurn(transition, { ...turn, waiting: nextSeq - 1 + entries.length }, entries);
    }
    default:
      return decision satisfies never;
  }
}

function withoutWait({ waiting: _over, ...turn }: Turn): Turn {
  return turn;
}

/** Returns the entries of an operation that waits for a person from its beginning. */
export function approvalEntries(
  turn: number,
  item: number,
  operation: Pick<Operation, "status" | "deadline">,
): JournalEntry[] {
  if (!awaitsApproval(operation)) return [];
  const { deadline } = operation;
  const data: JsonObject = deadline === undefined ? {} : { expiresAt: toIso(deadline) };
  return [{ type: "approval.requested", turn, item, data }];
}

export function oneMoreFailure({ issues }: Pick<Turn, "issues">): Turn["issues"] {
  return { ...issues, toolFailures: (issues.toolFailures ?? 0) + 1 };
}
