/** `/api/conversations`: creating and reading conversations, their messages and their journal. */
import { ulid } from "ulid";
import { z } from "zod";
import { historySchema } from "../../agents/conversation/door/seed-history.ts";
import { idSchema } from "../../library/reference.ts";
import type { ActorLookup, ConversationActor } from "../../protocol/actor-lookup.ts";
import type { CreateConversation } from "../../protocol/conversation-api.ts";
import { DramatisError, unwrap } from "../../shared/errors.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import type { Principal } from "../../shared/principal.ts";
import { validate } from "../../shared/validation.ts";
import { readJson } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { pageOptions, pageSchema } from "../base/query.ts";
import { json, page, refuseOtherMethods } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS } from "../openapi/operation.ts";
import { ids } from "../openapi/scalars.ts";
import { conversation, conversationSummary, journalEntry, listOf, message } from "../openapi/views.ts";
import { seeded } from "./seeding.ts";

const MAX_PARTICIPANTS = 100;

const createSchema = z.strictObject({
  agentId: z.exactOptional(idSchema),
  participants: z.exactOptional(
    z
      .array(
        z.discriminatedUnion("type", [
          z.strictObject({ type: z.literal("agent"), id: idSchema }),
          z.strictObject({ type: z.literal("user"), id: z.string().min(1).max(200) }),
        ]),
      )
      .max(MAX_PARTICIPANTS),
  ),
  title: z.exactOptional(z.string().min(1).max(200)),
  projectId: z.exactOptional(idSchema),
  history: historySchema.exactOptional().meta({
    description:
      "What was said elsewhere before: the model sees it, the transcript does not show it. At most 1 MiB. A call is followed by its result, with the call's id in `toolCallId`.",
  }),
});

const params = z.object({ id: ids.conversation });

export const conversationOperations: readonly ApiOperation[] = [
  {
    id: "createConversation",
    method: "post",
    path: "/api/conversations",
    tag: "conversations",
    summary: "Begin a conversation with an agent",
    description:
      "Give `agentId`, or `participants` with one agent and the users who may take part beside the caller. What the agent is now, the conversation keeps. With `history` it goes on from what was said elsewhere.",
    body: createSchema.meta({ example: { agentId: "assistant", title: "Numbers" } }),
    answers: [{ status: 201, description: "The conversation.", body: conversation, location: true }],
    errors: [...BODY_ERRORS, "NOT_FOUND"],
  },
  {
    id: "listConversations",
    method: "get",
    path: "/api/conversations",
    tag: "conversations",
    summary: "List conversations",
    description: "Those that the caller takes part in; for operators and administrators all of the tenant.",
    query: pageSchema,
    answers: [{ status: 200, description: "One page.", body: listOf("conversations", conversationSummary) }],
    errors: ["INVALID_INPUT"],
  },
  {
    id: "getConversation",
    method: "get",
    path: "/api/conversations/:id",
    tag: "conversations",
    summary: "Read a conversation",
    params,
    answers: [{ status: 200, description: "The conversation.", body: conversation }],
    errors: ["NOT_FOUND"],
  },
  {
    id: "listMessages",
    method: "get",
    path: "/api/conversations/:id/messages",
    tag: "conversations",
    summary: "List messages",
    params,
    query: pageSchema,
    answers: [{ status: 200, description: "One page.", body: listOf("messages", message) }],
    errors: ["NOT_FOUND", "INVALID_INPUT"],
  },
  {
    id: "listJournal",
    method: "get",
    path: "/api/conversations/:id/journal",
    tag: "conversations",
    summary: "List every durable fact by its number",
    params,
    query: pageSchema,
    answers: [{ status: 200, description: "One page.", body: listOf("entries", journalEntry) }],
    errors: ["NOT_FOUND", "INVALID_INPUT"],
  },
];

export function conversationRoutes(app: HttpRoutes): void {
  app.get("/api/conversations", async ({ req, var: { principal, directory } }) =>
    page("conversations", await directory().conversations(principal, pageOptions(req.query()))),
  );

  app.post("/api/conversations", seeded, async ({ req, var: { principal, actors, maxBodyBytes } }) => {
    const { agentId, participants, ...options } = validate(
      createSchema,
      await readJson(req.raw, maxBodyBytes),
    );
    const input: CreateConversation = {
      ...options,
      id: `conv_${ulid()}`,
      agentId: theAgent(agentId, participants),
      users: otherUsers(principal, participants),
    };
    const conversation = await actors.conversation(principal.tenant, input.id);
    const view = unwrap(await conversation.create(principal, input));
    return json(view, 201, `/api/conversations/${view.id}`);
  });
  refuseOtherMethods(app, "/api/conversations", ["GET", "POST"]);

  app.get("/api/conversations/:id", async ({ req, var: { principal, actors } }) => {
    const conversation = await findConversation(actors, principal, req.param("id"));
    return json(unwrap(await conversation.view(principal)));
  });
  refuseOtherMethods(app, "/api/conversations/:id", ["GET"]);

  app.get("/api/conversations/:id/messages", async ({ req, var: { principal, actors } }) => {
    const options = pageOptions(req.query());
    const conversation = await findConversation(actors, principal, req.param("id"));
    return page("messages", unwrap(await conversation.messages(principal, options)));
  });
  refuseOtherMethods(app, "/api/conversations/:id/messages", ["GET"]);

  app.get("/api/conversations/:id/journal", async ({ req, var: { principal, actors } }) => {
    const options = pageOptions(req.query());
    const conversation = await findConversation(actors, principal, req.param("id"));
    return page("entries", unwrap(await conversation.journal(principal, options)));
  });
  refuseOtherMethods(app, "/api/conversations/:id/journal", ["GET"]);
}

/** The actor of a conversation; `NOT_FOUND` for an id that none can have. */
export async function findConversation(
  actors: ActorLookup,
  principal: Principal,
  id: string,
): Promise<ConversationActor> {
  if (!isConversationId(id)) throw new DramatisError("NOT_FOUND", `There is no conversation "${id}".`);
  return actors.conversation(principal.tenant, id);
}

type Participants = readonly { type: "user" | "agent"; id: string }[];

function theAgent(agentId: string | undefined, participants: Participants | undefined): string {
  if (agentId !== undefined && participants !== undefined) {
    throw invalid("/agentId", "Give `agentId` or `participants`, not both.");
  }
  if (agentId !== undefined) return agentId;
  if (participants === undefined) throw invalid("/agentId", "Say which agent to talk to.");
  const [agent, ...more] = participants.filter(({ type }) => type === "agent");
  if (agent === undefined) throw invalid("/participants", "Must have an agent.");
  if (more.length > 0) throw invalid("/participants", "A conversation has exactly one agent for now.");
  return agent.id;
}

/** Users named beside the creator, who takes part anyway; each once. */
function otherUsers(principal: Principal, participants: Participants = []): string[] {
  const users = participants.flatMap(({ type, id }) => (type === "user" ? [id] : []));
  return [...new Set(users)].filter((user) => user !== principal.subject);
}

function invalid(path: string, message: string): DramatisError {
  return new DramatisError("INVALID_INPUT", message, { errors: [{ path, message }] });
}
