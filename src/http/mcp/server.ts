/**
 * The MCP server of one request. It has what the request needs: all tools for a list of tools, one tool for a call.
 *
 * MCP-6  A principal sees and uses the agents, workflows, memories, prompts and artifacts of its tenant only, with its own rights.
 * MCP-12  Tools of libraries are public only if the application names them. A tool that needs an approval never is, because a run has no
 *         person to approve it.
 */
import { type McpRequestContext, McpServer } from "@modelcontextprotocol/server";
import { TASKS } from "../../compat/mcp/tasks.ts";
import { isPlainObject } from "../../shared/json.ts";
import { VERSION } from "../../shared/version.ts";
import type { McpRequest } from "./call.ts";
import type { McpOptions } from "./options.ts";
import { addAllPrompts, addNamedPrompt } from "./prompts.ts";
import { addArtifacts } from "./resources.ts";
import { addTasks } from "./tasks.ts";
import { addAllTools, addNamedTool, addPublicTools, isOurs } from "./tools.ts";

export interface ClientMessage {
  id?: unknown;
  method?: unknown;
  params?: unknown;
  result?: unknown;
}

export function nameIn({ method, params }: ClientMessage, wanted: string): string | undefined {
  if (method !== wanted || !isPlainObject(params)) return undefined;
  return typeof params.name === "string" ? params.name : undefined;
}

const EXTENSIONS = { extensions: { [TASKS]: {} } };
/** The server sends no notification when a list changes. */
const UNCHANGING = { listChanged: false };
const CAPABILITIES = { tools: UNCHANGING, prompts: UNCHANGING, resources: UNCHANGING };

export async function mcpServer(
  request: McpRequest,
  messages: readonly ClientMessage[],
  { server: given = {}, tools = [], extend }: McpOptions,
  era: McpRequestContext["era"],
): Promise<McpServer> {
  const { principal, libraries } = request.ports;
  const server = new McpServer(
    { name: "dramatis", version: VERSION },
    {
      ...given,
      capabilities: { ...CAPABILITIES, ...(era === "modern" && EXTENSIONS), ...given.capabilities },
    },
  );
  if (messages.some(({ method }) => String(method).startsWith("tasks/"))) addTasks(server, request);
  await extend?.(server, principal);
  const asks = (wanted: string) => messages.some(({ method }) => method === wanted);
  const names = (method: string) => new Set(messages.flatMap((message) => nameIn(message, method) ?? []));
  const called = names("tools/call");
  const isListing = asks("tools/list");
  if (isListing || [...called].some((name) => !isOurs(name)))
    await addPublicTools(server, request, tools, (name) => isListing || called.has(name));
  if (isListing) await addAllTools(server, request);
  else for (const name of called) addNamedTool(server, request, name);
  const { registry } = libraries(principal.tenant);
  if (asks("prompts/list")) await addAllPrompts(server, registry);
  else for (const name of names("prompts/get")) await addNamedPrompt(server, registry, name);
  if (messages.some(({ method }) => String(method).startsWith("resources/"))) addArtifacts(server, request);
  return server;
}
