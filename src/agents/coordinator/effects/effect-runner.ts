/**
 * Performs the effects of a run, each at most once at a time, and reports their outcomes. Tasks that begin together go to the Executor in
 * batches.
 *
 * RUNEFFECT-2  If a commit leaves tokens that can take a step, another commit follows without a wake-up.
 * MEMACT-3  The tasks of a run have the memory of the agent whose call started it, or the root run, with the rights of that call.
 *           Other runs have no memory.
 * RUNBATCH-1  The calls of one batch have at most `MAX_BATCH_CALLS` calls, and about `MAX_BATCH_LENGTH` characters of input.
 */
import type { ToolErrorCode, ToolInvocation } from "../../../protocol/executor-api.ts";
import { parseItemId } from "../../../protocol/ids.ts";
import type { PinnedNodeTask } from "../../../protocol/pinned-workflow.ts";
import type { RunOrigin } from "../../../protocol/run-origin.ts";
import { defined } from "../../../shared/defined.ts";
import { type BatchCall, CallBatch, type CallEnd } from "../../base/calls/call-batch.ts";
import { RunningEffects } from "../../base/runtime/running.ts";
import type { RuntimeContext } from "../context.ts";
import { originOf } from "../core/child-run.ts";
import type { RunEffect, TaskEffect } from "../core/effects.ts";
import { operationOf } from "../core/operations.ts";
import { OUTCOME_UNKNOWN } from "../core/plan.ts";
import { runWorkspace } from "../core/record.ts";
import type { NodeEnded, RunSignal } from "../core/signals.ts";
import type { NodeOutcome, RunState } from "../core/state.ts";
import { nodeTrail } from "../core/trace.ts";

interface EffectContext extends Pick<RuntimeContext, "clock" | "executor" | "turn"> {
  runtime: { readonly state: RunState };
  /** Commits outcomes. Reports whether they are stored, and not kept for another try. Never throws. */
  report(outcomes: readonly RunSignal[]): boolean;
}

const MAX_BATCH_CALLS = 100;
/** A batch of so many calls takes the run's turn. A chain of nodes does not wait for turns. */
const PACED_CALLS = 10;
/** Length of the inputs of one batch, as JSON in UTF-16 units. */
const MAX_BATCH_LENGTH = 4 * 1024 * 1024;

export class RunEffectRunner {
  readonly #running = new RunningEffects();
  /** The keys of the tasks with ends in the current commit. They can no longer be aborted. */
  #ended: ReadonlySet<string> = new Set();
  /** True if tokens can take a step. */
  #isBehind = false;

  constructor(private readonly context: EffectContext) {}

  /** Starts the effects that do not run. */
  start(effects: readonly RunEffect[]): void {
    const idle = effects.filter(({ key }) => !this.#running.has(key));
    const advance = effects.find(({ kind }) => kind === "advance");
    if (advance !== undefined) {
      this.#isBehind = true;
      void this.#running.run(advance.key, () => this.#advance());
    }
    const { clock } = this.context;
    const now = clock.now();
    const byStart = Map.groupBy(
      idle.filter((effect) => effect.kind === "task"),
      ({ work: { notBefore = now } }) => Math.max(now, notBefore),
    );
    for (const [startAt, together] of byStart)
      for (const batch of batches(together)) this.#runTasks(batch, startAt);
  }

  /** Aborts the effects of these keys that run. */
  abort(keys: Iterable<string>): void {
    for (const key of keys) if (!this.#ended.has(key)) this.#running.abort(key);
  }

  /** Advances tokens after other actors of the isolate have run. */
  async #advance(): Promise<void> {
    while (this.#isBehind) {
      this.#isBehind = false;
      await new Promise<void>((resolve) => void this.context.clock.timer(0, resolve));
      const turn = this.context.turn();
      if (turn !== undefined) await turn;
      // This commit may leave tokens that can take a step, and may request another commit.
      this.context.report([{ type: "run.advance" }]);
    }
  }

  #runTasks(effects: readonly TaskEffect[], startAt: number): void {
    const { clock, executor, runtime } = this.context;
    const keys = new Map(
      effects.map(({ token, key }) => [operationOf(runtime.state.record, token.id, token.again), key]),
    );
    const batch = new CallBatch({
      onEnds: (ends) => this.#commit(ends, keys),
      onProgress: () => undefined,
    });
    for (const effect of effects)
      void this.#running.run(effect.key, (signal) => batch.follow(callOf(runtime.state, effect), signal));
    const turn = effects.length < PACED_CALLS ? undefined : this.context.turn();
    const run = () => batch.run(executor, clock, startAt);
    void (turn === undefined ? run() : turn.then(run));
  }

  /** Commits the ends of tasks. `keys` has the keys of their effects, by operation. Reports like `EffectContext.report`. */
  #commit(ends: readonly CallEnd[], keys: ReadonlyMap<string, string>): boolean {
    this.#ended = new Set(ends.flatMap(({ operationId }) => keys.get(operationId) ?? []));
    try {
      return this.context.report(ends.flatMap(endedBy));
    } finally {
      this.#ended = new Set();
    }
  }
}

/** Splits tasks into batches (RUNBATCH-1). */
function batches(effects: readonly TaskEffect[]): TaskEffect[][] {
  const all: TaskEffect[][] = [];
  let length = Number.POSITIVE_INFINITY;
  for (const effect of effects) {
    const own = effects.length === 1 ? 0 : JSON.stringify(effect.work.input).length;
    const last = all.at(-1);
    if (last === undefined || last.length >= MAX_BATCH_CALLS || length + own > MAX_BATCH_LENGTH) {
      all.push([effect]);
      length = own;
    } else {
      last.push(effect);
      length += own;
    }
  }
  return all;
}

function callOf(state: RunState, { token, work }: TaskEffect): BatchCall {
  const { record } = state;
  const { id: runId, tenant, projectId, workflow } = record;
  const task = workflow.tasks[token.node];
  return {
    operationId: operationOf(record, token.id, token.again),
    attempt: work.attempt,
    toolCallId: "",
    name: token.node,
    effect: task?.effect ?? "once",
    invocation: () => ({
      ...calledTask(token.node, task),
      input: work.input,
      context: {
        ...{ tenant, projectId, runId, node: token.node, workspace: runWorkspace(record) },
        ...nodeTrail(record, token),
      },
      ...memoryOf(originOf(state)),
    }),
  };
}

/** Returns the rights of a run's tasks in the memory of the agent that called it, as a member (MEMACT-3). */
function memoryOf(origin: RunOrigin | undefined): Pick<ToolInvocation, "memory"> {
  if (origin?.memory === undefined) return {};
  const { agentId, conversationId, turnId } = origin;
  return { memory: { ...origin.memory, turn: { agentId, conversationId, turnId } } };
}

function calledTask(node: string, pinned: PinnedNodeTask | undefined) {
  if (pinned === undefined) throw new Error(`The node "${node}" runs no task.`);
  const { library, id, timeoutMs, task } = pinned;
  // A function has no version: its deployed code runs.
  return { tool: { library, id, version: 0 }, timeoutMs, ...defined({ task }) };
}

/** The signals of ends. An end that could not be stored is reported again, and must give the same object (RUN-4). */
const signals = new WeakMap<CallEnd, NodeEnded>();

export function endedBy(ended: CallEnd): NodeEnded[] {
  const { operationId: id, attempt, end, lost } = ended;
  if ("deferred" in end) return [];
  const { result, transient, task, tainted } = end;
  const token = parseItemId(id)?.n ?? -1;
  const outcome = outcomeOf(result, lost === true);
  const signal: NodeEnded = signals.get(ended) ?? {
    ...{ type: "node.ended", token, attempt, outcome },
    ...defined({ transient, rule: result.error?.rule, task, tainted }),
  };
  signals.set(ended, signal);
  return [signal];
}

function outcomeOf(
  { success, result = null, error }: Extract<CallEnd["end"], { result: unknown }>["result"],
  isLost: boolean,
): NodeOutcome {
  if (success) return { output: result };
  const { code, message, retriable } = error ?? {
    code: "EXECUTION_FAILED" as ToolErrorCode,
    message: "",
    retriable: false,
  };
  // A lost attempt that must not be repeated has an unknown outcome.
  return { error: isLost && !retriable ? OUTCOME_UNKNOWN : { code, message } };
}
