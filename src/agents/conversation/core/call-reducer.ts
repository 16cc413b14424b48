/** Applies decisions about calls of other agents. Pure. */
import { type CallAsk, MAX_ASKS } from "../../../protocol/agent-call.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { toIso } from "../../../shared/time.ts";
import type { AgentDecision } from "./decisions.ts";
import { askView } from "./frames.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { callDeadline, dispatched, type Operation, withAsk } from "./operation.ts";
import { type Transition, withTurn } from "./transition.ts";
import { blockingOperations, type Turn } from "./turn.ts";
import { waitForResults } from "./waits.ts";

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
        return call === undefined ? operation : dispatched(operation, call);
      });
      const entries = calls.map(({ item }) => entry("agent_call.started", item));
      return withTurn(transition, { ...turn, operations }, entries);
    }
    case "NOTE_ASK": {
      const { item, ask } = decision;
      const changed = change(item, (operation) => withAsk(operation, ask));
      const data = { expiresAt: toIso(ask.expiresAt), of: jsonOf(ask) };
      const noted = { ...transition, asks: [...transition.asks, ask] };
      return withTurn(noted, changed, [entry("approval.requested", item, data)]);
    }
    case "NOTE_ANSWER": {
      const { item, ask, outcome } = decision;
      const changed = change(item, (operation) => answeredAsk(operation, ask.operationId, now));
      // What was asked for is in the entry of the request.
      const { input: _input, modelInput: _model, target: _target, ...answered } = ask;
      const data = { outcome, of: jsonOf(answered) };
      const wait = waitForResults(blockingOperations(changed));
      const { waiting: _over, ...goesOn } = changed;
      const isOver = wait === "tools" || wait === "agents";
      return withTurn(transition, isOver ? goesOn : changed, [entry("approval.resolved", item, data)]);
    }
    default:
      return decision satisfies never;
  }
}

function jsonOf(ask: CallAsk): Json {
  // SAFETY: a request is plain data.
  return askView(ask) as unknown as Json;
}

function answeredAsk(operation: Operation, operationId: string, now: number): Operation {
  const { agent } = operation;
  if (agent === undefined) return operation;
  const { asks: before = [], answered = [], ...rest } = agent;
  const asks = before.filter((ask) => ask.operationId !== operationId);
  const early = asks.length < before.length ? answered : [...answered, operationId].slice(-MAX_ASKS);
  const others = early.length === 0 ? rest : { ...rest, answered: early };
  if (asks.length > 0) return { ...operation, agent: { ...others, asks, answeredAt: now } };
  return { ...operation, deadline: callDeadline(operation, now), agent: { ...others, answeredAt: now } };
}
