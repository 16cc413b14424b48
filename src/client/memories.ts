/** The memory of agents over HTTP. */
import type { MemoryFilter } from "../protocol/memory.ts";
import type { MemoryChange, MemoryInput, MemoryQuery } from "../protocol/memory-requests.ts";
import type {
  AgentsSearchResult,
  Memory,
  MemorySearchResult,
  MemoryStatus,
  MemoryWhy,
} from "../protocol/memory-schemas.ts";
import { defined } from "../shared/defined.ts";
import type { PageOptions } from "../shared/page.ts";
import { pathOf, queryOf } from "./requests.ts";

interface Options {
  signal?: AbortSignal;
}

/** The limits of a list of memories. */
export type MemoriesRequest = PageOptions & MemoryFilter & Options;

/** The memory of agents. Members of the tenant can only read memories about themselves. */
export interface MemoriesClient {
  /** Lists memories, ascending by creation, or descending. */
  list(agentId: string, options?: MemoriesRequest): Promise<{ memories: Memory[]; nextCursor?: string }>;
  /**
   * Finds current memories, the best first, and explains the place of each.
   *
   * @example
   * const { matches } = await client.memories.search("guide", { query: "Where does Ann like to sit?", limit: 3 });
   * for (const { memory, score } of matches) console.log(score.relevance, memory.content);
   */
  search(agentId: string, query: MemoryQuery, options?: Options): Promise<MemorySearchResult>;
  /** Searches up to 20 agents at once. Not with `weights`. An agent that does not answer is in `failed`. */
  searchAgents(
    agentIds: readonly string[],
    query: Omit<MemoryQuery, "weights">,
    options?: Options,
  ): Promise<AgentsSearchResult>;
  /** Reads a memory with all of its text. */
  get(agentId: string, memoryId: string, options?: Options): Promise<Memory>;
  /**
   * Writes a memory. Searches find it when it resolves.
   *
   * @example
   * await client.memories.write("guide", { content: "Ann prefers window seats.", subject: { userId: "ann" } });
   */
  write(agentId: string, input: MemoryInput, options?: Options): Promise<Memory>;
  /** Writes up to 100 memories, all or not at all. */
  writeAll(agentId: string, inputs: readonly MemoryInput[], options?: Options): Promise<Memory[]>;
  /** Changes a memory. With `ifVersion` it fails with `CONFLICT` if the memory has changed since. */
  update(agentId: string, memoryId: string, change: MemoryChange, options?: Options): Promise<Memory>;
  /** Erases a memory and its log. */
  delete(agentId: string, memoryId: string, options?: Options): Promise<void>;
  /** Moves the text of a memory to the archive and out of search. */
  archive(agentId: string, memoryId: string, options?: Options): Promise<Memory>;
  /** Returns where a memory comes from, and the log of its changes. */
  why(agentId: string, memoryId: string, options?: Options): Promise<MemoryWhy>;
  /** Returns the number of memories, and of pending copies in other stores. */
  status(agentId: string, options?: Options): Promise<MemoryStatus>;
}

/** Sends a request and returns the JSON of its response, if any. */
export interface MemoryRequests {
  get<Value>(path: string, options?: Options): Promise<Value>;
  write<Value>(method: "POST" | "PATCH", path: string, body: unknown, options?: Options): Promise<Value>;
  remove(path: string, options?: Options): Promise<void>;
}

export function memoriesClient({ get, write, remove }: MemoryRequests): MemoriesClient {
  const memories = (agentId: string, ...rest: string[]) => pathOf("agents", agentId, "memories", ...rest);
  return {
    list: (agentId, { signal, limit, cursor, order, state, ...filter } = {}) => {
      const own = queryOf({ limit, cursor, order, state, ...filterParameters(filter) });
      return get(memories(agentId) + own, defined({ signal }));
    },
    search: (agentId, query, init) => write("POST", memories(agentId, "search"), query, init),
    searchAgents: (agentIds, { query: q, limit, now, minRelevance, ...filter }, init) => {
      const agents = agentIds.join(",");
      const own = { agents, q, limit, now, minRelevance, ...filterParameters(filter) };
      return get(`memories/search${queryOf(own)}`, init);
    },
    get: (agentId, memoryId, init) => get(memories(agentId, memoryId), init),
    write: (agentId, input, init) => write("POST", memories(agentId), input, init),
    async writeAll(agentId, inputs, init) {
      const body = { memories: inputs };
      const written = await write<{ memories: Memory[] }>("POST", memories(agentId), body, init);
      return written.memories;
    },
    update: (agentId, memoryId, change, init) => write("PATCH", memories(agentId, memoryId), change, init),
    delete: (agentId, memoryId, init) => remove(memories(agentId, memoryId), init),
    archive: (agentId, memoryId, init) => write("POST", memories(agentId, memoryId, "archive"), {}, init),
    why: (agentId, memoryId, init) => get(memories(agentId, memoryId, "why"), init),
    status: (agentId, init) => get(pathOf("agents", agentId, "memory"), init),
  };
}

function filterParameters({ subject, metadata, ...filter }: Omit<MemoryFilter, "state">) {
  return { ...filter, ...subject, metadata: metadata && JSON.stringify(metadata) };
}
