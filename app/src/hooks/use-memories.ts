/** Loads memories of an agent: a list, a search, one with its origin, and the state of the stores. */
import { useCallback, useEffect } from "react";
import type { Memory, MemorySearchResult, MemoryStatus, MemoryWhy } from "../../../src/client/index.ts";
import { client } from "../client.ts";
import { filterOf, type MemoryChoice, statesOf } from "../memory/memory-choice.ts";
import { type PageOptions, type Pages, usePages } from "./use-pages.ts";
import { type Resource, useResource } from "./use-resource.ts";

/** Results of a search that are shown. */
const MAX_RESULTS = 20;
/** Time until the state is read again while a store lacks something. */
const REFRESH_MS = 5_000;

/** The caller is remounted for another choice. */
export function useMemories(agentId: string, choice: MemoryChoice): Pages<Memory> {
  const load = useCallback(
    async (page: PageOptions) => {
      const options = { ...page, ...filterOf(choice), state: statesOf(choice) };
      const { memories, ...rest } = await client.memories.list(agentId, options);
      return { items: memories, ...rest };
    },
    [agentId, choice],
  );
  return usePages(load);
}

/** The caller is remounted for another choice. */
export function useMemorySearch(agentId: string, choice: MemoryChoice): Resource<MemorySearchResult> {
  const load = useCallback(
    (signal: AbortSignal) => {
      const query = { query: choice.query, limit: MAX_RESULTS, ...filterOf(choice) };
      return client.memories.search(agentId, query, { signal });
    },
    [agentId, choice],
  );
  return useResource(load);
}

/** A memory with its whole text, its sources and its log. */
export type ExplainedMemory = MemoryWhy;

export function useMemory(agentId: string, id: string): Resource<ExplainedMemory> {
  const load = useCallback(
    async (signal: AbortSignal) => {
      const [why, memory] = await Promise.all([
        client.memories.why(agentId, id, { signal }),
        client.memories.get(agentId, id, { signal }),
      ]);
      return { ...why, memory };
    },
    [agentId, id],
  );
  return useResource(load);
}

/** Loads the state again, again and again, while a store lacks something. */
export function useMemoryStatus(agentId: string): Resource<MemoryStatus> {
  const load = useCallback((signal: AbortSignal) => client.memories.status(agentId, { signal }), [agentId]);
  const status = useResource(load);
  const { value, reload } = status;
  const isPending = value !== undefined && value.pending.records + value.pending.embeddings > 0;
  useEffect(() => {
    // Each new state sets a timer of its own.
    if (!isPending || value === undefined) return;
    const timer = setTimeout(reload, REFRESH_MS);
    return () => clearTimeout(timer);
  }, [isPending, value, reload]);
  return status;
}
