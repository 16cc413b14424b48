/** `/api/agents`: agents of the tenant. Everyone may read them; authors create and change them. */
import { ulid } from "ulid";
import { z } from "zod";
import type { Registry } from "../../library/registry/registry.ts";
import { parsePersonaSource } from "../../library/registry/resolve.ts";
import {
  type AgentIdentity,
  type AgentSummary,
  agentChange,
  MAX_AGENT_BYTES,
  newAgent,
} from "../../protocol/agent-api.ts";
import { checkNew, newAgentId } from "../../protocol/location-policy.ts";
import { ids } from "../../protocol/scalars.ts";
import { agentUsage } from "../../protocol/usage-schemas.ts";
import { defined } from "../../shared/defined.ts";
import { forbidden, hasCode, unwrap } from "../../shared/errors.ts";
import { agentIdSchema } from "../../shared/id-schemas.ts";
import { mayAuthor, mayReadAll, type Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import { pageSchema } from "../base/query.ts";
import { empty, json, page } from "../base/respond.ts";
import { ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { agent, agentSummary, agentView, personaSource } from "../openapi/views.ts";
import { exported, exportOperation, importFile, importOperation } from "./backup.ts";

const AGENTS = "/api/agents";
const AGENT = `${AGENTS}/:id` as const;

const EXAMPLE = { id: "guide", persona: { identity: { systemPrompt: "You are a friendly guide." } } };
const params = z.object({ id: ids.agent });

export const agentRoutes: readonly Route[] = [
  route({
    id: "createAgent",
    method: "post",
    path: AGENTS,
    tag: "agents",
    summary: "Create an agent",
    description:
      "For authors and administrators. An absent `id` is generated; absent `projectIds` are `default` only. The id of an agent in a jurisdiction ends in `_` and its name, as in `guide_eu`.",
    body: newAgent.extend({ persona: personaSource }).meta({ example: EXAMPLE }),
    answers: [{ status: 201, description: "The agent.", body: agent, location: true }],
    errors: ["FORBIDDEN", "CONFLICT"],
    reads: newAgent,
    maxBytes: MAX_AGENT_BYTES,
    permit: ({ principal }) => requireAuthor(principal),
    handle: async ({ body: { jurisdiction, ...body } }, { principal, actors, location }) => {
      const policy = location(principal.tenant);
      const id = newAgentId(defined({ id: body.id, jurisdiction }), policy, randomId);
      const { locationHint = policy.locationHint } = body;
      const persona = parsePersonaSource(body.persona, "/persona");
      const input = { ...body, id, persona, ...defined({ locationHint }) };
      checkNew(id, policy, "/id");
      const agent = await actors.agent(principal.tenant, id, locationHint);
      const identity = unwrap(await agent.create(principal, input));
      return json(identity, 201, `${AGENTS}/${id}`);
    },
  }),
  route({
    id: "listAgents",
    method: "get",
    path: AGENTS,
    tag: "agents",
    summary: "List the tenant's agents",
    query: pageSchema,
    answers: onePage("agents", agentSummary),
    handle: async ({ query }, { principal, directory, libraries, inCode }) => {
      const { items, ...rest } = await directory().agents(principal.tenant, query);
      const { registry } = libraries(principal.tenant);
      const declared = inCode(principal.tenant);
      const offered = items.map(async (agent) => ({
        ...agent,
        ...(await offerOf(registry, agent)),
        ...positionIn(declared, agent),
      }));
      return page("agents", { items: await Promise.all(offered), ...rest });
    },
  }),
  route({
    id: "getAgent",
    method: "get",
    path: AGENT,
    tag: "agents",
    summary: "Read an agent",
    description: "Only authors, operators and administrators see `spent` and `leased`.",
    params,
    answers: ok("The agent, with the state of its budget.", agentView),
    handle: async ({ params: { id } }, { principal, actors, libraries, inCode }) => {
      const agent = await actors.agent(principal.tenant, id);
      const { spent, leased, ...identity } = unwrap(await agent.identity());
      const usage = mayReadUsage(principal) ? defined({ spent, leased }) : {};
      return json({
        ...identity,
        ...usage,
        ...(await offerOf(libraries(principal.tenant).registry, identity)),
        ...positionIn(inCode(principal.tenant), identity),
      });
    },
  }),
  route({
    id: "changeAgent",
    method: "patch",
    path: AGENT,
    tag: "agents",
    summary: "Change an agent's persona, projects, budget or metadata",
    description:
      "For authors and administrators. Give at least one field. Existing conversations keep the persona they began with. A budget applies to conversations that began while the agent had one.",
    params,
    body: agentChange
      .safeExtend({ persona: personaSource.exactOptional() })
      .meta({ example: { persona: "demo/assistant" } }),
    answers: ok("The agent, with the state of its budget.", agentView),
    errors: ["FORBIDDEN"],
    reads: agentChange,
    maxBytes: MAX_AGENT_BYTES,
    permit: ({ principal }) => requireAuthor(principal),
    handle: async ({ params: { id }, body: { persona, ...change } }, { principal, actors }) => {
      const agent = await actors.agent(principal.tenant, id);
      const changed = await agent.update(principal, {
        ...change,
        ...(persona === undefined ? {} : { persona: parsePersonaSource(persona, "/persona") }),
      });
      return json(unwrap(changed));
    },
  }),
  route({
    id: "deleteAgent",
    method: "delete",
    path: AGENT,
    tag: "agents",
    summary: "Delete an agent",
    description:
      "For authors and administrators. Every later request for the agent gets 404. The agent takes no calls and no new conversations. Its memory and the conversations without another agent are removed in the background. Conversations that began with it and have other agents end. It leaves all other conversations. The id is never used again.",
    params,
    answers: [{ status: 204, description: "The agent is deleted." }],
    errors: ["FORBIDDEN"],
    permit: ({ principal }) => requireAuthor(principal),
    handle: async ({ params: { id } }, { principal, actors }) => {
      const agent = await actors.agent(principal.tenant, id);
      unwrap(await agent.remove(principal));
      return empty();
    },
  }),
  route({
    ...exportOperation({
      id: "exportAgent",
      path: `${AGENT}/export`,
      tag: "agents",
      summary: "Export an agent",
      description:
        "For authors and administrators. Lines of JSON: a header, the identity, the memories with their texts, logs and sources, and their number. It has no secrets. Conversations have exports of their own.",
      params,
      errors: ["FORBIDDEN"],
      permit: ({ principal }) => requireAuthor(principal),
    }),
    handle: async ({ params: { id } }, { principal, actors }) => {
      const agent = await actors.agent(principal.tenant, id);
      return exported(unwrap(await agent.exportLines(principal)));
    },
  }),
  route({
    ...importOperation({
      id: "importAgent",
      path: `${AGENTS}/import`,
      tag: "agents",
      summary: "Import an agent",
      description:
        "For authors and administrators. The body is an export of any length, with lines of at most 16 MiB. The agent has a new id, and the identity and the memories of the exported agent. The agent appears after the whole file was accepted. If a line is wrong, the error names it, and the import is discarded.",
      created: agentView,
      idDescription: "The id of the new agent; generated when absent.",
      errors: ["FORBIDDEN", "CONFLICT"],
      permit: ({ principal }) => requireAuthor(principal),
    }),
    handle: async ({ query }, { principal, actors, location }, { req }) => {
      const given = validate(agentIdSchema.optional(), query.id, "/id");
      const id = newAgentId(defined({ id: given }), location(principal.tenant), randomId);
      const agent = await actors.agent(principal.tenant, id);
      await importFile(req.raw, async (part) => unwrap(await agent.importLines(principal, part)));
      return json(unwrap(await agent.identity()), 201, `${AGENTS}/${id}`);
    },
  }),
  route({
    id: "getAgentUsage",
    method: "get",
    path: `${AGENT}/usage`,
    tag: "agents",
    summary: "Read an agent's usage",
    description:
      "For authors, operators and administrators. The sum over the agent's conversations, each as of the last time that it had no active turn.",
    params,
    answers: ok("Tokens, calls and cost.", agentUsage),
    errors: ["FORBIDDEN"],
    permit: ({ principal }) => {
      if (!mayReadUsage(principal))
        throw forbidden("Only authors, operators and administrators may read usage.");
    },
    handle: async ({ params: { id } }, { principal, actors, directory }) => {
      const agent = await actors.agent(principal.tenant, id);
      unwrap(await agent.identity());
      return json(await directory().usage(principal.tenant, id));
    },
  }),
];

/** Returns what the persona of an agent tells its users. Empty while the database of the persona does not answer. */
export async function offerOf(
  registry: Registry,
  { persona }: AgentIdentity,
): Promise<Pick<AgentSummary, "name" | "description" | "examples" | "personaMissing">> {
  try {
    const found = "identity" in persona ? persona : (await registry.find("persona", persona)).definition;
    const { name, description, examples } = found;
    return defined({ name, description, examples });
  } catch (error) {
    return hasCode(error, "NOT_FOUND") ? { personaMissing: true } : {};
  }
}

function positionIn(declared: readonly string[], { id }: AgentIdentity): Pick<AgentSummary, "codePosition"> {
  const position = declared.indexOf(id);
  return position < 0 ? {} : { codePosition: position };
}

function mayReadUsage(principal: Principal): boolean {
  return mayAuthor(principal) || mayReadAll(principal);
}

function requireAuthor(principal: Principal): void {
  if (mayAuthor(principal)) return;
  throw forbidden("Only authors and administrators may create and change agents.");
}

/** The last ten characters of a ULID are random. */
function randomId(): string {
  return `agent-${ulid().slice(-10).toLowerCase()}`;
}
