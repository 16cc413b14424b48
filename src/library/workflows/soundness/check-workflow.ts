/** The check of a workflow: its form, then its soundness. Pure. */
import type { WorkflowDefinition } from "../../../protocol/workflow-definition.ts";
import type { InputIssue } from "../../../shared/errors.ts";
import { issueAt } from "../../../shared/validation.ts";
import { formIssues } from "../check-form.ts";
import { MAX_WORKFLOW_ISSUES } from "../workflow-limits.ts";
import { soundnessIssues } from "./check.ts";
import type { Lookup } from "./schemas.ts";

/** Returns no schemas, which skips the schema checks. */
const nothingKnown: Lookup = () => null;

/**
 * Returns the problems of a definition that `workflowSchema` accepted. The list is empty if the definition can run. Each
 * message begins with the code or the number of its rule, and states the fix.
 * @example checkWorkflow(workflowSchema.parse(body), () => null);
 */
export function checkWorkflow(definition: WorkflowDefinition, lookup: Lookup = nothingKnown): InputIssue[] {
  const form = formIssues(definition);
  const found = form.length > 0 ? form : soundnessIssues(definition, lookup);
  return found.slice(0, MAX_WORKFLOW_ISSUES).map(({ path, message }) => issueAt(path, message));
}
