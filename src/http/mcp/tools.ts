/** The tools of a server: agents, workflows, the search of memories, and tools of libraries. */
import type { McpServer } from "@modelcontextprotocol/server";
import {
  agentOfTool,
  askInput,
  askOutput,
  askToolName,
  describing,
  memoriesResult,
  runToolName,
  SEARCH_MEMORY,
  searchInput,
  workflowOfTool,
} from "../../compat/mcp/tools.ts";
import { type DefinitionKey, parseReference } from "../../library/definitions/reference.ts";
import { agentTarget } from "../../library/tools/agent-tool.ts";
import { a2aTarget } from "../../library/tools/remote-agent.ts";
import { needsApproval } from "../../protocol/approval.ts";
import type { ToolDefinition } from "../../protocol/definitions.ts";
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { offerOf } from "../routes/agents.ts";
import { askAgent } from "./ask.ts";
import { type McpRequest, toolResult } from "./call.ts";
import { everyItem, everyLibrary, ifNotFound } from "./lists.ts";
import { runWorkflow } from "./run.ts";

export async function addAllTools(server: McpServer, request: McpRequest): Promise<void> {
  const { principal, directory, libraries, missing } = request.ports;
  const { registry } = libraries(principal.tenant);
  // A runtime without a directory has no list of agents. Its agents answer calls.
  const hasLists = !missing().some(({ name }) => name === "DB");
  const agents = hasLists ? await everyItem((options) => directory().agents(principal.tenant, options)) : [];
  const offers = await Promise.all(agents.map((agent) => offerOf(registry, agent)));
  for (const [index, { id }] of agents.entries())
    if (!offers[index]?.personaMissing) addAgent(server, request, id, offers[index]);
  for (const { key, definition } of await everyLibrary(registry, "workflow"))
    if (workflowOfTool(runToolName(key))?.library === key.library)
      addWorkflow(server, request, key, definition);
  addSearch(server, request);
}

/**
 * Adds tools of libraries. A tool that the tenant does not have, or that a run cannot call, is not offered. A tool with the name of an agent, of a
 * workflow, of the search of memories or of an earlier tool is not offered.
 */
export async function addPublicTools(
  server: McpServer,
  request: McpRequest,
  references: readonly string[],
  isWanted: (name: string) => boolean,
): Promise<void> {
  const { registry } = request.ports.libraries(request.ports.principal.tenant);
  const taken = new Set([SEARCH_MEMORY]);
  for (const reference of references) {
    const tool = await registry.tool(parseReference(reference)).catch(ifNotFound);
    if (tool === undefined || !isWanted(tool.definition.name) || !isCallable(tool.definition)) continue;
    const { name, description, inputSchema } = tool.definition;
    if (isOurs(name) || taken.has(name)) continue;
    taken.add(name);
    const key = { library: tool.library, id: tool.id };
    const config = { description, inputSchema: describing(inputSchema) };
    server.registerTool(name, config, (input, context) =>
      toolResult(request, server, context, async (call) =>
        runWorkflow(call, key, input, await request.pinTool(reference)),
      ),
    );
  }
}

function isCallable({ approval, target }: ToolDefinition): boolean {
  return !needsApproval(approval) && (agentTarget(target) ?? a2aTarget(target)) === undefined;
}

export function isOurs(name: string): boolean {
  return agentOfTool(name) !== undefined || workflowOfTool(name) !== undefined;
}

export function addNamedTool(server: McpServer, request: McpRequest, name: string): void {
  const agent = agentOfTool(name);
  if (agent !== undefined) addAgent(server, request, agent);
  const workflow = workflowOfTool(name);
  if (workflow !== undefined) addWorkflow(server, request, workflow);
  if (name === SEARCH_MEMORY) addSearch(server, request);
}

function addAgent(
  server: McpServer,
  request: McpRequest,
  id: string,
  listed?: { name?: string; description?: string },
): void {
  const { name = id, description = "" } = listed ?? {};
  const about = `Asks the agent ${name}. ${description}`.trim();
  const config = { title: name, description: about, inputSchema: askInput };
  // The SDK would refuse a task, because a task is no output.
  server.registerTool(
    askToolName(id),
    listed ? { ...config, outputSchema: askOutput } : config,
    (input, context) => toolResult(request, server, context, (call) => askAgent(call, id, input)),
  );
}

function addWorkflow(
  server: McpServer,
  request: McpRequest,
  key: DefinitionKey,
  { name = key.id, description = "", inputSchema = {} }: Partial<WorkflowDefinition> = {},
): void {
  const about = `Runs the workflow ${name}. ${description}`.trim();
  const config = { title: name, description: about, inputSchema: describing(inputSchema) };
  server.registerTool(runToolName(key), config, (input, context) =>
    toolResult(request, server, context, (call) => runWorkflow(call, key, input)),
  );
}

function addSearch(server: McpServer, request: McpRequest): void {
  const { principal, actors } = request.ports;
  const description = "Finds memories of an agent, by meaning and by words. The best memories come first.";
  const config = { title: "Search memories", description, inputSchema: searchInput };
  server.registerTool(SEARCH_MEMORY, config, ({ agent: id, query, limit }, context) =>
    toolResult(request, server, context, async () => {
      const agent = await actors.agent(principal.tenant, id);
      const search = { query, ...defined({ limit }) };
      return memoriesResult(unwrap(await agent.searchMemories({ principal }, search)).matches);
    }),
  );
}
