/** Applies decisions about calls of other agents. Pure. */
import type { CallAsk } from "../../../protocol/agent-call.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { toIso } from "../../../shared/time.ts";
import type { AgentDecision } from "./decisions.ts";
import { askView } from "./frames.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { callDeadline, dispatched, type Operation } from "./operation.ts";
import { type Transition, withTurn } from "./transition.ts";
import type { Turn } from "./turn.ts";

type CallDecision = Extract<AgentDecision, { type: "DISPATCH_CALLS" | "NOTE_ASK" | "NOTE_ANSWER" }>;

export function reduceCall(
  transition: Transition,
  turn: Turn,
  decision: CallDecision,
  now: number,
): Transition {
  const entry = (type: JournalEntry["type"], item: number, data?: JournalEntry["data"]): JournalEntry => ({
    type,
    turn: turn.n,
    item,
    ...defined({ data }),
  });
  const change = (item: number, changed: (operation: Operation) => Operation): Turn => ({
    ...turn,
    operations: turn.operations.map((one) => (one.item === item ? changed(one) : one)),
  });
  switch (decision.type) {
    case "DISPATCH_CALLS": {
      const { calls } = decision;
      const operations = turn.operations.map((operation) => {
        const call = calls.find(({ item }) => item === operation.item);
        return call === undefined ? operation : dispatched(operation, call.budget);
      });
      const entries = calls.map(({ item }) => entry("agent_call.started", item));
      return withTurn(transition, { ...turn, operations }, entries);
    }
    case "NOTE_ASK": {
      const { item, ask } = decision;
      const changed = change(item, (operation) => asked(operation, ask));
      const data = { expiresAt: toIso(ask.expiresAt), of: jsonOf(ask) };
      return withTurn(transition, changed, [entry("approval.requested", item, data)]);
    }
    case "NOTE_ANSWER": {
      const { item, ask, outcome } = decision;
      const changed = change(item, (operation) => answeredAsk(operation, ask.operationId, now));
      const data = { outcome, of: jsonOf(ask) };
      return withTurn(transition, changed, [entry("approval.resolved", item, data)]);
    }
    default:
      return decision satisfies never;
  }
}

function jsonOf(ask: CallAsk): Json {
  // SAFETY: a request is plain data.
  return askView(ask) as unknown as Json;
}

/** Returns a call that waits for a person, too: its own time begins anew with the answer. */
function asked(operation: Operation, ask: CallAsk): Operation {
  const { agent, deadline } = operation;
  if (agent === undefined) return operation;
  const latest = Math.max(deadline ?? 0, callDeadline(operation, ask.expiresAt));
  return { ...operation, deadline: latest, agent: { ...agent, asks: [...(agent.asks ?? []), ask] } };
}

function answeredAsk(operation: Operation, operationId: string, now: number): Operation {
  const { agent } = operation;
  if (agent === undefined) return operation;
  const { asks: before = [], ...others } = agent;
  const asks = before.filter((ask) => ask.operationId !== operationId);
  if (asks.length > 0) return { ...operation, agent: { ...others, asks, answeredAt: now } };
  return { ...operation, deadline: callDeadline(operation, now), agent: { ...others, answeredAt: now } };
}
