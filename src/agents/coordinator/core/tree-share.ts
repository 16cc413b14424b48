/**
 * The share of a run in its tree: the runs that may work below it at the same time, and the tokens that may be active in it. Pure.
 *
 * TREESHARE-1  The first run has the share of the whole tree. A run gives each run that it starts a part of its own share, and never more than
 *              it has. So runs that work in different branches of a tree are bounded together.
 * TREESHARE-2  The free share is divided equally between the tokens that may still start a run, at least 1 each. A token without a share stays
 *              ready, and begins when a run below ends or rests. Its actor does not poll.
 * TREESHARE-3  Each share is at least 1. So a run without working runs below it can always start a run, and a chain of any depth ends.
 * TREESHARE-4  A run rests while it waits for people and resting runs only, also through its agents. It tells the parent run when that changes. A
 *              resting run uses no share of the parent run, and can continue without a share.
 * TREESHARE-5  A run with more active tokens than its share begins no further fan-out while one of its tasks runs. Afterwards it begins one at a
 *              time.
 */
import { TREE_SHARE, type TreeShare } from "../../../protocol/run-call.ts";
import { type Graph, graphOf } from "./graph.ts";
import type { RunRecord } from "./record.ts";
import { MAX_OPEN_PARTS } from "./run-limits.ts";
import { definitionOf, isOver, type RunState, type Token } from "./state.ts";
import { workOf } from "./work.ts";

export function treeShareOf({ share = TREE_SHARE }: Pick<RunRecord, "share">): TreeShare {
  return share;
}

/** Returns the share that the run of a token uses. */
export function shareInUse({ phase }: Pick<Token, "phase">): number {
  return phase.kind === "working" && phase.wait?.isAtRest !== true ? (phase.share ?? 0) : 0;
}

/** Returns the share of a run that a token starts; 0 if none is free. `others`: the number of other tokens that may start a run. */
export function nextShare(free: number, others: number): number {
  return free < 1 ? 0 : Math.max(1, Math.floor(free / (others + 1)));
}

export function treeShareBelow(above: TreeShare, runs: number): TreeShare {
  return { runs, tokens: Math.max(1, Math.floor((above.tokens * runs) / above.runs)) };
}

/** Returns the number of parts that may begin in addition to the open parts. */
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
function isActive(record: RunRecord, token: Token): boolean {
  return token.phase.kind !== "working" || workOf(record, token)?.kind === "task";
}

/** Returns a test of tokens that can continue. A token that waits for a share cannot. */
export function pendingIn(state: RunState): (token: Token) => boolean {
  let isFull: boolean | undefined;
  let isCrowded: boolean | undefined;
  const graph = graphOf(definitionOf(state));
  return (token) => {
    if (token.phase.kind === "working") return false;
    if (startsRun(graph, token)) {
      isFull ??= freeRuns(state) < 1;
      return !isFull;
    }
    if (!multiplies(graph, token)) return true;
    isCrowded ??= isCrowdedBeside(state);
    return !isCrowded;
  };
}

export function startsRun(graph: Graph, { phase, node }: Token): boolean {
  return phase.kind === "ready" && graph.node(node).workflow !== undefined;
}

/** Reports whether the next step of a token may make several tokens. */
export function multiplies(graph: Graph, { phase, node }: Token): boolean {
  if (!graph.multiplies(node)) return false;
  const { task, workflow, agent } = graph.node(node);
  return phase.kind === "resolved" || (phase.kind === "ready" && (task ?? workflow ?? agent) === undefined);
}

function freeRuns({ record, tokens }: RunState): number {
  return [...tokens.values()].reduce((free, token) => free - shareInUse(token), treeShareOf(record).runs);
}

/** Reports whether a run has more active tokens than its share while a task runs. */
function isCrowdedBeside({ record, tokens }: RunState): boolean {
  const active = [...tokens.values()].filter((token) => isActive(record, token));
  return active.length > treeShareOf(record).tokens && active.some(({ phase }) => phase.kind === "working");
}

/** Reports whether a run rests (TREESHARE-4). */
export function isAtRest(state: RunState): boolean {
  if (isOver(state) || state.tokens.size === 0) return false;
  for (const token of state.tokens.values()) {
    if (isActive(state.record, token)) return false;
    if (token.phase.kind !== "working") continue;
    if (workOf(state.record, token)?.kind === "agent" && token.phase.wait?.isHeld !== true) return false;
    if (token.phase.share !== undefined && shareInUse(token) > 0) return false;
  }
  return true;
}

/** Counts of the work of a run's tokens, kept up to date while tokens change. */
export class WorkCounts {
  /** Tokens that wait for a sub-workflow, an agent or a part. */
  openCalls = 0;
  openParts = 0;
  /** Tokens that wait for a run, a part or a sub-workflow. */
  openRuns = 0;
  /** Runs that this run may still start at the same time. */
  freeRuns: number;
  /** Tokens that need a step or a task. */
  active = 0;
  /** Active tokens with a running task. */
  tasks = 0;

  constructor(
    private readonly record: RunRecord,
    private readonly graph: Graph,
    tokens: Iterable<Token>,
  ) {
    this.freeRuns = treeShareOf(record).runs;
    for (const token of tokens) this.add(token);
  }

  add(token: Token): void {
    this.#count(token, 1);
  }

  remove(token: Token): void {
    this.#count(token, -1);
  }

  #count(token: Token, by: 1 | -1): void {
    const { node, part, phase } = token;
    const isWorking = phase.kind === "working";
    if (part === true) this.openParts += by;
    if (isWorking && (part === true || this.graph.calls.has(node))) this.openCalls += by;
    if (isWorking && phase.share !== undefined) this.openRuns += by;
    this.freeRuns -= by * shareInUse(token);
    if (!isActive(this.record, token)) return;
    this.active += by;
    if (isWorking) this.tasks += by;
  }
}
