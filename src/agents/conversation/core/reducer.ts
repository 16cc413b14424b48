/**
 * The reducer: applies decisions to the state and says what must be written. Pure; a transition is committed as a whole
 * or not at all.
 *
 * TURN-1  A terminal status never changes.
 * TURN-2  Each message that starts ends: completed, or with its turn.
 * TURN-3  A turn has one user message and any number of agent messages.
 */

import { defined } from "../../../shared/defined.ts";
import { movedTotals, totalsOf, withAttempt, withoutOpenCall } from "./calls.ts";
import type { AgentDecision } from "./decisions.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { createOperation, recordReply, type Transition, withTurn } from "./reduce-turn.ts";
import { type ConversationState, nextEvent, type Turn } from "./state.ts";

/** A transition without changes, to apply decisions to. */
export function beginTransition(state: ConversationState): Transition {
  return { state, entries: [], touched: new Map() };
}

export function reduce(transition: Transition, decisions: readonly AgentDecision[], now: number): Transition {
  return decisions.reduce((current, decision) => applyDecision(current, decision, now), transition);
}

function applyDecision(transition: Transition, decision: AgentDecision, now: number): Transition {
  if (decision.type === "START_TURN") return startTurn(transition, decision, now);
  const turn = transition.state.active.get(decision.turn);
  if (turn === undefined) return transition;
  const entry = (type: JournalEntry["type"], item?: number, data?: JournalEntry["data"]): JournalEntry => ({
    type,
    turn: turn.n,
    ...defined({ item, data }),
  });
  const { chain } = transition.state.record;
  switch (decision.type) {
    case "RECORD_ATTEMPT": {
      const next = withAttempt(turn, decision);
      const { state } = transition;
      const usage = movedTotals(state.usage, totalsOf(turn.calls, chain), totalsOf(next.calls, chain));
      return withTurn({ ...transition, state: { ...state, usage } }, next, []);
    }
    case "CALL_LLM": {
      const call = { item: turn.items, attempt: 1, notBefore: now, final: decision.final };
      const next = { ...turn, call, items: turn.items + 1 };
      return withTurn(transition, next, [entry("message.started", call.item)]);
    }
    case "RETRY_LLM": {
      if (turn.call === null) return transition;
      const { item, attempt } = turn.call;
      const { code, message } = decision.error;
      const call = { ...turn.call, attempt: attempt + 1, notBefore: decision.notBefore };
      const failed = entry("llm.call.failed", item, { attempt, code, message });
      const reset = decision.reset ? [entry("message.reset", item, { reason: "retry" })] : [];
      return withTurn(transition, { ...turn, call }, [failed, ...reset]);
    }
    case "FALL_BACK": {
      if (turn.call === null) return transition;
      const { item, attempt, profile = 0, final } = turn.call;
      const { code, message } = decision.error;
      const call = {
        item,
        attempt: attempt + 1,
        profile: profile + 1,
        before: attempt,
        notBefore: now,
        final,
      };
      const failed = entry("llm.call.failed", item, { attempt, code, message, fallback: decision.to });
      const reset = decision.reset ? [entry("message.reset", item, { reason: "fallback" })] : [];
      return withTurn(transition, { ...turn, call }, [failed, ...reset]);
    }
    case "REPAIR_OUTPUT": {
      if (turn.call === null) return transition;
      const { item, attempt } = turn.call;
      const { text, problem } = decision;
      const call = { ...turn.call, attempt: attempt + 1, before: attempt, notBefore: now };
      const repairs = [...(turn.repairs ?? []), { after: turn.replies.length, text, problem }];
      return withTurn(transition, { ...turn, call, repairs }, [
        entry("message.reset", item, { reason: "invalid_output", message: problem }),
      ]);
    }
    case "RESET_MESSAGE":
      return withTurn(transition, turn, [
        entry("message.reset", turn.call?.item, { reason: decision.reason }),
      ]);
    case "RECORD_MOVE": {
      const next = recordReply(chain, turn, decision.reply, now);
      return withTurn(transition, next, [entry("message.completed", turn.call?.item, { interim: true })]);
    }
    case "DISPATCH_TASK": {
      const next = createOperation(turn, decision.operation, now);
      const item = turn.items;
      const refused = decision.operation.result !== undefined ? [entry("tool.failed", item)] : [];
      return withTurn(transition, next, [entry("tool.requested", item), ...refused]);
    }
    case "RESUME_FROM_TOOL": {
      const operations = turn.operations.map((operation) =>
        operation.item === decision.item
          ? { ...operation, result: decision.result, completedAt: now }
          : operation,
      );
      const { success } = decision.result;
      const next = { ...turn, operations, issues: success ? turn.issues : oneMoreFailure(turn) };
      return withTurn(transition, next, [entry(success ? "tool.completed" : "tool.failed", decision.item)]);
    }
    case "WAIT_FOR_CLIENT":
      return withTurn(transition, turn, [entry("turn.waiting")]);
    case "APPEND_MESSAGE":
      return withTurn(transition, recordReply(chain, turn, decision.reply, now), [
        entry("message.completed", turn.call?.item),
      ]);
    case "COMPLETE_TURN": {
      const entries = [entry("turn.completed"), entry("turn.finalized")];
      const { repairs: _withdrawn, ...kept } = turn;
      return withTurn(transition, { ...kept, status: "completed", completedAt: now, call: null }, entries);
    }
    case "FAIL_TURN": {
      const { error } = decision;
      const closed = withoutOpenCall(turn, now);
      const next = { ...closed, status: "failed" as const, completedAt: now, call: null, error };
      return withTurn(transition, next, [entry("turn.failed")]);
    }
    case "RESUME_TURN":
      return withTurn(transition, { ...turn, recoveries: turn.recoveries + 1 }, [entry("turn.resumed")]);
    default:
      return decision satisfies never;
  }
}

function startTurn(
  transition: Transition,
  decision: Extract<AgentDecision, { type: "START_TURN" }>,
  now: number,
): Transition {
  const { state, entries } = transition;
  const turn: Turn = {
    n: decision.turn,
    stem: decision.stem,
    agentId: decision.agentId,
    caller: decision.caller,
    ...defined({ clientId: decision.clientId }),
    input: decision.content,
    ...defined({
      replyTo: decision.replyTo,
      output: decision.output,
      tools: decision.tools,
      toolChoice: decision.toolChoice,
    }),
    status: "active",
    createdAt: now,
    firstSeq: state.seq + entries.length + 1,
    snapshot: nextEvent(state.sessions, decision.agentId),
    items: 1,
    call: null,
    replies: [],
    operations: [],
    recoveries: 0,
    issues: {},
  };
  return withTurn({ ...transition, state: { ...state, turns: turn.n } }, turn, [
    { type: "turn.started", turn: turn.n },
    { type: "message.user", turn: turn.n, item: 0 },
  ]);
}

function oneMoreFailure(turn: Turn): Turn["issues"] {
  return { ...turn.issues, toolFailures: (turn.issues.toolFailures ?? 0) + 1 };
}
