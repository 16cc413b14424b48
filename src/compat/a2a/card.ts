/**
 * The card of an agent: how clients of A2A describe and reach it. Pure.
 *
 * A2A-13  A card needs authentication like every other route. So the extended card is the card.
 */
import type { AgentSummary } from "../../protocol/agent-api.ts";
import { A2A_VERSION } from "../../protocol/remote-call.ts";

const TEXT = "text/plain";
const JSON_TYPE = "application/json";

/** Returns the card of an agent. `url` is its address for JSON-RPC, and the beginning of its addresses for REST. */
export function agentCard(
  {
    id,
    name = id,
    description,
    examples = [],
  }: Pick<AgentSummary, "id" | "name" | "description" | "examples">,
  { url, version, sendsNotices }: { url: string; version: string; sendsNotices: boolean },
) {
  const text = description ?? `The agent "${id}".`;
  return {
    name,
    description: text,
    version,
    supportedInterfaces: ["JSONRPC", "HTTP+JSON"].map((protocolBinding) => ({
      ...{ url, protocolBinding, protocolVersion: A2A_VERSION },
    })),
    capabilities: { streaming: true, pushNotifications: sendsNotices, extendedAgentCard: true },
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: "Bearer" } } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: [TEXT, JSON_TYPE, "image/*", "application/pdf"],
    defaultOutputModes: [TEXT],
    skills: [{ id, name, description: text, tags: ["agent"], examples }],
  };
}
