/**
 * What a running task records: its steps, events, measurements and use of models.
 *
 * TASKLOG-1  A summary is bounded: it has the steps that a task may have, `MAX_TASK_EVENTS` events and as many measurements, and their
 *            values have `MAX_RECORDED_LENGTH` characters together. What would exceed that fails its step.
 */
import { MAX_NOTED_MESSAGE, MAX_RECORDED_LENGTH, MAX_TASK_EVENTS } from "../../../library/tasks/limits.ts";
import { ToolError } from "../../../library/tool-error.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { PinnedTask } from "../../../protocol/task-definition.ts";
import type {
  StepSummary,
  TaskEvent,
  TaskMetric,
  TaskModelUsage,
  TaskSummary,
} from "../../../protocol/task-summary.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

export class TaskRecord {
  readonly #steps: StepSummary[] = [];
  readonly #events: TaskEvent[] = [];
  readonly #metrics: TaskMetric[] = [];
  readonly #startedAt: number;
  #models: TaskModelUsage | undefined;
  #length = 0;

  constructor(
    private readonly task: Pick<PinnedTask, "library" | "id" | "version">,
    private readonly clock: Pick<Clock, "now">,
  ) {
    this.#startedAt = clock.now();
  }

  /** Returns a function that records the end of a step which begins now. */
  beginStep(ref: string): (end: Pick<StepSummary, "status" | "attempts" | "error">) => void {
    const startedAt = this.clock.now();
    return ({ status, attempts, error }) => {
      this.#steps.push({
        ref,
        status,
        startedAfterMs: startedAt - this.#startedAt,
        durationMs: this.clock.now() - startedAt,
        ...defined({
          attempts: attempts === 1 ? undefined : attempts,
          error: error && { ...error, message: error.message.slice(0, MAX_NOTED_MESSAGE) },
        }),
      });
    };
  }

  /** Records an event. Throws `ToolError` beyond the limits. */
  addEvent(name: string, payload: Json): JsonObject {
    this.#take(this.#events.length, payload);
    this.#events.push({ name, payload });
    return {};
  }

  /** Records a measurement: `{value, attributes?}`. Throws `ToolError` for another input, and beyond the limits. */
  addMetric({ name, unit }: { name: string; unit?: string }, input: Json): JsonObject {
    const { value, attributes } = isJsonObject(input) ? input : {};
    if (typeof value !== "number")
      throw new ToolError("Its input must have a `value`, a number.", { code: "INVALID_INPUT" });
    if (attributes !== undefined && !isJsonObject(attributes))
      throw new ToolError("The `attributes` of its input must be an object.", { code: "INVALID_INPUT" });
    this.#take(this.#metrics.length, attributes ?? null);
    this.#metrics.push({ name, value, ...defined({ unit, attributes }) });
    return {};
  }

  /** Adds what a model call has used up. */
  addUsage({ inputTokens, outputTokens, costUsd }: Omit<TaskModelUsage, "calls">): void {
    const before = this.#models ?? { calls: 0, inputTokens: 0, outputTokens: 0, costUsd: 0 };
    const isPriced = before.costUsd !== undefined && costUsd !== undefined;
    this.#models = {
      calls: before.calls + 1,
      inputTokens: before.inputTokens + inputTokens,
      outputTokens: before.outputTokens + outputTokens,
      ...defined({ costUsd: isPriced ? (before.costUsd ?? 0) + (costUsd ?? 0) : undefined }),
    };
  }

  /** What the task has done so far. */
  get summary(): TaskSummary {
    const { library = "", id, version } = this.task;
    return {
      task: { library, id, version },
      steps: [...this.#steps],
      durationMs: this.clock.now() - this.#startedAt,
      ...defined({
        models: this.#models,
        events: this.#events.length === 0 ? undefined : [...this.#events],
        metrics: this.#metrics.length === 0 ? undefined : [...this.#metrics],
      }),
    };
  }

  #take(count: number, value: Json): void {
    this.#length += JSON.stringify(value).length;
    if (count < MAX_TASK_EVENTS && this.#length <= MAX_RECORDED_LENGTH) return;
    throw new ToolError(
      `A task records at most ${MAX_TASK_EVENTS} events and ${MAX_TASK_EVENTS} measurements, of ${MAX_RECORDED_LENGTH} characters together.`,
    );
  }
}
