/**
 * Operations of one turn that run in one call of the Executor.
 *
 * BATCH-5  Every operation of a batch is followed by itself: it ends with its result, or when it is aborted. An aborted
 *          one is cancelled in the Executor and gives no result. The success of a `once` one that comes all the same, before
 *          its cancellation has left, is refused as not stored, so that the Executor delivers it by name (BATCH-3).
 * BATCH-6  An operation that the Executor gives no result for, because it is lost or silent for 30 seconds beyond the
 *          operation's time limit, fails with `INTERNAL_ERROR`. The outcome of a `once` tool is then unknown.
 * BATCH-7  Operations whose Executor cannot be reached fail as not run, whatever their effect.
 */

import { taskTarget } from "../../../library/agent-tool.ts";
import { parseReference } from "../../../library/reference.ts";
import { fromStored } from "../../../library/stored-tool.ts";
import type { Clock } from "../../../ports/clock.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import type {
  AttemptEnd,
  BatchCaller,
  TaskExecutor,
  ToolInvocation,
  ToolResult,
} from "../../../protocol/executor-api.ts";
import { reportsSchema } from "../../../protocol/executor-reports.ts";
import { operationId } from "../../../protocol/ids.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { checkBudget } from "../../../shared/json-schema/violations.ts";
import { validate } from "../../../shared/validation.ts";
import { HOOK_REPLY } from "../core/hooks.ts";
import type { Operation } from "../core/operation.ts";
import { failure, targetInput } from "../core/planning/tool-call.ts";
import type { ToolEnded } from "../core/signals.ts";
import { type ConversationIdentity, callContext, chainOf } from "../core/state.ts";
import { operationTraceparent } from "../core/trace.ts";
import type { Turn } from "../core/turn.ts";

export interface ToolReports {
  /** Takes the results that arrived together. Reports whether they are stored, and none must come by name. */
  onResults: (signals: [ToolEnded, ...ToolEnded[]]) => boolean;
  onProgress: (operationId: string, progress: Json) => void;
}

export interface ToolBatchInput extends ToolReports {
  record: ConversationIdentity;
  turn: Turn;
}

/** Milliseconds beyond the time limit of a call after which it counts as lost. */
const MARGIN_MS = 30_000;

interface Followed {
  operation: Operation;
  end(): void;
}

export class ToolBatch {
  readonly #waiting = new Map<string, Followed>();
  /** Results that could not be stored yet. */
  readonly #unsaved = new Map<string, ToolEnded>();
  readonly #cancelled: string[] = [];
  /** Operations that were aborted. Their results may arrive before their cancellation has left. */
  readonly #aborted = new Map<string, Operation>();
  /** Aborts once no operation waits: the pause before an attempt ends with the operation. */
  readonly #idle = new AbortController();
  /** Answers the Executor's question for cancelled operations. */
  #answer: (() => void) | null = null;

  constructor(private readonly input: ToolBatchInput) {}

  /** Adds an operation, before `run`. Resolves when it has a result or is aborted. */
  follow(operation: Operation, signal: AbortSignal): Promise<void> {
    const id = operationId(this.input.turn, operation.item);
    return new Promise((end) => {
      this.#waiting.set(id, { operation, end });
      signal.addEventListener("abort", () => this.#cancel(id), { once: true });
    });
  }

  /** Runs the operations, at `startAt` (milliseconds since the epoch) or now. Resolves when all have ended. Never throws. */
  async run(executor: TaskExecutor, clock: Clock, startAt: number): Promise<void> {
    const delay = startAt - clock.now();
    if (delay > 0) await clock.sleep(delay, this.#idle.signal).catch(() => undefined);
    if (this.#waiting.size === 0) return;
    const caller: BatchCaller = {
      report: async (reports) => this.#take(reports),
      cancelled: () => this.#nextCancelled(),
    };
    let calls: ToolInvocation[];
    let running: Promise<void>;
    try {
      calls = [...this.#waiting].map(([id, { operation }]) => this.#callOf(id, operation));
      running = executor.run(calls, caller);
    } catch (error) {
      console.error(error);
      this.#fail([...this.#waiting.keys()], notRun);
      return;
    }
    const byLimit = Map.groupBy(calls, ({ timeoutMs }) => timeoutMs + MARGIN_MS);
    await Promise.all([...byLimit].map(([limit, group]) => this.#await(running, group, clock, limit)));
  }

  /** Waits for the results of `calls` until the Executor ends or the limit is over, then fails those that have none. */
  async #await(
    running: Promise<void>,
    calls: readonly ToolInvocation[],
    clock: Clock,
    limit: number,
  ): Promise<void> {
    const open = () => calls.map((call) => call.operationId).filter((id) => this.#waiting.has(id));
    try {
      await withDeadline(clock, limit, () => running, {
        reason: () => lost(open(), `gave no answer within ${limit} ms to`),
      });
      if (open().length > 0) console.error(lost(open(), "ended without the results of"));
    } catch (error) {
      if (open().length > 0) console.error(error);
    }
    this.#fail(open(), lostResult);
  }

  /** Fails operations for a reason that may pass. */
  #fail(ids: readonly string[], resultOf: (operation: Operation) => ToolResult): void {
    const results = ids.flatMap((id) => {
      const operation = this.#waiting.get(id)?.operation;
      if (operation === undefined) return [];
      const ended = this.#settle(id, operation, { result: resultOf(operation), transient: true });
      return [resultOf === lostResult ? { ...ended, lost: true as const } : ended];
    });
    if (this.#waiting.size === 0) this.#answer?.();
    this.#report(results);
  }

  #callOf(id: string, operation: Operation): ToolInvocation {
    const { record, turn } = this.input;
    const { attempt, toolCallId, timeoutMs, reserved: allowance } = operation;
    return {
      operationId: id,
      attempt,
      toolCallId,
      ...invocationOf(chainOf(record, turn.agentId), operation),
      ...defined({ allowance }),
      timeoutMs,
      context: { ...callContext(record, turn), traceparent: operationTraceparent(turn, operation.item) },
    };
  }

  /** Returns the operations whose results cannot be stored now. Throws `INVALID_INPUT` for reports that are not valid. */
  #take(reports: unknown): string[] {
    const results = new Map<string, ToolEnded>();
    try {
      for (const report of validate(reportsSchema, reports, "", "The report")) {
        const { operationId: id } = report;
        const unsaved = this.#unsaved.get(id);
        const operation = this.#waiting.get(id)?.operation;
        if (unsaved !== undefined) results.set(id, unsaved);
        else if ("progress" in report) {
          if (operation !== undefined) this.input.onProgress(id, report.progress);
        } else {
          const ended = operation ?? this.#aborted.get(id);
          if (ended !== undefined) results.set(id, this.#settle(id, ended, report));
        }
      }
    } finally {
      // A settled operation takes no second report, so its result counts even if a later progress fails.
      if (this.#waiting.size === 0) this.#answer?.();
      const isStored = this.#report([...results.values()]);
      for (const [id, result] of results) {
        if (isStored) this.#unsaved.delete(id);
        else this.#unsaved.set(id, result);
        // A report that comes again tells nothing new.
        if (isStored) this.#aborted.delete(id);
      }
    }
    return [...results.keys()].filter((id) => this.#unsaved.has(id));
  }

  #report([first, ...others]: ToolEnded[]): boolean {
    return first === undefined || this.input.onResults([first, ...others]);
  }

  #settle(id: string, { item, attempt }: Operation, ended: AttemptEnd): ToolEnded {
    this.#end(id);
    const address = { turn: this.input.turn.n, item, attempt };
    if ("deferred" in ended) return { type: "conversation.tool.deferred", ...address, ...ended.deferred };
    const { result, transient, task } = ended;
    return { type: "conversation.tool.completed", ...address, result, ...defined({ transient, task }) };
  }

  #end(id: string): void {
    this.#waiting.get(id)?.end();
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#idle.abort();
  }

  #cancel(id: string): void {
    const followed = this.#waiting.get(id);
    if (followed === undefined) return;
    this.#aborted.set(id, followed.operation);
    this.#end(id);
    this.#cancelled.push(id);
    this.#answer?.();
  }

  /** Resolves with the operations that were cancelled since the last question; with none when the batch is over. */
  async #nextCancelled(): Promise<string[]> {
    if (this.#cancelled.length === 0 && this.#waiting.size > 0) {
      await new Promise<void>((resolve) => (this.#answer = resolve));
    }
    return this.#cancelled.splice(0);
  }
}

function notRun({ toolCallId, name }: Operation): ToolResult {
  const message = `"${name}" did not run: its executor cannot be reached.`;
  return failure(toolCallId, "INTERNAL_ERROR", message, true);
}

function lostResult({ toolCallId, name, effect }: Operation): ToolResult {
  const isUnknown = effect === "once";
  const message = isUnknown
    ? `Outcome unknown: the connection to "${name}" was lost and it may have taken effect.`
    : `The run of "${name}" was lost.`;
  return failure(toolCallId, "INTERNAL_ERROR", message, !isUnknown);
}

function lost(ids: Iterable<string>, how: string): DramatisError {
  const message = `The executor ${how}: ${[...ids].join(", ")}.`;
  return new DramatisError("UNAVAILABLE", message, { retriable: true });
}

const NOWHERE: ToolInvocation["tool"] = { library: "", id: "", version: 0 };

/**
 * Returns the deployed code of a call, the tool itself or the task that its pinned definition names, and the code's input.
 * Planning mapped the input before, so it can be mapped.
 */
export function invocationOf(
  {
    tools,
    contextAssembly,
    memoryExtraction,
  }: Pick<VersionChain, "tools" | "contextAssembly" | "memoryExtraction">,
  { tool, input, reply }: Pick<Operation, "tool" | "input" | "reply">,
): Pick<ToolInvocation, "tool" | "input" | "task"> {
  if (tool === null) return { tool: NOWHERE, input };
  if (reply === HOOK_REPLY) {
    const hook = [contextAssembly, memoryExtraction].find(
      (candidate) => candidate?.library === tool.library && candidate.id === tool.id,
    );
    return { tool, input, ...defined({ task: hook?.task }) };
  }
  const pinned = tools.find(
    ({ library, id, version }) => library === tool.library && id === tool.id && version === tool.version,
  );
  if (pinned === undefined) return { tool, input };
  const definition = fromStored(pinned.definition);
  const target = taskTarget(definition.target);
  return {
    tool: target === undefined ? tool : { ...parseReference(target.task, pinned.library), version: 0 },
    input: targetInput(definition, input, checkBudget()),
    ...defined({ task: pinned.task }),
  };
}
