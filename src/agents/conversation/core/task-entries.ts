/**
 * The journal's entries of tasks of steps. Pure.
 *
 * TASKLOG-2  The journal has the beginning and the end of each attempt of a task, and its events and measurements, in the commits of its
 *            call. A call of code has no such entries. If a stop ended the attempt, they follow after the Executor reports its progress.
 */
import type { PinnedTask } from "../../../protocol/task-definition.ts";
import type { TaskSummary } from "../../../protocol/task-summary.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { JournalEntry } from "./journal-entry.ts";
import type { Operation } from "./operation.ts";

/** Returns the entry of a task that begins; an empty list without a task. */
export function dispatchedEntries(turn: number, item: number, task: PinnedTask | undefined): JournalEntry[] {
  if (task === undefined) return [];
  const { library = "", id, version, steps } = task;
  const data = { task: `${library}/${id}@${version}`, steps: steps.length };
  return [{ type: "task.dispatched", turn, item, data }];
}

/** Returns the entries of a finished attempt of a task; an empty list without a task. */
export function taskEntries(
  turn: number,
  item: number,
  summary: TaskSummary | undefined,
  isSuccess: boolean,
): JournalEntry[] {
  if (summary === undefined) return [];
  const { task, steps, durationMs, models, events = [], metrics = [] } = summary;
  const failed = steps.find(({ status }) => status === "failed" || status === "ended");
  const data: JsonObject = {
    task: `${task.library}/${task.id}@${task.version}`,
    steps: steps.length,
    durationMs,
    ...defined({ models: models && { ...models }, failedStep: isSuccess ? undefined : failed?.ref }),
  };
  return [
    ...events.map((event): JournalEntry => ({ type: "task.event", turn, item, data: { ...event } })),
    ...metrics.map((metric): JournalEntry => ({ type: "task.metric", turn, item, data: { ...metric } })),
    { type: isSuccess ? "task.completed" : "task.failed", turn, item, data },
  ];
}

/** Returns the part of a task that its operation stores, as a member; `{}` without a task. */
export function keptTask(summary: TaskSummary | undefined): Pick<Operation, "task"> {
  if (summary === undefined) return {};
  const { events: _events, metrics: _metrics, ...task } = summary;
  return { task };
}
