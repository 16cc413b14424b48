/**
 * Sub-agents: agents that a tool calls within bounds. The tool is a template of them. Pure.
 *
 * SPAWN-1  A sub-agent has only those tools of its agent that the template names, and none of any other that it is told of. It can
 *          bring nobody into a conversation.
 * SPAWN-2  It has such a tool only if its network policy allows the tool's hosts. A tool that does not say which hosts it reaches may reach any.
 *          It does not get the others, and a call of one is refused with this reason. Where a declared agent shows it, the start reports it.
 * SPAWN-3  The bounds hold for all agents that it calls, and those that they call. A template below can only narrow them.
 * SPAWN-5  A sub-agent runs no hooks of its persona: the template cannot name their code, so no bound would hold for it.
 * SPAWN-6  A sub-agent never has a tool that runs a workflow: the tasks and agents of the run would work outside the bounds.
 */
import type { ToolDefinition, VersionChain } from "../../protocol/definitions.ts";
import type { NetworkPolicy, SubAgentBounds, SubAgentTemplate } from "../../protocol/sub-agent.ts";
import { DramatisError } from "../../shared/errors.ts";
import { workflowTarget } from "./workflow-tool.ts";

/** Returns the bounds of a call by a conversation with `outer` ones; `undefined` where it has none (SPAWN-3). */
export function boundsOf(
  outer: SubAgentBounds | undefined,
  template: SubAgentTemplate | undefined,
): SubAgentBounds | undefined {
  if (template === undefined) return outer && { ...outer, inherited: true };
  const { name, tools, network = "none" } = template;
  if (outer === undefined) return { name, tools, network };
  return {
    name,
    tools: tools.filter((tool) => outer.tools.includes(tool)),
    network: narrower(outer.network, network),
  };
}

function narrower(outer: NetworkPolicy, inner: NetworkPolicy): NetworkPolicy {
  if (outer === "any") return inner;
  if (inner === "any") return outer;
  return outer === "none" || inner === "none" ? "none" : inner.filter((host) => outer.includes(host));
}

/** Returns the versions of an agent within bounds, without its hooks (SPAWN-5). Throws `INVALID_INPUT` where the template names a tool that the agent lacks. */
export function boundedChain(
  agentId: string,
  chain: VersionChain,
  { name: template, tools, network, inherited }: SubAgentBounds,
): VersionChain {
  const names = new Set(chain.tools.map(({ definition }) => definition.name));
  const unknown = tools.find((tool) => !names.has(tool));
  if (!inherited && unknown !== undefined)
    throw new DramatisError(
      "INVALID_INPUT",
      `The template "${template}" allows the tool "${unknown}", which the agent "${agentId}" does not have. Give the agent that tool, or remove it from the template.`,
    );
  const { contextAssembly: _context, memoryExtraction: _memory, ...others } = chain;
  return {
    ...others,
    tools: chain.tools.filter(
      ({ definition }) => tools.includes(definition.name) && networkProblem(definition, network) === null,
    ),
  };
}

/** Returns the tools that the template names and its network keeps from an agent, with the reasons; `undefined` where there are none. */
export function withheldTools(
  { tools: all }: Pick<VersionChain, "tools">,
  { tools, network }: Pick<SubAgentBounds, "tools" | "network">,
): Record<string, string> | undefined {
  const withheld = all.flatMap(({ definition }) => {
    const problem = tools.includes(definition.name) ? networkProblem(definition, network) : null;
    return problem === null ? [] : [[definition.name, problem]];
  });
  return withheld.length === 0 ? undefined : Object.fromEntries(withheld);
}

/** Describes why a network keeps a tool from a sub-agent (SPAWN-2); `null` where it does not. Agents that it calls have the same bounds. */
export function networkProblem(
  { hosts, target }: Pick<ToolDefinition, "hosts" | "target">,
  network: NetworkPolicy,
): string | null {
  if (workflowTarget(target) !== undefined)
    return "it runs a workflow, for whose tasks and agents no bounds hold";
  if (network === "any" || (target !== undefined && "agent" in target)) return null;
  const allowed = network === "none" ? [] : network;
  const outside = hosts?.find((host) => !allowed.includes(host));
  if (hosts !== undefined && outside === undefined) return null;
  const bound =
    allowed.length === 0 ? "its template allows no network" : "its template allows some hosts only";
  return `${bound}, and the tool ${outside === undefined ? "declares no hosts" : `reaches ${outside}`}`;
}
