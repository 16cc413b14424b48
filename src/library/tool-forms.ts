/**
 * Other forms of a tool's `target` and `timeoutMs`.
 *
 * TOOLFORM-1  `task`, `taskId`, and `targetType: "task"` with `targetId` mean `target: {task}`. A tool that names more than
 *             one target is refused, and the message lists the fields.
 * TOOLFORM-2  `retry: {timeoutMs}` means `timeoutMs`. A tool that gives both is refused.
 */
import { z } from "zod";
import { defined } from "../shared/defined.ts";
import { isJsonObject } from "../shared/json.ts";

/** The other form of `timeoutMs`. */
export interface ToolRetry {
  timeoutMs?: number;
  /** Only 1: a call has one attempt. */
  maxAttempts?: 1;
  /** Without effect. */
  backoffMs?: number;
}

type Fields = Readonly<Record<string, unknown>>;
type Report = (path: string[], message: string) => void;

/** The kinds of targets by the fields that name one. The kind of `targetId` is in `targetType`. */
const KINDS: Fields = { task: "task", taskId: "task", workflowId: "workflow", agentId: "agent" };
const TARGET_FIELDS = ["target", "targetId", ...Object.keys(KINDS)];

/** Returns the schema of a tool, extended to the other forms. The output is that of `schema`. */
export function withToolForms<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>> {
  return z.preprocess((value, context) => {
    if (!isJsonObject(value)) return value;
    const report: Report = (path, message) => context.addIssue({ code: "custom", path, message });
    const { targetType, targetId, task, taskId, workflowId, agentId, retry, ...tool } = value;
    return {
      ...tool,
      ...defined({ target: readTarget(value, report), timeoutMs: readTimeout(value, report) }),
    };
  }, schema);
}

/** Returns the fields of a tool that name a target. */
export function targetFields(tool: object): string[] {
  const fields: Fields = { ...tool };
  return TARGET_FIELDS.filter((name) => fields[name] !== undefined);
}

/** Returns the timeout of a tool from either form; `undefined` if it has none. */
export function readTimeout(tool: { timeoutMs?: unknown; retry?: unknown }, report: Report): unknown {
  const { timeoutMs, retry } = tool;
  if (retry === undefined) return timeoutMs;
  if (!isJsonObject(retry)) {
    report(["retry"], "Must be an object.");
    return timeoutMs;
  }
  const { timeoutMs: inRetry, maxAttempts, backoffMs: _, ...others } = retry;
  if (maxAttempts !== undefined && maxAttempts !== 1)
    report(
      ["retry", "maxAttempts"],
      "Must be 1: a call has one attempt. Repeat requests in the tool's code.",
    );
  for (const name of Object.keys(others)) report(["retry", name], "Unknown field.");
  if (timeoutMs !== undefined && inRetry !== undefined)
    report(["retry", "timeoutMs"], "The tool has two timeouts, `timeoutMs` and `retry.timeoutMs`. Give one.");
  return timeoutMs ?? inRetry;
}

function readTarget(tool: Fields, report: Report): unknown {
  const [field, ...others] = targetFields(tool);
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
  const kinds = field === "targetId" ? ["targetType"] : [field];
  report(kinds, "Only tasks can be targets: give `target: {task}` with the reference of a deployed tool.");
  return undefined;
}
