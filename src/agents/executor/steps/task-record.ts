/**
 * Records a running task: its steps, events, measurements and model usage.
 *
 * TASKLOG-1  A summary is bounded by the maximum number of steps, `MAX_TASK_EVENTS` events and as many measurements. Their values have
 *            `MAX_RECORDED_LENGTH` characters in total. A step that exceeds this fails.
 */
import {
  MAX_NOTED_MESSAGE,
  MAX_RECORDED_LENGTH,
  MAX_RECORDED_MESSAGES,
  MAX_TASK_EVENTS,
} from "../../../library/tasks/task-limits.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import { type Allowance, type Amounts, isWithin } from "../../../model/spending.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { PinnedTask } from "../../../protocol/task-definition.ts";
import {
  amountsOfModels,
  type StepSummary,
  type TaskEvent,
  type TaskMetric,
  type TaskModelUsage,
  type TaskSummary,
} from "../../../protocol/task-summary.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { cut } from "../../../shared/text.ts";
import type { ModelRequests, RequestUsage } from "../actions/ports.ts";

/** Adds the usage of a request. A request without a price does not change the cost. */
function added(
  before: TaskModelUsage | undefined,
  { inputTokens, outputTokens, costUsd }: RequestUsage,
): TaskModelUsage {
  const { calls, ...sum } = before ?? { calls: 0, inputTokens: 0, outputTokens: 0 };
  const isPriced = sum.costUsd !== undefined || costUsd !== undefined;
  return {
    calls: calls + 1,
    inputTokens: sum.inputTokens + inputTokens,
    outputTokens: sum.outputTokens + outputTokens,
    ...defined({ costUsd: isPriced ? (sum.costUsd ?? 0) + (costUsd ?? 0) : undefined }),
  };
}

const NO_MODELS: TaskModelUsage = { calls: 0, inputTokens: 0, outputTokens: 0 };
const UNLIMITED: Amounts = {
  tokens: Number.POSITIVE_INFINITY,
  nanoDollars: Number.POSITIVE_INFINITY,
  toolCalls: Number.POSITIVE_INFINITY,
  modelCalls: Number.POSITIVE_INFINITY,
};

export class TaskRecord implements ModelRequests {
  readonly #steps: StepSummary[] = [];
  readonly #events: TaskEvent[] = [];
  readonly #metrics: TaskMetric[] = [];
  readonly #startedAt: number;
  #models: TaskModelUsage | undefined;
  /** The most that open requests may use. */
  readonly #open = new Set<RequestUsage>();
  #running: { ref: string; startedAt: number } | undefined;
  #length = 0;
  #messages = 0;

  constructor(
    private readonly task: Pick<PinnedTask, "library" | "id" | "version">,
    private readonly clock: Pick<Clock, "now">,
    private readonly allowance: Allowance = {},
  ) {
    this.#startedAt = clock.now();
  }

  /** Returns a function that records the end of a step which begins now. */
  beginStep(ref: string): (end: Pick<StepSummary, "status" | "attempts" | "error">) => void {
    const startedAt = this.clock.now();
    this.#running = { ref, startedAt };
    return ({ status, attempts, error }) => {
      this.#running = undefined;
      this.#steps.push({
        ref,
        status,
        startedAfterMs: this.#since(this.#startedAt, startedAt),
        durationMs: this.#since(startedAt),
        ...defined({
          attempts: attempts === 1 ? undefined : attempts,
          error: error && this.#bounded(error),
        }),
      });
    };
  }

  addEvent(name: string, payload: Json): JsonObject {
    this.#take(this.#events.length, payload);
    this.#events.push({ name, payload });
    return {};
  }

  /** Records a measurement: `{value, attributes?}`. Throws `ToolError` for invalid input, and beyond the limits. */
  addMetric({ name, unit }: { name: string; unit?: string }, input: Json): JsonObject {
    const { value, attributes } = isJsonObject(input) ? input : {};
    if (typeof value !== "number")
      throw new ToolError("Its input must have a numeric `value`.", { code: "INVALID_INPUT" });
    if (attributes !== undefined && !isJsonObject(attributes))
      throw new ToolError("The `attributes` of its input must be an object.", { code: "INVALID_INPUT" });
    this.#take(this.#metrics.length, attributes ?? null);
    this.#metrics.push({ name, value, ...defined({ unit, attributes }) });
    return {};
  }

  hasRoom(most: RequestUsage): boolean {
    const used = amountsOfModels([...this.#open, most].reduce(added, this.#models ?? NO_MODELS));
    return isWithin(used, { ...UNLIMITED, ...this.allowance });
  }

  begin(most: RequestUsage): (used: RequestUsage) => void {
    if (!this.hasRoom(most))
      throw new ToolError(
        `Its request needs up to ${most.inputTokens} tokens for its texts and ${most.outputTokens} for the answer. This exceeds the budget left for this call. Give shorter texts, or set maxInputTokens to the tokens that they need.`,
        { code: "BUDGET_EXCEEDED" },
      );
    this.#open.add(most);
    return (used) => {
      this.#open.delete(most);
      this.#models = added(this.#models, used);
    };
  }

  /** The record so far. Open steps and requests count with their maximum. */
  get summary(): TaskSummary {
    const { library = "", id, version } = this.task;
    const models = [...this.#open].reduce<TaskModelUsage | undefined>(added, this.#models);
    return {
      task: { library, id, version },
      steps: [...this.#steps, ...this.#unfinished()],
      durationMs: this.#since(this.#startedAt),
      ...defined({
        models,
        events: this.#events.length === 0 ? undefined : [...this.#events],
        metrics: this.#metrics.length === 0 ? undefined : [...this.#metrics],
      }),
    };
  }

  /** Returns the step that has not ended, after a timeout or a cancellation. */
  #unfinished(): StepSummary[] {
    if (this.#running === undefined) return [];
    const { ref, startedAt } = this.#running;
    const startedAfterMs = this.#since(this.#startedAt, startedAt);
    const error = { code: "CANCELLED", message: "It had not ended." };
    return [{ ref, status: "failed", startedAfterMs, durationMs: this.#since(startedAt), error }];
  }

  /** Returns the milliseconds between both times, or 0 if the clock was set back. */
  #since(from: number, to = this.clock.now()): number {
    return Math.max(0, to - from);
  }

  /** Cuts the message of a failure, because the total length of a task's messages is bounded. */
  #bounded({ code, message }: { code: string; message: string }): { code: string; message: string } {
    const kept = cut(message, Math.min(MAX_NOTED_MESSAGE, MAX_RECORDED_MESSAGES - this.#messages));
    this.#messages += kept.length;
    return { code, message: kept };
  }

  #take(count: number, value: Json): void {
    this.#length += JSON.stringify(value).length;
    if (count < MAX_TASK_EVENTS && this.#length <= MAX_RECORDED_LENGTH) return;
    throw new ToolError(
      `A task records at most ${MAX_TASK_EVENTS} events and ${MAX_TASK_EVENTS} measurements, of ${MAX_RECORDED_LENGTH} characters together.`,
    );
  }
}
