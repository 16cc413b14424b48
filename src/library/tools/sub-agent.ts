/**
 * Sub-agents: agents that a tool calls within bounds. The tool is their template. Pure.
 *
 * SPAWN-1  A sub-agent has only the tools of its agent that the template names. It cannot add participants to a conversation.
 * SPAWN-2  The network policy must allow all hosts of a tool. A tool without declared hosts may reach any host. Other tools are withheld from the
 *          model, and a call of a withheld tool fails with the reason. For a declared agent, the start-up check reports withheld tools.
 * SPAWN-3  The bounds also apply to all direct and indirect calls of other agents. A nested template can only narrow them.
 * SPAWN-5  A sub-agent runs no hooks of its persona, because a template cannot bound the code of hooks.
 * SPAWN-6  A sub-agent has no tools that run workflows, because the tasks and agents of the run would work outside the bounds.
 */
import type { ToolDefinition, VersionChain } from "../../protocol/definitions.ts";
import type { NetworkPolicy, SubAgentBounds, SubAgentTemplate } from "../../protocol/sub-agent.ts";
import { invalid } from "../../shared/errors.ts";
import { a2aTarget, remoteHost } from "./remote-agent.ts";
import { workflowTarget } from "./workflow-tool.ts";

/** Combines the bounds `outer` of a conversation with the template of its call; `undefined` if both are absent (SPAWN-3). */
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

/** Returns the version chain within bounds, without hooks (SPAWN-5). Throws `INVALID_INPUT` if the template names a tool that the agent lacks. */
export function boundedChain(
  agentId: string,
  chain: VersionChain,
  { name: template, tools, network, inherited }: SubAgentBounds,
): VersionChain {
  const names = new Set(chain.tools.map(({ definition }) => definition.name));
  const unknown = tools.find((tool) => !names.has(tool));
  if (!inherited && unknown !== undefined)
    throw invalid(
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

/** Returns the tools that the template names but its network policy withholds, with the reasons; `undefined` if all are allowed. */
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

/** Describes why a network policy withholds a tool (SPAWN-2); `null` if the tool is allowed. Agents that it calls have the same bounds. */
export function networkProblem(
  { hosts: declared, target }: Pick<ToolDefinition, "hosts" | "target">,
  network: NetworkPolicy,
): string | null {
  if (workflowTarget(target) !== undefined)
    return "it runs a workflow, and the bounds do not apply to the run";
  if (network === "any" || (target !== undefined && "agent" in target)) return null;
  const allowed = network === "none" ? [] : network;
  const remote = a2aTarget(target);
  const hosts = remote === undefined ? declared : [remoteHost(remote)];
  const outside = hosts?.find((host) => !allowed.includes(host));
  if (hosts !== undefined && outside === undefined) return null;
  const bound =
    allowed.length === 0 ? "its template allows no network" : "its template allows some hosts only";
  return `${bound}, and the tool ${outside === undefined ? "declares no hosts" : `reaches ${outside}`}`;
}
