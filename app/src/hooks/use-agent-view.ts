/** Loads an agent with its persona's offers. */
import { useCallback } from "react";
import type { AgentView } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { useResource } from "./use-resource.ts";

/** Returns the agent once it is loaded. Without it the page works as well, so an error shows nothing. */
export function useAgentView(agentId: string | undefined): AgentView | undefined {
  const load = useCallback(
    async (signal: AbortSignal) =>
      agentId === undefined ? undefined : await client.agents.get(agentId, { signal }),
    [agentId],
  );
  const { value } = useResource(load);
  return value?.id === agentId ? value : undefined;
}
