/**
 * The client of MCP servers as a program, for the conformance suite. It lists the tools of the server in its last argument, and calls each:
 * with the arguments that the suite gives, or with an example of its schema.
 */
import { McpConnections } from "../../src/mcp/connections.ts";
import { McpTools } from "../../src/mcp/mcp-tools.ts";
import type { McpList } from "../../src/mcp/pins.ts";
import { type McpServerOptions, mcpServersOf } from "../../src/mcp/servers.ts";
import { systemClock } from "../../src/ports/system.ts";
import { isJsonObject, type Json, type JsonObject } from "../../src/shared/json.ts";

const url = process.argv.at(-1) ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}") as {
  client_id?: string;
  client_secret?: string;
  toolCalls?: { name: string; arguments: JsonObject }[];
};
const variables: Record<string, string | undefined> = { CLIENT_SECRET: context.client_secret };
const oauth =
  context.client_id === undefined || context.client_secret === undefined
    ? {}
    : {
        oauth: {
          issuer: await issuerOf(url),
          clientId: context.client_id,
          clientSecret: { secret: "CLIENT_SECRET" },
        },
      };
const server: McpServerOptions = { url, ...oauth };

/** The tools of the tenant, as a database has them. */
let rev = 0;
let list: McpList | null = null;
const tools = new McpTools({
  servers: mcpServersOf({ suite: server }),
  connections: new McpConnections(systemClock),
  pauses: new Map(),
  variable: (name) => variables[name],
  clock: systemClock,
  lists: {
    find: async () => ({ rev, list }),
    put: async (_tenant, _server, before, next) => {
      if (before !== rev) return false;
      rev += 1;
      list = next;
      return true;
    },
  },
});

const named = await tools.source("suite").resolve({ server: "suite", tool: "*" });
for (const reason of Object.values(named.withheld)) throw new Error(reason);
const calls =
  context.toolCalls?.map(({ name, arguments: input }) => ({ id: name, input })) ??
  named.tools.map(({ id, definition }) => ({ id, input: exampleOf(definition.inputSchema) as JsonObject }));
for (const [index, { id, input }] of calls.entries()) {
  const call = {
    ...{ operationId: `op_${index}`, attempt: 1, toolCallId: "", timeoutMs: 20_000, input },
    tool: { library: "mcp:suite", id, version: 1 },
    context: { tenant: "suite", projectId: "default", runId: "run_1", node: "suite" },
  };
  const signal = new AbortController().signal;
  const result = await tools
    .call(call, "suite", { signal, progress: () => {} })
    .catch((error: unknown) => String(error));
  console.log(id, JSON.stringify(result));
}

/** The issuer that an operator would have configured: the server names it. */
async function issuerOf(address: string): Promise<string> {
  const { origin, pathname } = new URL(address);
  const response = await fetch(`${origin}/.well-known/oauth-protected-resource${pathname}`);
  const { authorization_servers: servers } = (await response.json()) as { authorization_servers: string[] };
  return servers[0] ?? origin;
}

/** Returns a value that fits a simple schema. */
function exampleOf(schema: Json | undefined): Json {
  if (!isJsonObject(schema)) return "text";
  if (schema.type === "object") {
    const properties = isJsonObject(schema.properties) ? schema.properties : {};
    return Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, exampleOf(value)]));
  }
  if (schema.type === "array") return [];
  if (schema.type === "boolean") return true;
  return schema.type === "number" || schema.type === "integer" ? 5 : "text";
}
