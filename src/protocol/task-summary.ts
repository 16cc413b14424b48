/** The record of one attempt of a task of steps, as the call that ran it keeps it. */
import { z } from "zod";
import { type Amounts, NOTHING } from "../model/spending.ts";

const NANO = 1_000_000_000;

const amount = z.number().min(0);
const name = z.string().min(1).max(200);

/** One step. Times are milliseconds. */
const stepSchema = z.strictObject({
  ref: name,
  /** `skipped`: its condition left it out. `succeeded`, `ended`: its condition ended the task, well or as a failure. */
  status: z.enum(["completed", "skipped", "failed", "succeeded", "ended"]),
  /** From the start of the task. */
  startedAfterMs: amount,
  durationMs: amount,
  /** Attempts of its action. Default: 1. */
  attempts: z.int().min(1).exactOptional(),
  /** The failure that the step ended with. */
  error: z.strictObject({ code: z.string(), message: z.string() }).exactOptional(),
});

export type StepSummary = z.infer<typeof stepSchema>;

const modelUsageSchema = z.strictObject({
  calls: amount,
  inputTokens: amount,
  outputTokens: amount,
  /** US dollars. Absent if no model has a price. */
  costUsd: amount.exactOptional(),
});

export type TaskModelUsage = z.infer<typeof modelUsageSchema>;

/** The schema of a task's record as readers see it. The journal has its events and measurements. */
export const taskViewSchema = z.strictObject({
  task: z.strictObject({ library: z.string(), id: z.string(), version: z.int().min(0) }),
  steps: z.array(stepSchema).max(64),
  durationMs: amount,
  models: modelUsageSchema.exactOptional(),
});

export type TaskView = z.infer<typeof taskViewSchema>;

const eventSchema = z.strictObject({ name, payload: z.json() });

export type TaskEvent = z.infer<typeof eventSchema>;

const metricSchema = z.strictObject({
  name,
  value: z.number(),
  unit: z.string().max(32).exactOptional(),
  attributes: z.record(z.string(), z.json()).exactOptional(),
});

export type TaskMetric = z.infer<typeof metricSchema>;

/** The schema of a summary, checked where a report arrives. It lists the steps that ran, or were left out, in order. */
export const taskSummarySchema = taskViewSchema.extend({
  events: z.array(eventSchema).max(32).exactOptional(),
  metrics: z.array(metricSchema).max(32).exactOptional(),
});

export type TaskSummary = z.infer<typeof taskSummarySchema>;

export function amountsOfModels({ calls, inputTokens, outputTokens, costUsd = 0 }: TaskModelUsage): Amounts {
  const tokens = inputTokens + outputTokens;
  return { ...NOTHING, tokens, nanoDollars: Math.round(costUsd * NANO), modelCalls: calls };
}
