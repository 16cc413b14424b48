/** Loads an agent with its persona's offers. */
import { useCallback } from "react";
import type { AgentView } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { useResource } from "./use-resource.ts";

/** Returns the agent once it is loaded. The page also works without it, so errors are ignored. */
export function useAgentView(agentId: string | undefined): AgentView | undefined {
  const load = useCallback(
    async (signal: AbortSignal) =>
      agentId === undefined ? undefined : await client.agents.get(agentId, { signal }),
    [agentId],
  );
  const { value } = useResource(load);
  return value?.id === agentId ? value : undefined;
}
