/** Counts of the work of a run's tokens, kept up to date while tokens change. */
import type { Graph } from "./graph.ts";
import type { RunRecord } from "./record.ts";
import type { Token } from "./state.ts";
import { heldBy, isActive, roomOf } from "./tree-room.ts";

export class WorkCounts {
  /** Tokens that wait for a sub-workflow, an agent or a part. */
  openCalls = 0;
  openParts = 0;
  /** Tokens that wait for a run, a part or a sub-workflow. */
  openRuns = 0;
  /** Runs that this run may still start at the same time. */
  freeRoom: number;
  /** Tokens that need a step or a task. */
  active = 0;
  /** Active tokens with a running task. */
  tasks = 0;

  constructor(
    private readonly record: RunRecord,
    private readonly graph: Graph,
    tokens: Iterable<Token>,
  ) {
    this.freeRoom = roomOf(record).runs;
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
    if (isWorking && phase.room !== undefined) this.openRuns += by;
    this.freeRoom -= by * heldBy(token);
    if (!isActive(this.record, token)) return;
    this.active += by;
    if (isWorking) this.tasks += by;
  }
}
