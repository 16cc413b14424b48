/**
 * Checks of the tasks, actions and prompts that authors post.
 *
 * AUTHOR-5  Everything that a posted task refers to exists when it is added, and no posted request may reach a host that the deployer does
 *           not list.
 */
import type {
  ActionDefinition,
  InlineAction,
  PromptDefinition,
  TaskDefinition,
} from "../../protocol/task-definition.ts";
import { type DramatisError, type InputIssue, invalid } from "../../shared/errors.ts";
import { unlistedHosts } from "../../shared/host-rules.ts";
import { issuesText } from "../../shared/validation.ts";
import type { DefinitionKey } from "../definitions/reference.ts";
import { actionIssues, normalAction } from "../tasks/actions-schema.ts";
import { isReference } from "../tasks/steps-schema.ts";
import { completeTask } from "../tasks/task-schema.ts";
import type { LibraryPorts } from "./authoring.ts";

export type PostedTask = Omit<TaskDefinition, "timeoutMs" | "effect" | "steps"> &
  Required<Pick<TaskDefinition, "steps">> & { timeoutMs?: number };

/** Returns the task in its stored form. Throws `INVALID_INPUT` with the places of its problems. */
export async function checkedTask(
  { registry, mayReach }: LibraryPorts,
  { library, id }: DefinitionKey,
  posted: PostedTask,
): Promise<TaskDefinition> {
  const definition = completeTask(posted);
  const { task } = await registry.pinned({ library, id, version: 0, hash: "", definition });
  const errors = task.steps.flatMap(({ action }, index) =>
    hostIssues(
      action,
      mayReach,
      `/steps/${index}/action${isReference(posted.steps[index]?.action) ? "" : "/hosts"}`,
    ),
  );
  if (errors.length > 0) throw refused("task", errors);
  return definition;
}

/** Returns the action in its stored form. Throws `INVALID_INPUT` with the places of its problems. */
export async function checkedAction(
  { registry, mayReach }: LibraryPorts,
  { library, id }: DefinitionKey,
  posted: object,
): Promise<ActionDefinition> {
  const normal = normalAction(posted);
  const errors = actionIssues(normal, "");
  if (errors.length > 0) throw refused("action", errors);
  // SAFETY: it has no problems, so it is an action of its kind.
  const action = normal as InlineAction;
  const hosts = hostIssues(action, mayReach, "/hosts");
  if (hosts.length > 0) throw refused("action", hosts);
  // A task with only this action has the same references as the action.
  const definition = completeTask({ inputSchema: { type: "object" }, steps: [{ ref: "action", action }] });
  await registry.pinned({ library, id, version: 0, hash: "", definition });
  return action;
}

export async function checkedPrompt(
  _ports: LibraryPorts,
  _key: DefinitionKey,
  prompt: PromptDefinition,
): Promise<PromptDefinition> {
  return prompt;
}

/** Returns the problem of the hosts of an action that posted tasks may not reach. */
export function hostIssues(
  action: { kind: string; hosts?: readonly string[] },
  mayReach: LibraryPorts["mayReach"],
  path: string,
): InputIssue[] {
  const { hosts = [] } = action;
  const refusedHosts = hosts.filter((host) => !mayReach(host));
  if (refusedHosts.length === 0) return [];
  return [{ path, message: unlistedHosts("tasks", refusedHosts) }];
}

function refused(what: string, issues: InputIssue[]): DramatisError {
  const errors = issues.slice(0, 20);
  return invalid(`The ${what} is not valid: ${issuesText(errors)}`, { errors });
}
