/** The record of one attempt of a task of steps, as the call that ran it keeps it. */
import { z } from "zod";
import { type Amounts, NOTHING } from "../model/spending.ts";
import type { Json, JsonObject } from "../shared/json.ts";

const NANO = 1_000_000_000;

/** One step. Times are milliseconds. */
export interface StepSummary {
  ref: string;
  /** `skipped`: its condition left it out. `succeeded`, `ended`: its condition ended the task, well or as a failure. */
  status: "completed" | "skipped" | "failed" | "succeeded" | "ended";
  /** From the start of the task. */
  startedAfterMs: number;
  durationMs: number;
  /** Attempts of its action; absent for one. */
  attempts?: number;
  /** The failure that the step ended with. */
  error?: { code: string; message: string };
}

/** The use of models by a task. */
export interface TaskModelUsage {
  calls: number;
  inputTokens: number;
  outputTokens: number;
  /** US dollars; absent where no model has a price. */
  costUsd?: number;
}

/** Returns the use of models as amounts. */
export function amountsOfModels({ calls, inputTokens, outputTokens, costUsd = 0 }: TaskModelUsage): Amounts {
  const tokens = inputTokens + outputTokens;
  return { ...NOTHING, tokens, nanoDollars: Math.round(costUsd * NANO), modelCalls: calls };
}

/** An event that a task recorded. */
export interface TaskEvent {
  name: string;
  payload: Json;
}

/** A measurement that a task recorded. */
export interface TaskMetric {
  name: string;
  value: number;
  unit?: string;
  attributes?: JsonObject;
}

/** The steps of a task that ran, or were left out, in their order. */
export interface TaskSummary {
  task: { library: string; id: string; version: number };
  steps: StepSummary[];
  durationMs: number;
  models?: TaskModelUsage;
  events?: TaskEvent[];
  metrics?: TaskMetric[];
}

/** The record of a task, as readers see it. The journal has its events and measurements. */
export type TaskView = Omit<TaskSummary, "events" | "metrics">;

const amount = z.number().min(0);
const name = z.string().min(1).max(200);

const fields = {
  task: z.strictObject({ library: z.string(), id: z.string(), version: z.int().min(0) }),
  steps: z
    .array(
      z.strictObject({
        ref: name,
        status: z.enum(["completed", "skipped", "failed", "succeeded", "ended"]),
        startedAfterMs: amount,
        durationMs: amount,
        attempts: z.exactOptional(z.int().min(1)),
        error: z.exactOptional(z.strictObject({ code: z.string(), message: z.string() })),
      }),
    )
    .max(64),
  durationMs: amount,
  models: z.exactOptional(
    z.strictObject({
      calls: amount,
      inputTokens: amount,
      outputTokens: amount,
      costUsd: z.exactOptional(amount),
    }),
  ),
};

/** The shape of what readers see of a task. */
export const taskViewSchema: z.ZodType<TaskView> = z.strictObject(fields);

/** The shape of a summary, checked where a report arrives. */
export const taskSummarySchema: z.ZodType<TaskSummary> = z.strictObject({
  ...fields,
  events: z.exactOptional(z.array(z.strictObject({ name, payload: z.json() })).max(32)),
  metrics: z.exactOptional(
    z
      .array(
        z.strictObject({
          name,
          value: z.number(),
          unit: z.exactOptional(z.string().max(32)),
          attributes: z.exactOptional(z.record(z.string(), z.json())),
        }),
      )
      .max(32),
  ),
});
