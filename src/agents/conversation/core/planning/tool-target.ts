/** Which deployed code a tool call runs. Pure. */
import { parseReference } from "../../../../library/reference.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import type { ToolInvocation } from "../../../../protocol/executor-api.ts";
import type { Operation } from "../state.ts";

const NOWHERE: ToolInvocation["tool"] = { library: "", id: "", version: 0 };

/** The tool itself, or the one that its pinned definition names as its task. */
export function invokedTool({ tools }: VersionChain, tool: Operation["tool"]): ToolInvocation["tool"] {
  if (tool === null) return NOWHERE;
  const pinned = tools.find(
    ({ library, id, version }) => library === tool.library && id === tool.id && version === tool.version,
  );
  const task = pinned?.definition.task;
  return task === undefined ? tool : { ...parseReference(task), version: 0 };
}
