/** The tools that a turn brings along, beside those of its agent. */
import type { ModelContext, ToolSpec } from "../../../../model/context.ts";
import type { ToolDefinition, VersionChain } from "../../../../protocol/definitions.ts";
import { DramatisError } from "../../../../shared/errors.ts";

/**
 * Throws `INVALID_INPUT` for a tool that has the name of one of the agent's, and for a choice of a tool that there is
 * not.
 */
export function checkClientTools(
  chain: VersionChain,
  tools: readonly ToolSpec[] = [],
  choice: ModelContext["toolChoice"] = "auto",
): void {
  const own = new Set(chain.tools.map(({ definition }) => definition.name));
  const taken = tools.findIndex(({ name }) => own.has(name));
  if (taken >= 0) {
    throw invalid(`/tools/${taken}/name`, "The agent has a tool of this name; choose another.");
  }
  const isOffered = (name: string) => own.has(name) || tools.some((tool) => tool.name === name);
  if (choice === "required" && own.size + tools.length === 0) {
    throw invalid("/toolChoice", "There is no tool that could be called.");
  }
  if (typeof choice === "object" && !isOffered(choice.name)) {
    throw invalid("/toolChoice/name", "Neither the agent nor the message brings a tool of this name.");
  }
}

/** A client's tool as what the gate is asked about. Nobody here knows what it does: it is `once`. */
export function clientToolDefinition(tool: ToolSpec, timeoutMs: number): ToolDefinition {
  return { ...tool, effect: "once", timeoutMs };
}

function invalid(path: string, message: string): DramatisError {
  return new DramatisError("INVALID_INPUT", `${path}: ${message}`, { errors: [{ path, message }] });
}
