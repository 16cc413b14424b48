/** What zod reports, as the issues of our errors: one place that turns a failed parse into words. */
import type { z } from "zod";
import { DramatisError, type InputIssue } from "../shared/errors.ts";

/** A failed parse as issues; paths are JSON pointers, the empty one means the value itself. */
export function inputIssues(error: z.core.$ZodError): InputIssue[] {
  return error.issues.map((issue) => ({ path: pointer(issue.path), message: issue.message }));
}

/** Issues as one line: `/limit: Invalid input …; /query: …`. */
export function issuesText(issues: readonly InputIssue[]): string {
  return issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
}

/** `value` as the schema reads it; otherwise `INVALID_INPUT` saying what is wrong with `what`. */
export function parseInput<Output>(schema: z.ZodType<Output>, value: unknown, what: string): Output {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const errors = inputIssues(parsed.error);
  throw new DramatisError("INVALID_INPUT", `${what} is not valid: ${issuesText(errors)}`, { errors });
}

function pointer(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}
