/**
 * The room of a run in its tree: the runs that may work below it at the same time, and the tokens that may be active in it. Pure.
 *
 * TREEROOM-1  The first run has the room of the tree. A run gives each run that it starts a share of its own room, and never gives more than it
 *             has. So runs that work in different branches of a tree are bounded together.
 * TREEROOM-2  Free room is divided equally between the tokens that may still start a run, at least 1 each. A token without room stays ready,
 *             and begins when a run below ends or rests. Its actor does not poll.
 * TREEROOM-3  Each share is at least 1. So a run without working runs below it can always start a run, and a chain of any depth ends.
 * TREEROOM-4  A run rests while it waits for people and resting runs only, also through its agents. It tells the run above when that changes. A
 *             resting run holds no room of the run above, and can continue without room.
 * TREEROOM-5  A run with more active tokens than its share begins no further fan-out while one of its tasks runs. Afterwards it begins one at a
 *             time.
 */
import { TREE_ROOM, type TreeRoom } from "../../../protocol/run-call.ts";
import { type Graph, graphOf } from "./graph.ts";
import type { RunRecord } from "./record.ts";
import { MAX_OPEN_PARTS } from "./run-limits.ts";
import { definitionOf, isOver, type RunState, type Token } from "./state.ts";
import { workOf } from "./work.ts";

/** Returns the room of a run. */
export function roomOf({ room = TREE_ROOM }: Pick<RunRecord, "room">): TreeRoom {
  return room;
}

/** Returns the room that the run of a token holds. */
export function heldBy({ phase }: Pick<Token, "phase">): number {
  return phase.kind === "working" && phase.wait?.isAtRest !== true ? (phase.room ?? 0) : 0;
}

/** Returns the share of a run that a token starts; 0 without room. `others`: the number of other tokens that may start a run. */
export function shareOf(free: number, others: number): number {
  return free < 1 ? 0 : Math.max(1, Math.floor(free / (others + 1)));
}

/** Returns the room of a run that gets a share of the room above. */
export function sharedRoom(above: TreeRoom, runs: number): TreeRoom {
  return { runs, tokens: Math.max(1, Math.floor((above.tokens * runs) / above.runs)) };
}

/** Returns the number of parts that may begin beside the open parts. */
export function partsToBegin({ fanOuts }: Pick<RunState, "fanOuts">, open: number): number {
  let left = MAX_OPEN_PARTS - open;
  let found = 0;
  for (const { spread, branches } of fanOuts.values()) {
    if (spread === undefined || left <= 0) continue;
    const idle = branches.filter(({ active, tally, failure }) => active === 0 && !tally && !failure).length;
    found += Math.min(idle, left);
    left -= idle;
  }
  return found;
}

/** Reports whether a token needs a step or a task of this run now. Other tokens wait for a person, an agent or another run. */
export function isActive(record: RunRecord, token: Token): boolean {
  return token.phase.kind !== "working" || workOf(record, token)?.kind === "task";
}

/** Returns a test of tokens that can continue. A token that waits for room cannot. */
export function pendingIn(state: RunState): (token: Token) => boolean {
  let isFull: boolean | undefined;
  let isCrowded: boolean | undefined;
  const graph = graphOf(definitionOf(state));
  return (token) => {
    if (token.phase.kind === "working") return false;
    if (startsRun(graph, token)) {
      isFull ??= freeRoom(state) < 1;
      return !isFull;
    }
    if (!multiplies(graph, token)) return true;
    isCrowded ??= isCrowdedBeside(state);
    return !isCrowded;
  };
}

/** Reports whether a token starts a sub-workflow next. */
export function startsRun(graph: Graph, { phase, node }: Token): boolean {
  return phase.kind === "ready" && graph.node(node).workflow !== undefined;
}

/** Reports whether the next step of a token may make several tokens. */
export function multiplies(graph: Graph, { phase, node }: Token): boolean {
  if (!graph.multiplies(node)) return false;
  const { task, workflow, agent } = graph.node(node);
  return phase.kind === "resolved" || (phase.kind === "ready" && (task ?? workflow ?? agent) === undefined);
}

function freeRoom({ record, tokens }: RunState): number {
  return [...tokens.values()].reduce((free, token) => free - heldBy(token), roomOf(record).runs);
}

/** Reports whether a run has more active tokens than its share while a task runs. */
function isCrowdedBeside({ record, tokens }: RunState): boolean {
  const active = [...tokens.values()].filter((token) => isActive(record, token));
  return active.length > roomOf(record).tokens && active.some(({ phase }) => phase.kind === "working");
}

/** Reports whether a run rests (TREEROOM-4). */
export function isAtRest(state: RunState): boolean {
  if (isOver(state) || state.tokens.size === 0) return false;
  for (const token of state.tokens.values()) {
    if (isActive(state.record, token)) return false;
    if (token.phase.kind !== "working") continue;
    if (workOf(state.record, token)?.kind === "agent" && token.phase.wait?.isHeld !== true) return false;
    if (token.phase.room !== undefined && heldBy(token) > 0) return false;
  }
  return true;
}
