/** Loads the agents of this server. */
import type { AgentIdentity } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { type Resource, useResource } from "./use-resource.ts";

const load = async (signal: AbortSignal): Promise<AgentIdentity[]> =>
  (await client.agents.list({ limit: 200, signal })).agents;

export function useAgents(): Resource<AgentIdentity[]> {
  return useResource(load);
}
