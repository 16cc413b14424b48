/**
 * `/api/agents/:id/memories`: the memory of an agent, and searches over several agents.
 *
 * MEMHTTP-1  What belongs to another tenant, or to another user where a member asks, is answered as what does not exist.
 * MEMHTTP-2  A batch is written as a whole, or not at all.
 * MEMHTTP-3  A search over several agents has the results of those that answer in time, and names the others.
 */
import type { Context } from "hono";
import { z } from "zod";
import type { Clock } from "../../ports/clock.ts";
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import type { AgentApi } from "../../protocol/agent-api.ts";
import type { AgentsSearchResult, MemorySearchResult, MemoryWriter } from "../../protocol/memory.ts";
import { DramatisError, toErrorData, unwrap } from "../../shared/errors.ts";
import { mayAuthor, mayReadAll, type Principal } from "../../shared/principal.ts";
import { readBody } from "../base/body.ts";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { pathParams } from "../base/query.ts";
import { empty, json, page } from "../base/respond.ts";
import {
  agentsSearchOptions,
  changeSchema,
  checkedSizes,
  inputsOf,
  listOptions,
  querySchema,
  searchOptions,
} from "./memory-bodies.ts";
import {
  agentParams,
  MEMORIES,
  MEMORY,
  memoryParams,
  SEARCH,
  SEARCH_AGENTS,
  STATUS,
} from "./memory-operations.ts";

/** Milliseconds in which an agent of a search over several must answer. */
const SEARCH_PART_MS = 10_000;

/** Results of a search over several agents whose query has no limit. */
const DEFAULT_RESULTS = 10;

export function memoryRoutes(app: HttpRoutes): void {
  app.get(SEARCH_AGENTS, async ({ req, var: { principal, actors, clock } }) => {
    requireAll(principal, "search the memories of several agents");
    const { agents, query } = agentsSearchOptions(req.queries());
    const search = async (id: string) => {
      const agent = await actors.agent(principal.tenant, id);
      return unwrap(await agent.searchMemories({ principal }, query));
    };
    return json(await searchAgents(clock, agents, search, query.limit));
  });

  app.post(MEMORIES, async (context) => {
    requireAll(context.var.principal, "write memories");
    const { id, agent, writer } = await agentOf(context);
    const body = await readBody(context, z.unknown());
    const { inputs, isBatch } = inputsOf(body, context.req.header("idempotency-key"));
    const written = unwrap(await agent.writeMemories(writer, inputs));
    const [memory] = written;
    if (isBatch || memory === undefined) return json({ memories: written }, 201);
    return json(memory, 201, `/api/agents/${id}/memories/${memory.id}`);
  });

  app.get(MEMORIES, async (context) => {
    const { agent, writer } = await agentOf(context);
    const options = listOptions(context.req.queries());
    return page("memories", unwrap(await agent.listMemories(writer.reader, options)));
  });

  app.get(SEARCH, async (context) => {
    const { agent, writer } = await agentOf(context);
    const query = searchOptions(context.req.queries());
    return json(unwrap(await agent.searchMemories(writer.reader, query)));
  });

  app.post(SEARCH, async (context) => {
    const { agent, writer } = await agentOf(context);
    const query = await readBody(context, querySchema);
    return json(unwrap(await agent.searchMemories(writer.reader, query)));
  });

  app.get(MEMORY, async (context) => {
    const { agent, writer, memoryId } = await memoryOf(context);
    return json(unwrap(await agent.readMemory(writer.reader, memoryId)));
  });

  app.patch(MEMORY, async (context) => {
    const { agent, writer, memoryId } = await memoryOf(context);
    const change = checkedSizes(await readBody(context, changeSchema));
    return json(unwrap(await agent.updateMemory(writer, memoryId, change)));
  });

  app.delete(MEMORY, async (context) => {
    const { agent, writer, memoryId } = await memoryOf(context);
    unwrap(await agent.deleteMemory(writer, memoryId));
    return empty();
  });

  app.post(`${MEMORY}/archive`, async (context) => {
    const { agent, writer, memoryId } = await memoryOf(context);
    return json(unwrap(await agent.archiveMemory(writer, memoryId)));
  });

  app.get(`${MEMORY}/why`, async (context) => {
    const { agent, writer, memoryId } = await memoryOf(context);
    return json(unwrap(await agent.whyMemory(writer.reader, memoryId)));
  });

  app.get(STATUS, async (context) => {
    requireAll(context.var.principal, "read the state of an agent's memory");
    const { agent } = await agentOf(context);
    return json(unwrap(await agent.memoryStatus()));
  });
}

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

/** Returns the agent of the path, and the principal's rights. Throws `NOT_FOUND` for an id that cannot exist. */
async function agentOf({
  req,
  var: { principal, actors },
}: Context<HttpEnv>): Promise<{ id: string; agent: AgentApi; writer: MemoryWriter }> {
  const { id } = pathParams(agentParams, req);
  const writer: MemoryWriter = {
    reader: { principal },
    author: { kind: "principal", subject: principal.subject },
  };
  return { id, agent: await actors.agent(principal.tenant, id), writer };
}

/** As `agentOf`, with the memory's id. */
async function memoryOf(context: Context<HttpEnv>) {
  const { memoryId } = pathParams(memoryParams, context.req);
  return { ...(await agentOf(context)), memoryId };
}

/** Throws `FORBIDDEN` for a principal who does not see the memories of all users. */
function requireAll(principal: Principal, what: string): void {
  if (mayAuthor(principal) || mayReadAll(principal)) return;
  throw new DramatisError("FORBIDDEN", `Only authors, operators and administrators may ${what}.`);
}
