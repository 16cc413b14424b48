/** Loads the example messages of an agent. */
import { useCallback } from "react";
import { client } from "../client.ts";
import { useResource } from "./use-resource.ts";

const NONE: readonly string[] = [];

/** Returns the examples once they are loaded. Without them the page works as well, so an error shows nothing. */
export function useExamples(agentId: string | undefined): readonly string[] {
  const load = useCallback(
    async (signal: AbortSignal) => ({
      agentId,
      examples:
        agentId === undefined ? NONE : ((await client.agents.get(agentId, { signal })).examples ?? NONE),
    }),
    [agentId],
  );
  const { value } = useResource(load);
  return value?.agentId === agentId ? (value?.examples ?? NONE) : NONE;
}
