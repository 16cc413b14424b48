/** A run with a core that the test plays: the test ends the work of nodes, and lets time pass. */

import type { RunChange } from "../../../src/agents/coordinator/core/draft.ts";
import { newRun, plan } from "../../../src/agents/coordinator/core/plan.ts";
import type { RunSignal } from "../../../src/agents/coordinator/core/signals.ts";
import type { NodeOutcome, RunState, Token } from "../../../src/agents/coordinator/core/state.ts";
import { workflowSchema } from "../../../src/library/workflows/workflow-schema.ts";
import type { PinnedNodeTask } from "../../../src/protocol/pinned-workflow.ts";
import type { RunEntry, RunEntryType } from "../../../src/protocol/workflow-run.ts";
import type { Json, JsonObject } from "../../../src/shared/json.ts";

/** Returns the task of each node that has one. */
const TASK: PinnedNodeTask = { library: "lib", id: "task", effect: "pure", timeoutMs: 60_000 };

export class PlayedRun {
  readonly entries: RunEntry[] = [];
  state: RunState;
  now = 1_000;

  /** `flow` is a workflow as its author writes it. */
  constructor(flow: object, input: JsonObject = {}, task: PinnedNodeTask = TASK, width?: number) {
    const definition = workflowSchema.parse({ inputSchema: { type: "object" }, transitions: [], ...flow });
    const own = definition.nodes.filter((node) => node.task !== undefined);
    this.state = newRun({
      id: "run_1",
      tenant: "local",
      projectId: "default",
      stem: "01ARZ3NDEKTSV4RRFFQ",
      workflow: {
        ...{ library: "lib", id: "w", version: 1, hash: "", definition, workflows: {} },
        tasks: Object.fromEntries(own.map(({ ref }) => [ref, task])),
      },
      input,
      startedBy: "ada",
      request: "",
      createdAt: this.now,
      ...(width === undefined ? {} : { width }),
    });
    this.take({ type: "run.begin" });
  }

  /** Commits signals together. Throws the plan's error. */
  take(...signals: RunSignal[]): RunChange | null {
    const change = plan(this.state, signals, this.now);
    if (change === null) return null;
    this.entries.push(...change.entries);
    this.state = change.state;
    return change;
  }

  /** The tokens that work at a node. */
  at(node: string): Token[] {
    return [...this.state.tokens.values()].filter((token) => token.node === node);
  }

  /** Returns the signal that ends the work of a token at a node, by default of its first token. */
  ending(node: string, outcome: NodeOutcome, index = 0): RunSignal {
    const token = this.at(node)[index];
    if (token?.phase.kind !== "working") throw new Error(`Nothing works at "${node}".`);
    return { type: "node.ended", token: token.id, attempt: token.phase.attempt, outcome };
  }

  /** Ends the work of a token at a node with an output. */
  end(node: string, output: Json = {}, index = 0): void {
    this.take(this.ending(node, { output }, index));
  }

  /** Fails the work of a token at a node. */
  fail(node: string, index = 0): void {
    this.take(this.ending(node, { error: { code: "FAILED", message: "It fails." } }, index));
  }

  /** Lets time pass, and runs the due work. */
  pass(milliseconds: number): void {
    this.now += milliseconds;
    this.take({ type: "run.expire" });
  }

  /** The entries of a type. */
  of(type: RunEntryType): RunEntry[] {
    return this.entries.filter((entry) => entry.type === type);
  }
}
