/** The descriptions of the routes of `memories.ts`. */
import { z } from "zod";
import { ids } from "../../protocol/scalars.ts";
import {
  agentsSearchResult,
  memories,
  memory,
  memoryId,
  memoryStatus,
  memoryWhy,
  searchResult,
} from "../openapi/memory-views.ts";
import { type ApiOperation, BODY_ERRORS, ok, onePage } from "../openapi/operation.ts";
import {
  agentsSearchParams,
  changeSchema,
  listParams,
  querySchema,
  searchParams,
  writeHeaders,
  writeSchema,
} from "./memory-bodies.ts";

const AGENT = "/api/agents/:id";
export const MEMORIES = `${AGENT}/memories` as const;
export const SEARCH = `${MEMORIES}/search` as const;
export const MEMORY = `${MEMORIES}/:memoryId` as const;
export const STATUS = `${AGENT}/memory` as const;
export const SEARCH_AGENTS = "/api/memories/search";

export const agentParams = z.object({ id: ids.agent });
export const memoryParams = agentParams.extend({ memoryId });

const WHOSE =
  "Authors, operators and administrators see all memories of the agent, a member those whose subject is that member.";

export const memoryOperations: readonly ApiOperation[] = [
  {
    id: "writeMemories",
    method: "post",
    path: MEMORIES,
    tag: "memories",
    summary: "Write a memory, or up to 100",
    description:
      "For authors, operators and administrators. Searches find it when the answer is there. `{memories: […]}` writes all or none, and answers `{memories}`, without `Location`.",
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
    errors: [...BODY_ERRORS, "FORBIDDEN", "NOT_FOUND", "CONFLICT", "IDEMPOTENCY_CONFLICT"],
  },
  {
    id: "listMemories",
    method: "get",
    path: MEMORIES,
    tag: "memories",
    summary: "List memories",
    description: WHOSE,
    params: agentParams,
    query: listParams,
    answers: onePage("memories", memory),
    errors: ["INVALID_INPUT", "NOT_FOUND"],
  },
  {
    id: "searchMemories",
    method: "get",
    path: SEARCH,
    tag: "memories",
    summary: "Search memories",
    description: `Finds current memories by meaning and by words, the best first, and explains the place of each; a member gets no parts of scores. ${WHOSE}`,
    params: agentParams,
    query: searchParams,
    answers: ok("The results.", searchResult),
    errors: ["INVALID_INPUT", "NOT_FOUND"],
  },
  {
    id: "searchMemoriesByBody",
    method: "post",
    path: SEARCH,
    tag: "memories",
    summary: "Search memories, with weights or a long query",
    description: "As the `GET`. The weights replace those of the agent's persona. Changes nothing.",
    params: agentParams,
    body: querySchema,
    answers: ok("The results.", searchResult),
    errors: [...BODY_ERRORS, "NOT_FOUND"],
  },
  {
    id: "searchMemoriesOfAgents",
    method: "get",
    path: SEARCH_AGENTS,
    tag: "memories",
    summary: "Search the memories of several agents",
    description:
      "For authors, operators and administrators. Asks up to 20 agents at once. An agent that does not answer, or does not exist, is in `failed`, and the others answer.",
    query: agentsSearchParams,
    answers: ok("The results of all of them, by relevance.", agentsSearchResult),
    errors: ["INVALID_INPUT", "FORBIDDEN"],
  },
  {
    id: "getMemory",
    method: "get",
    path: MEMORY,
    tag: "memories",
    summary: "Read a memory",
    description: "Returns all of its text.",
    params: memoryParams,
    answers: ok("The memory.", memory),
    errors: ["NOT_FOUND"],
  },
  {
    id: "changeMemory",
    method: "patch",
    path: MEMORY,
    tag: "memories",
    summary: "Change a memory",
    description:
      "Absent fields stay; `null` removes. What it was before stays in its log. A member changes memories whose subject is that member, but not their `session` and `sequence`.",
    params: memoryParams,
    body: changeSchema,
    answers: ok("The memory.", memory),
    errors: [...BODY_ERRORS, "FORBIDDEN", "NOT_FOUND", "CONFLICT"],
  },
  {
    id: "deleteMemory",
    method: "delete",
    path: MEMORY,
    tag: "memories",
    summary: "Erase a memory",
    description:
      "Erases the memory and its log. It is gone for readers and searches at once; copies in D1, R2 and Vectorize follow. A member erases memories whose subject is that member.",
    params: memoryParams,
    answers: [{ status: 204, description: "The memory is gone." }],
    errors: ["FORBIDDEN", "NOT_FOUND"],
  },
  {
    id: "archiveMemory",
    method: "post",
    path: `${MEMORY}/archive`,
    tag: "memories",
    summary: "Archive a memory",
    description:
      "Moves its text to the archive and out of search. It can still be read. To archive it again changes nothing.",
    params: memoryParams,
    answers: ok("The memory.", memory),
    errors: ["FORBIDDEN", "NOT_FOUND", "CONFLICT"],
  },
  {
    id: "whyMemory",
    method: "get",
    path: `${MEMORY}/why`,
    tag: "memories",
    summary: "Explain a memory",
    description:
      "The turns that it comes from, the memories that it was made of, and the log of its changes.",
    params: memoryParams,
    answers: ok("The memory with its origin.", memoryWhy),
    errors: ["NOT_FOUND"],
  },
  {
    id: "getMemoryStatus",
    method: "get",
    path: STATUS,
    tag: "memories",
    summary: "Read the state of an agent's memory",
    description:
      "For authors, operators and administrators. How many memories there are, and what the stores around the agent do not have yet.",
    params: agentParams,
    answers: ok("The state.", memoryStatus),
    errors: ["FORBIDDEN", "NOT_FOUND"],
  },
];
