/**
 * Background operations: calls of `async` tools, which run while their turn continues, and the cycles that get their results. Pure.
 *
 * ASYNC-1  The model gets `{status: "pending"}` for a call of an `async` tool at once, and is called again as soon as the other calls of
 *          the reply have results.
 * ASYNC-2  If background operations are open when a cycle ends with an answer, its turn stays active and waits. It completes with the
 *          answer of the cycle that gets the last result.
 * ASYNC-3  A result, also a failure, begins a new cycle of its turn, with a new snapshot. Results that arrive during a cycle, or together,
 *          are in the next cycle together.
 * ASYNC-4  The form of an earlier call in a request never changes. A result follows as a separate notice, in the next and all later
 *          requests.
 * ASYNC-5  If turns do not run in parallel, a cycle waits until all other turns are idle. A turn that only waits does not block the queue,
 *          and a newer message does not stop it.
 * ASYNC-6  In a turn that must answer with data or with a single answer, `async` tools run as synchronous tools.
 */
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { isDue } from "../operation.ts";
import type { ConversationState } from "../state.ts";
import type { Turn } from "../turn.ts";
import { backgroundOperations, dueOperations } from "../turn-operations.ts";
import { waitOf, works } from "../waits.ts";
import { notesOf } from "./order.ts";
import { isStuck } from "./repeats.ts";
import { isLastCall } from "./results.ts";

/** Ends a turn with its answer, or only its cycle. */
export function endOfCycle(state: ConversationState, turn: Turn): AgentDecision {
  const { n } = turn;
  if (backgroundOperations(turn).length === 0) return { type: "COMPLETE_TURN", turn: n };
  const isIdle = dueOperations(turn).length === 0 || isHeld(state, turn) || isBehind(state, turn);
  return { type: "MARK_WAITING", turn: n, isIdle };
}

/** Begins the next cycle of the first turn with new results. Call it after every change, until no cycle begins. */
export function planCycle(state: ConversationState, input: Pick<PlanInput, "turns">): AgentDecision[] {
  const due = [...state.active.values()].filter((turn) => waitOf(turn) === "cycle" && !isHeld(state, turn));
  const [first] = due.sort((one, other) => one.n - other.n);
  if (first === undefined) return [];
  const { length } = first.replies;
  const operations = first.operations.map((operation) =>
    isDue(operation) ? { ...operation, delivered: length } : operation,
  );
  const final = isLastCall(state.record, first, length) || isStuck(operations, length);
  return [{ type: "BEGIN_CYCLE", turn: first.n, final, ...notesOf(state, first, input) }];
}

function isHeld({ order, active }: ConversationState, { n, invited }: Turn): boolean {
  if (invited?.passes) return false;
  return order !== "parallel" && [...active.values()].some((turn) => turn.n !== n && works(turn));
}

/** Reports whether the next cycle of an earlier turn comes first. */
function isBehind({ order, active }: ConversationState, { n, invited }: Turn): boolean {
  if (invited?.passes) return false;
  return order !== "parallel" && [...active.values()].some((turn) => turn.n < n && waitOf(turn) === "cycle");
}
