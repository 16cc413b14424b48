/**
 * Other forms of a tool's `target` and `timeoutMs`, and the full form of its `retry`.
 *
 * TOOLFORM-1  `task`, `taskId`, and `targetType: "task"` with `targetId` mean `target: {task}`. `workflowId`, and `targetType: "workflow"`
 *             with `targetId`, mean `target: {workflow}`. `agentId`, and `targetType: "agent"` with `targetId`, mean `target: {agent}`, with
 *             `invocationMode` as its mode. A tool with more than one target is rejected, and the message lists the fields.
 * TOOLFORM-2  `retry: {timeoutMs}` means `timeoutMs`. A tool with both is rejected.
 * TOOLFORM-3  A `once` tool with more than one attempt is rejected. The message explains the fix.
 */
import { z } from "zod";
import type { RetryPolicy, ToolEffect } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { isJsonObject } from "../../shared/json.ts";
import { DEFAULT_TOOL_BACKOFF_MS } from "./tool-schema.ts";

export interface ToolRetry {
  /** Attempts of a call, including the first: 1 to 10; 1 when absent. `once` tools have 1. */
  maxAttempts?: number;
  /** Milliseconds before the second attempt, at most 60 000; 1 000 when absent. Doubles before each further attempt, up to a minute. */
  backoffMs?: number;
  /** Another form of the tool's `timeoutMs`. */
  timeoutMs?: number;
}

type Fields = Readonly<Record<string, unknown>>;
type Report = (path: string[], message: string) => void;

/** The kind of target that each field names. `targetType` gives the kind for `targetId`. */
const KINDS: Fields = { task: "task", taskId: "task", workflowId: "workflow", agentId: "agent" };
const TARGET_FIELDS = ["target", "targetId", ...Object.keys(KINDS)];

/** Extends the schema of a tool to the other forms. The output type stays the same. */
export function withToolForms<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>> {
  return z.preprocess((value, context) => {
    if (!isJsonObject(value)) return value;
    const report: Report = (path, message) => context.addIssue({ code: "custom", path, message });
    const { targetType, targetId, task, taskId, workflowId, agentId, invocationMode, retry, ...tool } = value;
    return {
      ...tool,
      ...defined({
        target: readTarget(value, report),
        timeoutMs: readTimeout(value, report),
        retry: withoutTimeout(retry),
      }),
    };
  }, schema);
}

export function targetFields(tool: object): string[] {
  const fields: Fields = { ...tool };
  return TARGET_FIELDS.filter((name) => fields[name] !== undefined);
}

/** Returns the timeout of a tool from either form; `undefined` if it is absent. */
export function readTimeout(tool: { timeoutMs?: unknown; retry?: unknown }, report: Report): unknown {
  const { timeoutMs, retry } = tool;
  if (retry === undefined) return timeoutMs;
  if (!isJsonObject(retry)) {
    report(["retry"], "Must be an object.");
    return timeoutMs;
  }
  const { timeoutMs: inRetry } = retry;
  if (timeoutMs !== undefined && inRetry !== undefined)
    report(["retry", "timeoutMs"], "The tool has two timeouts, `timeoutMs` and `retry.timeoutMs`. Give one.");
  return timeoutMs ?? inRetry;
}

/** Returns `retry` without its `timeoutMs`; `undefined` if it has no other member. */
export function withoutTimeout(retry: unknown): unknown {
  if (!isJsonObject(retry)) return undefined;
  const { timeoutMs: _, ...rest } = retry;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** Returns `retry` with its defaults; `undefined` for one attempt. Reports attempts that the effect forbids (TOOLFORM-3). */
export function completeRetry(
  { maxAttempts = 1, backoffMs = DEFAULT_TOOL_BACKOFF_MS }: Pick<ToolRetry, "maxAttempts" | "backoffMs">,
  effect: ToolEffect,
  report: Report,
): RetryPolicy | undefined {
  if (maxAttempts === 1) return undefined;
  if (effect === "once") report(["retry"], ONCE);
  return { maxAttempts, backoffMs };
}

const ONCE =
  'A `once` tool has one attempt, because a failed attempt may have taken effect. Declare `effect: "idempotent"` if the tool may run twice under one `operationId`, or remove `retry`.';

function readTarget(tool: Fields, report: Report): unknown {
  const [field, ...others] = targetFields(tool);
  const isAgent = field === "agentId" || (field === "targetId" && tool.targetType === "agent");
  if (tool.invocationMode !== undefined && !isAgent)
    report(["invocationMode"], "Belongs to `agentId`. In `target: {agent}` the mode is `target.mode`.");
  if (others.length > 0) {
    const names = [field, ...others].map((name) => `\`${name}\``).join(" and ");
    report([], `The tool names more than one target: ${names}. Give one.`);
    return undefined;
  }
  if (field === undefined) {
    if (tool.targetType !== undefined) report(["targetId"], "Is required beside `targetType`.");
    return undefined;
  }
  if (field !== "targetId" && tool.targetType !== undefined)
    report(["targetType"], `Belongs to \`targetId\`. Remove it, since \`${field}\` names the target.`);
  const id = tool[field];
  if (field === "target") return id;
  const kind = field === "targetId" ? tool.targetType : KINDS[field];
  if (kind === "task") return { task: id };
  if (kind === "workflow") return { workflow: id };
  if (kind === "agent") return { agent: id, ...defined({ mode: tool.invocationMode }) };
  report(
    ["targetType"],
    "Only tasks, workflows and agents can be targets: `task`, `workflow` or `agent`, with the reference or the agent's id in `targetId`.",
  );
  return undefined;
}
