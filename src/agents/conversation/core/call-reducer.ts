/** Applies decisions about calls of other agents and of runs. Pure. */
import { type CallAsk, MAX_ASKS } from "../../../protocol/agent-call.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { toIso } from "../../../shared/time.ts";
import { runMark } from "./called-workflow.ts";
import type { AgentDecision } from "./decisions.ts";
import type { JournalEntry } from "./journal-entry.ts";
import { callDeadline, dispatched, type Operation, withAsk, withHold } from "./operation.ts";
import { startedEntries } from "./sub-agents.ts";
import { type Transition, withTurn } from "./transition.ts";
import { blockingOperations, type Turn } from "./turn.ts";
import { askView } from "./view-members.ts";
import { waitForResults } from "./waits.ts";

type CallDecision = Extract<
  AgentDecision,
  { type: "DISPATCH_CALLS" | "NOTE_ASK" | "NOTE_ANSWER" | "NOTE_HOLD" }
>;

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
        return call === undefined ? operation : dispatched(operation, call, now);
      });
      const { record } = transition.state;
      const entries = operations
        .filter(({ item }) => calls.some((call) => call.item === item))
        .flatMap((operation) =>
          operation.target === "workflow"
            ? [entry("workflow_run.started", operation.item, runMark(record, turn, operation))]
            : [entry("agent_call.started", operation.item), ...startedEntries(record, turn, operation)],
        );
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
      // The request's entry already has the input.
      const { input: _input, modelInput: _model, target: _target, ...answered } = ask;
      const data = { outcome, of: jsonOf(answered) };
      return withTurn(transition, afterWait(changed), [entry("approval.resolved", item, data)]);
    }
    case "NOTE_HOLD": {
      const { item, seq, isHeld } = decision;
      const changed = change(item, (operation) => withHold(operation, { seq, isHeld }, now));
      const type = isHeld ? "work.held" : "work.released";
      return withTurn(transition, isHeld ? changed : afterWait(changed), [entry(type, item)]);
    }
    default:
      return decision satisfies never;
  }
}

/** Returns a turn after an answer of a person: it waits no longer if an agent, a run or a tool works for it. */
function afterWait(turn: Turn): Turn {
  const wait = waitForResults(blockingOperations(turn));
  const { waiting: _over, ...goesOn } = turn;
  return wait === "tools" || wait === "agents" ? goesOn : turn;
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
