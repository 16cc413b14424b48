/** The options of the MCP server. Types only. */
import type { McpServer, ServerOptions } from "@modelcontextprotocol/server";
import type { PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import type { Principal } from "../../shared/principal.ts";

export interface McpOptions {
  /**
   * The addresses of the servers that issue tokens, for the metadata of OAuth. Default: the variable `AUTH_ISSUER`, if it is an address.
   *
   * @example authorizationServers: ["https://login.example.com"]
   */
  authorizationServers?: readonly string[];
  /**
   * Tools of libraries that clients may call without an agent. Each call starts a run. A tool that needs an approval, or that an agent answers,
   * is not offered. Of two tools with one name, the first is offered. Names that begin with `ask_` and `run_` belong to agents and workflows.
   *
   * @example tools: ["shop/price"]
   */
  tools?: readonly string[];
  /** Options of the server of the SDK, such as its `instructions`. */
  server?: ServerOptions;
  /**
   * Adds tools, prompts and resources of the application. It runs for each request, and the server answers only this request. Names that
   * begin with `ask_` and `run_` belong to agents and workflows.
   *
   * @example extend: (server) => { server.registerTool("now", {}, () => ({ content: [{ type: "text", text: new Date().toISOString() }] })) }
   */
  extend?(server: McpServer, principal: Principal): void | Promise<void>;
}

/** The options, with a port of the application. */
export interface McpServing<Env> extends McpOptions {
  pinTool(env: Env, tenant: string, reference: string): Promise<PinnedWorkflow>;
}
