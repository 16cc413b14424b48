/**
 * The one gate before every effect: may this tool run with this input, here? It allows all until an application gives
 * a policy; a refusal is told to the model as `PERMISSION_DENIED`.
 */

import type { ToolDefinition } from "../protocol/definitions.ts";
import type { JsonObject } from "../shared/json.ts";

export interface GateContext {
  tenant: string;
  projectId: string;
  agentId: string;
  conversationId: string;
}

export type Gate = (tool: ToolDefinition, input: JsonObject, context: GateContext) => "allow" | "deny";

export const allowAll: Gate = () => "allow";
