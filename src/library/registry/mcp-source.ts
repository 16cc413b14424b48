/** The interface between the registry and the tools of MCP servers. */
import type { PinnedTool } from "../../protocol/definitions.ts";
import { notFound } from "../../shared/errors.ts";
import type { McpReference } from "../definitions/mcp-reference.ts";

export interface NamedMcpTools {
  tools: PinnedTool[];
  /** The tools that cannot be used now, by their names for the model, with the reasons. */
  withheld: Record<string, string>;
}

export interface McpSource {
  /** Throws `NOT_FOUND` if the application does not have the server, or does not allow the tool. */
  check(reference: McpReference): void;
  /** Throws as `check`, and `UNAVAILABLE` while the database does not answer. */
  resolve(reference: McpReference): Promise<NamedMcpTools>;
}

/** The source of an application without MCP servers. */
export const NO_MCP: McpSource = {
  check: refuse,
  resolve: async (reference) => refuse(reference),
};

function refuse({ server }: McpReference): never {
  throw notFound(`There is no MCP server "${server}". Add it to \`mcpServers\`.`);
}
