/** The check of a workflow: its form, then its soundness. Pure. */
import type { WorkflowDefinition } from "../../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../../shared/errors.ts";
import { issueAt } from "../../../shared/validation.ts";
import { formIssues } from "../check-form.ts";
import { MAX_WORKFLOW_ISSUES } from "../workflow-limits.ts";
import { soundnessIssues } from "./check.ts";
import type { Lookup } from "./schemas.ts";

/** Knows no schemas, so that nothing is checked against them. */
const nothingKnown: Lookup = () => null;

/**
 * Returns the problems of a definition that `workflowSchema` has accepted; none if it can run. Each message begins with the code or the
 * number of its rule, and says what to change.
 * @example checkWorkflow(workflowSchema.parse(body), () => null);
 */
export function checkWorkflow(definition: WorkflowDefinition, lookup: Lookup = nothingKnown): InputIssue[] {
  const form = formIssues(definition);
  const found = form.length > 0 ? form : soundnessIssues(definition, lookup);
  return found.slice(0, MAX_WORKFLOW_ISSUES).map(({ path, message }) => issueAt(path, message));
}
