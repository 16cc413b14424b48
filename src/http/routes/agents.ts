/** `/api/agents`: who can be talked to. Reading is open to the tenant, writing to authors. */
import { z } from "zod";
import { idSchema } from "../../library/reference.ts";
import { parsePersonaSource } from "../../library/resolve.ts";
import type { CreateAgent } from "../../protocol/agent-api.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import { isChosenId } from "../../shared/identifiers.ts";
import { mayAuthor, mayReadAll, type Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import { readJson } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { pageOptions, pageSchema } from "../base/query.ts";
import { json, notFound, page, refuseOtherMethods } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS } from "../openapi/operation.ts";
import { ids } from "../openapi/scalars.ts";
import { agentUsage } from "../openapi/usage-views.ts";
import { agent, listOf, personaSource } from "../openapi/views.ts";
import { seeded } from "./seeding.ts";

/** An agent is one row of its actor and one of the directory, and a row holds less than 2 MB. */
const MAX_AGENT_BYTES = 512 * 1024;
const GENERATED_CHARACTERS = "0123456789abcdefghjkmnpqrstvwxyz";

const projectIds = z.exactOptional(
  z.array(idSchema).min(1, "Name at least one project, or leave the field out.").max(100),
);
const createSchema = z.strictObject({ id: z.exactOptional(idSchema), persona: z.unknown(), projectIds });
const changeSchema = z
  .strictObject({ persona: z.exactOptional(z.unknown()), projectIds })
  .refine((change) => Object.keys(change).length > 0, "Give `persona` or `projectIds`.");

const EXAMPLE = { id: "guide", persona: { identity: { systemPrompt: "You are a friendly guide." } } };
const params = z.object({ id: ids.agent });

export const agentOperations: readonly ApiOperation[] = [
  {
    id: "createAgent",
    method: "post",
    path: "/api/agents",
    tag: "agents",
    summary: "Create an agent",
    description:
      "For authors and administrators. Without an `id` it gets one; without `projectIds`, the project `default`.",
    body: createSchema.extend({ persona: personaSource }).meta({ example: EXAMPLE }),
    answers: [{ status: 201, description: "The agent.", body: agent, location: true }],
    errors: [...BODY_ERRORS, "FORBIDDEN", "CONFLICT"],
  },
  {
    id: "listAgents",
    method: "get",
    path: "/api/agents",
    tag: "agents",
    summary: "List the tenant's agents",
    query: pageSchema,
    answers: [{ status: 200, description: "One page.", body: listOf("agents", agent) }],
    errors: ["INVALID_INPUT"],
  },
  {
    id: "getAgent",
    method: "get",
    path: "/api/agents/:id",
    tag: "agents",
    summary: "Read an agent",
    params,
    answers: [{ status: 200, description: "The agent.", body: agent }],
    errors: ["NOT_FOUND"],
  },
  {
    id: "changeAgent",
    method: "patch",
    path: "/api/agents/:id",
    tag: "agents",
    summary: "Change an agent's persona or projects",
    description:
      "For authors and administrators. Give at least one field. Conversations that exist keep what they began with.",
    params,
    body: changeSchema
      .safeExtend({ persona: z.exactOptional(personaSource) })
      .meta({ example: { persona: "demo/assistant" } }),
    answers: [{ status: 200, description: "The agent.", body: agent }],
    errors: [...BODY_ERRORS, "FORBIDDEN", "NOT_FOUND"],
  },
  {
    id: "getAgentUsage",
    method: "get",
    path: "/api/agents/:id/usage",
    tag: "agents",
    summary: "Read what an agent used",
    description:
      "For authors, operators and administrators. The sum over the agent's conversations, each as it was when its last turns were over.",
    params,
    answers: [{ status: 200, description: "Tokens, calls and cost.", body: agentUsage }],
    errors: ["FORBIDDEN", "NOT_FOUND"],
  },
];

export function agentRoutes(app: HttpRoutes): void {
  app.use("/api/agents/*", seeded);

  app.get("/api/agents", async ({ req, var: { principal, directory } }) =>
    page("agents", await directory().agents(principal.tenant, pageOptions(req.query()))),
  );

  app.post("/api/agents", async ({ req, var: { principal, actors, maxBodyBytes } }) => {
    requireAuthor(principal);
    const body = validate(createSchema, await readJson(req.raw, Math.min(maxBodyBytes, MAX_AGENT_BYTES)));
    const input: CreateAgent = {
      ...body,
      id: body.id ?? generateId(),
      persona: parsePersonaSource(body.persona, "/persona"),
    };
    const agent = await actors.agent(principal.tenant, input.id);
    const identity = unwrap(await agent.create(principal, input));
    return json(identity, 201, `/api/agents/${identity.id}`);
  });
  refuseOtherMethods(app, "/api/agents", ["GET", "POST"]);

  app.get("/api/agents/:id", async ({ req, var: { principal, actors } }) => {
    const id = req.param("id");
    if (!isChosenId(id)) return notFound();
    const agent = await actors.agent(principal.tenant, id);
    return json(unwrap(await agent.identity()));
  });

  app.patch("/api/agents/:id", async ({ req, var: { principal, actors, maxBodyBytes } }) => {
    const id = req.param("id");
    if (!isChosenId(id)) return notFound();
    requireAuthor(principal);
    const { persona, ...change } = validate(
      changeSchema,
      await readJson(req.raw, Math.min(maxBodyBytes, MAX_AGENT_BYTES)),
    );
    const agent = await actors.agent(principal.tenant, id);
    const changed = await agent.update(principal, {
      ...change,
      ...(persona === undefined ? {} : { persona: parsePersonaSource(persona, "/persona") }),
    });
    return json(unwrap(changed));
  });
  refuseOtherMethods(app, "/api/agents/:id", ["GET", "PATCH"]);

  app.get("/api/agents/:id/usage", async ({ req, var: { principal, actors, directory } }) => {
    const id = req.param("id");
    if (!isChosenId(id)) return notFound();
    if (!mayAuthor(principal) && !mayReadAll(principal)) {
      throw new DramatisError(
        "FORBIDDEN",
        "Only authors, operators and administrators may see what agents use.",
      );
    }
    const agent = await actors.agent(principal.tenant, id);
    unwrap(await agent.identity());
    return json(await directory().usage(principal.tenant, id));
  });
  refuseOtherMethods(app, "/api/agents/:id/usage", ["GET"]);
}

function requireAuthor(principal: Principal): void {
  if (mayAuthor(principal)) return;
  throw new DramatisError("FORBIDDEN", "Only authors and administrators may create and change agents.");
}

function generateId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  return `agent-${Array.from(bytes, (byte) => GENERATED_CHARACTERS.charAt(byte % 32)).join("")}`;
}
