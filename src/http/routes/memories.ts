/**
 * `/api/agents/:id/memories`: the memory of an agent, and searches over several agents.
 *
 * MEMHTTP-1  Memories of another tenant are not found. For a member, memories of another user are not found.
 * MEMHTTP-2  A batch is written as a whole, or not at all.
 * MEMHTTP-3  A search over several agents has the results of the agents that answer in time, and names the others.
 */
import { z } from "zod";
import type { Clock } from "../../ports/clock.ts";
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import type { AgentApi } from "../../protocol/agent-api.ts";
import type { MemoryWriter } from "../../protocol/memory.ts";
import { memoryChange, memoryQuery } from "../../protocol/memory-requests.ts";
import type { AgentsSearchResult, MemorySearchResult } from "../../protocol/memory-schemas.ts";
import {
  agentsSearchResult,
  memories,
  memory,
  memoryId,
  memoryStatus,
  memoryWhy,
  searchResult,
} from "../../protocol/memory-schemas.ts";
import { ids } from "../../protocol/scalars.ts";
import { defined } from "../../shared/defined.ts";
import { DramatisError, forbidden, toErrorData, unwrap } from "../../shared/errors.ts";
import { mayAuthor, mayReadAll, type Principal } from "../../shared/principal.ts";
import type { RequestVariables } from "../base/context.ts";
import { empty, json, page } from "../base/respond.ts";
import { ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import {
  agentsSearchParams,
  filterOf,
  inputsOf,
  listParams,
  queryOf,
  searchParams,
  writeHeaders,
  writeSchema,
} from "./memory-bodies.ts";

/** Time limit for each agent of a search over several agents, in milliseconds. */
const SEARCH_PART_MS = 10_000;

/** Default number of results of a search over several agents. */
const DEFAULT_RESULTS = 10;

const AGENT = "/api/agents/:id";
const MEMORIES = `${AGENT}/memories` as const;
const SEARCH = `${MEMORIES}/search` as const;
const MEMORY = `${MEMORIES}/:memoryId` as const;
const STATUS = `${AGENT}/memory` as const;
const SEARCH_AGENTS = "/api/memories/search";

const agentParams = z.object({ id: ids.agent });
const memoryParams = agentParams.extend({ memoryId });

const WHOSE =
  "Authors, operators and administrators see all memories of the agent. Members see memories about themselves.";

export const memoryRoutes: readonly Route[] = [
  route({
    id: "writeMemories",
    method: "post",
    path: MEMORIES,
    tag: "memories",
    summary: "Write a memory, or up to 100",
    description:
      "For authors, operators and administrators. Searches find the memory as soon as the request resolves. `{memories: […]}` writes a batch atomically and returns `{memories}`, without `Location`.",
    params: agentParams,
    headers: writeHeaders,
    body: writeSchema,
    answers: [
      {
        status: 201,
        description: "The memory, as a list would show it; of a batch `{memories}`, in their order.",
        body: z.union([memory, memories]),
      },
    ],
    errors: ["FORBIDDEN", "CONFLICT", "IDEMPOTENCY_CONFLICT"],
    reads: z.unknown(),
    permit: ({ principal }) => requireAll(principal, "write memories"),
    handle: async ({ params, headers, body }, ports) => {
      const { inputs, isBatch } = inputsOf(body, headers["Idempotency-Key"]);
      const agent = await agentOf(ports, params);
      const written = unwrap(await agent.writeMemories(writerOf(ports.principal), inputs));
      const [memory] = written;
      if (isBatch || memory === undefined) return json({ memories: written }, 201);
      return json(memory, 201, `/api/agents/${params.id}/memories/${memory.id}`);
    },
  }),
  route({
    id: "listMemories",
    method: "get",
    path: MEMORIES,
    tag: "memories",
    summary: "List memories",
    description: WHOSE,
    params: agentParams,
    query: listParams,
    answers: onePage("memories", memory),
    handle: async ({ params, query: { state, limit, cursor, order, ...filter } }, ports) => {
      const agent = await agentOf(ports, params);
      const options = { ...defined({ state, limit, cursor, order }), ...filterOf(filter) };
      return page("memories", unwrap(await agent.listMemories({ principal: ports.principal }, options)));
    },
  }),
  route({
    id: "searchMemories",
    method: "get",
    path: SEARCH,
    tag: "memories",
    summary: "Search memories",
    description: `Finds current memories by meaning and by words, the best first, and explains the place of each; a member gets no parts of scores. ${WHOSE}`,
    params: agentParams,
    query: searchParams,
    answers: ok("The results.", searchResult),
    handle: async ({ params, query }, ports) => {
      const agent = await agentOf(ports, params);
      return json(unwrap(await agent.searchMemories({ principal: ports.principal }, queryOf(query))));
    },
  }),
  route({
    id: "searchMemoriesByBody",
    method: "post",
    path: SEARCH,
    tag: "memories",
    summary: "Search memories, with weights or a long query",
    description:
      "As the `GET`. The weights replace the weights of the agent's persona. The search is read-only.",
    params: agentParams,
    body: memoryQuery.meta({
      example: { query: "Where does Ann like to sit?", type: ["preference"], limit: 5 },
    }),
    answers: ok("The results.", searchResult),
    handle: async ({ params, body }, ports) => {
      const agent = await agentOf(ports, params);
      return json(unwrap(await agent.searchMemories({ principal: ports.principal }, body)));
    },
  }),
  route({
    id: "searchMemoriesOfAgents",
    method: "get",
    path: SEARCH_AGENTS,
    tag: "memories",
    summary: "Search the memories of several agents",
    description:
      "For authors, operators and administrators. Asks up to 20 agents at once. An agent that does not answer, or does not exist, is in `failed`, and the others answer.",
    query: agentsSearchParams,
    answers: ok("The results of all of them, by relevance.", agentsSearchResult),
    errors: ["FORBIDDEN"],
    permit: ({ principal }) => requireAll(principal, "search the memories of several agents"),
    handle: async ({ query: { agents, ...given } }, { principal, actors, clock }) => {
      const query = queryOf(given);
      const search = async (id: string) => {
        const agent = await actors.agent(principal.tenant, id);
        return unwrap(await agent.searchMemories({ principal }, query));
      };
      return json(await searchAgents(clock, agents, search, query.limit));
    },
  }),
  route({
    id: "getMemory",
    method: "get",
    path: MEMORY,
    tag: "memories",
    summary: "Read a memory",
    description: "Returns all of its text.",
    params: memoryParams,
    answers: ok("The memory.", memory),
    handle: async ({ params }, ports) => {
      const agent = await agentOf(ports, params);
      return json(unwrap(await agent.readMemory({ principal: ports.principal }, params.memoryId)));
    },
  }),
  route({
    id: "changeMemory",
    method: "patch",
    path: MEMORY,
    tag: "memories",
    summary: "Change a memory",
    description:
      "Absent fields stay. `null` removes a field. The log keeps the previous state. Members can change memories about themselves, except `session` and `sequence`.",
    params: memoryParams,
    body: memoryChange.meta({ example: { content: "Ann prefers aisle seats.", ifVersion: 1 } }),
    answers: ok("The memory.", memory),
    errors: ["FORBIDDEN", "CONFLICT"],
    handle: async ({ params, body }, ports) => {
      const agent = await agentOf(ports, params);
      return json(unwrap(await agent.updateMemory(writerOf(ports.principal), params.memoryId, body)));
    },
  }),
  route({
    id: "deleteMemory",
    method: "delete",
    path: MEMORY,
    tag: "memories",
    summary: "Erase a memory",
    description:
      "Erases the memory and its log. Readers and searches lose it at once. Copies in D1, R2 and Vectorize are erased later. Members can erase memories about themselves.",
    params: memoryParams,
    answers: [{ status: 204, description: "The memory is gone." }],
    errors: ["FORBIDDEN"],
    handle: async ({ params }, ports) => {
      const agent = await agentOf(ports, params);
      unwrap(await agent.deleteMemory(writerOf(ports.principal), params.memoryId));
      return empty();
    },
  }),
  route({
    id: "archiveMemory",
    method: "post",
    path: `${MEMORY}/archive`,
    tag: "memories",
    summary: "Archive a memory",
    description:
      "Moves its text to the archive and excludes it from search. It can still be read. Repeating the request is a no-op.",
    params: memoryParams,
    answers: ok("The memory.", memory),
    errors: ["FORBIDDEN", "CONFLICT"],
    handle: async ({ params }, ports) => {
      const agent = await agentOf(ports, params);
      return json(unwrap(await agent.archiveMemory(writerOf(ports.principal), params.memoryId)));
    },
  }),
  route({
    id: "whyMemory",
    method: "get",
    path: `${MEMORY}/why`,
    tag: "memories",
    summary: "Explain a memory",
    description:
      "The turns that it comes from, the memories that it was made of, and the log of its changes.",
    params: memoryParams,
    answers: ok("The memory with its origin.", memoryWhy),
    handle: async ({ params }, ports) => {
      const agent = await agentOf(ports, params);
      return json(unwrap(await agent.whyMemory({ principal: ports.principal }, params.memoryId)));
    },
  }),
  route({
    id: "getMemoryStatus",
    method: "get",
    path: STATUS,
    tag: "memories",
    summary: "Read the state of an agent's memory",
    description:
      "For authors, operators and administrators. The number of memories, and the pending updates of the external stores.",
    params: agentParams,
    answers: ok("The state.", memoryStatus),
    errors: ["FORBIDDEN"],
    permit: ({ principal }) => requireAll(principal, "read the state of an agent's memory"),
    handle: async ({ params }, ports) => json(unwrap(await (await agentOf(ports, params)).memoryStatus())),
  }),
];

/** Asks agents at once, and merges their results by relevance (MEMHTTP-3). */
async function searchAgents(
  clock: Pick<Clock, "timer">,
  agents: readonly string[],
  search: (id: string) => Promise<MemorySearchResult>,
  limit = DEFAULT_RESULTS,
): Promise<AgentsSearchResult> {
  const failed: AgentsSearchResult["failed"] = [];
  const answers = await Promise.all(
    agents.map(async (agentId) => {
      const reason = unanswered(`The agent "${agentId}"`, SEARCH_PART_MS);
      try {
        return await withDeadline(clock, SEARCH_PART_MS, () => search(agentId), { reason });
      } catch (error) {
        if (!(error instanceof DramatisError)) console.error(`The memories of ${agentId}:`, error);
        const { code, message } = toErrorData(error);
        failed.push({ agentId, code, message });
        return undefined;
      }
    }),
  );
  const found = answers.filter((answer) => answer !== undefined);
  const kinds = new Set(found.map(({ semantic }) => semantic));
  return {
    matches: found
      .flatMap(({ matches }) => matches)
      .toSorted((a, b) => b.score.relevance - a.score.relevance || b.score.total - a.score.total)
      .slice(0, limit),
    semantic: kinds.size === 1 ? ([...kinds][0] ?? "none") : kinds.size === 0 ? "none" : "some",
    failed: failed.toSorted((a, b) => agents.indexOf(a.agentId) - agents.indexOf(b.agentId)),
  };
}

function agentOf({ principal, actors }: RequestVariables, { id }: { id: string }): Promise<AgentApi> {
  return actors.agent(principal.tenant, id);
}

function writerOf(principal: Principal): MemoryWriter {
  return { reader: { principal }, author: { kind: "principal", subject: principal.subject } };
}

/** Throws `FORBIDDEN` for a principal who does not see the memories of all users. */
function requireAll(principal: Principal, what: string): void {
  if (mayAuthor(principal) || mayReadAll(principal)) return;
  throw forbidden(`Only authors, operators and administrators may ${what}.`);
}
