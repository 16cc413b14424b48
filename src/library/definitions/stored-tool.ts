/**
 * The stored form of tools.
 *
 * STORED-1  A tool over a task is hashed and stored with `task` in place of `target`, as release 0.3.0 did, so its versions
 *           keep their hashes and numbers. Definitions and conversations that release 0.3.0 stored are read likewise.
 */
import type { TaskTarget, ToolDefinition } from "../../protocol/definitions.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";

/** A tool in either form. Release 0.3.0 stored `task`. */
type AnyTool = ToolDefinition & { task?: DefinitionReference };

/** Returns the form of a definition that is hashed and stored. */
export function toStored(definition: object): object {
  if (!isTaskTool(definition)) return definition;
  const { target, ...tool } = definition;
  return { ...tool, ...target };
}

function isTaskTool(definition: object): definition is ToolDefinition & { target: TaskTarget } {
  const { target } = definition as Partial<ToolDefinition>;
  return typeof target === "object" && target !== null && "task" in target;
}

/** Returns a tool with its `target`. */
export function fromStored({ task, ...tool }: AnyTool): ToolDefinition {
  return task === undefined ? tool : { ...tool, target: { task } };
}
