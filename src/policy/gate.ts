/** The gate: decides, before a tool call runs, whether the call is allowed. The model gets `PERMISSION_DENIED` for a denied call. */

import type { ToolDefinition } from "../protocol/definitions.ts";
import type { JsonObject } from "../shared/json.ts";

export interface GateContext {
  tenant: string;
  projectId: string;
  agentId: string;
  conversationId: string;
}

/**
 * Decides about one tool call. A gate that throws denies the call.
 * @example (tool, input, { tenant }) => (tool.name === "refund" && tenant !== "acme" ? "deny" : "allow")
 */
export type Gate = (tool: ToolDefinition, input: JsonObject, context: GateContext) => "allow" | "deny";

/** The default gate. */
export const allowAll: Gate = () => "allow";
