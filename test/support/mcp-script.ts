/** The tools and faults that tests give to the MCP servers on loopback (`mcp-server.ts`), and the requests that they read. */

type Behaviour =
  | "ask"
  | "big"
  | "change"
  | "drop"
  | "fail"
  | "flood"
  | "hang"
  | "headers"
  | "leak"
  | "picture"
  | "report"
  | "structured";

/** A tool as the server lists it, with the header in place of `{authorization}`, and the behaviour of its calls. Without `does` a call answers its input. */
export interface ServedTool {
  name: string;
  does?: Behaviour;
  [member: string]: unknown;
}

export interface McpFaults {
  tools?: ServedTool[];
  /** The server has lost its sessions. */
  lost?: true;
  /** Each request is redirected there. */
  redirect?: string;
  /** The list of a `raw` server is this error. */
  error?: string;
  /** Each request has this status. */
  status?: number;
}

/** A request that a server has received. `aborted` is a call that its client has cancelled. */
export interface SeenRequest {
  method: string;
  params: { name?: string; arguments?: unknown; _meta?: Record<string, unknown>; [member: string]: unknown };
  headers: Record<string, string>;
}
