/** The cut of a workflow's issues. Pure. */
import type { InputIssue } from "../../shared/errors.ts";
import { MAX_WORKFLOW_ISSUES } from "./workflow-limits.ts";

/** Returns the first issues, at most `MAX_WORKFLOW_ISSUES`. A generator stops there. */
export function firstIssues(found: Iterable<InputIssue>): InputIssue[] {
  const first: InputIssue[] = [];
  for (const issue of found) {
    first.push(issue);
    if (first.length === MAX_WORKFLOW_ISSUES) break;
  }
  return first;
}
