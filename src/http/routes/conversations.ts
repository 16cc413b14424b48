/** `/api/conversations`: creates conversations, and reads them with their messages and their journal. */

import { ulid } from "ulid";
import { z } from "zod";
import type { ConversationActor } from "../../protocol/actor-lookup.ts";
import { budgetSchema } from "../../protocol/budget.ts";
import {
  conversation,
  conversationSummary,
  journalEntry,
  message,
  turnOrderSchema,
} from "../../protocol/conversation-schemas.ts";
import { historySchema } from "../../protocol/history.ts";
import { ENTRY_TYPES } from "../../protocol/journal.ts";
import { entryTypesOf } from "../../protocol/journal-names.ts";
import { checkNew, locationFields, newConversationIdOf } from "../../protocol/location-policy.ts";
import { type Participant, participantSchema } from "../../protocol/participants.ts";
import { stopFields } from "../../protocol/requests.ts";
import { ids } from "../../protocol/scalars.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { agentIdSchema, definitionIdSchema } from "../../shared/id-schemas.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import { listIds } from "../../shared/known-ids.ts";
import { checkMayImport } from "../../shared/principal.ts";
import type { HttpEnv } from "../base/context.ts";
import { pageSchema } from "../base/query.ts";
import { empty, json, noConversation, page } from "../base/respond.ts";
import { BODY_ERRORS, ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { exported, exportOperation, importFile, importOperation } from "./backup.ts";

const CONVERSATIONS = "/api/conversations";
/** The path of a conversation. */
export const CONVERSATION = `${CONVERSATIONS}/:id` as const;
const MAX_PARTICIPANTS = 100;
/** Types of entries in one query. */
const MAX_TYPES = 50;

/** A type of an entry, or a name of the designs (NAMES-1). */
const entryName = z.string().transform((name, context) => {
  const types = entryTypesOf(name);
  if (types !== undefined) return types;
  const known = listIds(name, ENTRY_TYPES);
  context.addIssue(`Unknown type of an entry: ${JSON.stringify(name)}. Types are: ${known}.`);
  return z.NEVER;
});

const journalQuery = pageSchema.extend({
  type: z.exactOptional(
    z
      .string()
      .max(1_000)
      .refine((names) => names.split(",").length <= MAX_TYPES, `Give at most ${MAX_TYPES} types.`)
      .transform((names) => names.split(","))
      .pipe(z.array(entryName))
      .transform((types) => [...new Set(types.flat())])
      .meta({
        description:
          "Entries of these types only: names, separated by commas. Names of events and decisions from the designs are accepted.",
        example: "tool.completed,tool.failed",
      }),
  ),
});

const createSchema = z
  .strictObject({
    agentId: z.exactOptional(agentIdSchema),
    participants: z.exactOptional(z.array(participantSchema).max(MAX_PARTICIPANTS)),
    title: z.exactOptional(z.string().min(1).max(200)),
    projectId: z.exactOptional(definitionIdSchema),
    turns: z.exactOptional(turnOrderSchema),
    orchestration: z.boolean().exactOptional().meta({
      description: "`false`: messages are recorded, and no model answers them. Default: `true`.",
    }),
    budget: budgetSchema.exactOptional().meta({ description: "Limits of all turns together." }),
    ...locationFields,
    history: historySchema.exactOptional().meta({
      description:
        "Earlier messages from elsewhere. The model sees them; the transcript does not show them. At most 1 MiB. Each call must be followed by its result, with the call's id in `toolCallId`.",
    }),
  })
  .refine(({ agentId, participants }) => (agentId === undefined) !== (participants === undefined), {
    path: ["agentId"],
    message: "Give `agentId` or `participants`, one of them.",
  })
  .refine(
    ({ agentId, participants }) =>
      agentId !== undefined || participants === undefined || idsOf("agent", participants).length === 1,
    { path: ["participants"], message: "Must contain exactly one agent." },
  );

const updateSchema = z
  .strictObject({
    turns: turnOrderSchema.exactOptional().meta({
      description:
        "`parallel`: at the same time. `queued`: one after another. `interrupt`: a new message stops the active turns.",
    }),
    orchestration: z.boolean().exactOptional().meta({
      description: "`false`: messages are recorded, and no model answers them. Active turns continue.",
    }),
    budget: budgetSchema.nullable().exactOptional().meta({
      description: "Replaces the limits of the conversation; null removes them.",
    }),
  })
  .refine((changes) => Object.keys(changes).length > 0, "Give `turns`, `orchestration` or `budget`.");

export const conversationParams = z.object({ id: ids.conversation });
const entryParams = z.object({
  id: ids.conversation,
  eventId: z.string().meta({ description: "The id of a message, or of an operation." }),
});

/** The body of a request to stop or to resume. */
export const stopSchema = z
  .strictObject({
    reason: stopFields.reason.meta({ description: "Kept in the journal. At most 500 characters." }),
  })
  .meta({ example: { reason: "Wrong question." } });

export const conversationRoutes: readonly Route[] = [
  route(
    {
      id: "createConversation",
      method: "post",
      path: CONVERSATIONS,
      tag: "conversations",
      summary: "Create a conversation with an agent",
      description:
        "Give `agentId`, or `participants` with one agent and further users. The caller always takes part. A participant's `userId` or `agentId` is accepted for `id`. Later changes of the agent do not affect the conversation. With `history` it continues a conversation from elsewhere. Without `jurisdiction` it lives in its agent's jurisdiction, if the agent has one.",
      body: createSchema.meta({ example: { agentId: "assistant", title: "Numbers" } }),
      answers: [{ status: 201, description: "The conversation.", body: conversation, location: true }],
      errors: [...BODY_ERRORS, "NOT_FOUND"],
    },
    async ({ body: { participants = [], jurisdiction, ...body } }, { principal, actors, location }) => {
      // The schema requires one of the two.
      const agentId = body.agentId ?? idsOf("agent", participants)[0] ?? "";
      const users = new Set(idsOf("user", participants));
      users.delete(principal.subject);
      const policy = location(principal.tenant);
      const id = newConversationIdOf(`conv_${ulid()}`, agentId, defined({ jurisdiction }), policy);
      const { locationHint = policy.locationHint } = body;
      const input = { ...body, id, agentId, users: [...users], ...defined({ locationHint }) };
      checkNew(id, policy, "/jurisdiction");
      const conversation = await actors.conversation(principal.tenant, id, locationHint);
      const view = unwrap(await conversation.create(principal, input));
      return json(view, 201, `${CONVERSATIONS}/${id}`);
    },
  ),
  route(
    {
      id: "listConversations",
      method: "get",
      path: CONVERSATIONS,
      tag: "conversations",
      summary: "List conversations",
      description:
        "The conversations of the caller. For operators and administrators, all conversations of the tenant.",
      query: pageSchema,
      answers: onePage("conversations", conversationSummary),
      errors: ["INVALID_INPUT"],
    },
    async ({ query }, { principal, directory }) =>
      page("conversations", await directory().conversations(principal, query)),
  ),
  route(
    {
      id: "getConversation",
      method: "get",
      path: CONVERSATION,
      tag: "conversations",
      summary: "Read a conversation",
      params: conversationParams,
      answers: ok("The conversation.", conversation),
      errors: ["NOT_FOUND"],
    },
    async ({ params }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).view(ports.principal))),
  ),
  route(
    {
      id: "updateConversation",
      method: "patch",
      path: CONVERSATION,
      tag: "conversations",
      summary: "Change the order of overlapping turns, or the budget",
      description:
        "A budget includes the conversation's earlier usage. A turn fails at once if its model call no longer fits the budget.",
      params: conversationParams,
      body: updateSchema.meta({ example: { turns: "queued", budget: { tokens: 100_000 } } }),
      answers: ok("The conversation.", conversation),
      errors: [...BODY_ERRORS, "FORBIDDEN", "NOT_FOUND", "CONVERSATION_CLOSED"],
    },
    async ({ params, body }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).update(ports.principal, body))),
  ),
  route(
    {
      id: "deleteConversation",
      method: "delete",
      path: CONVERSATION,
      tag: "conversations",
      summary: "Delete a conversation",
      description:
        "For its participants, operators and administrators. Its active turns stop, and every later request for it gets 404. The deletion also covers its messages, attachments, list entries, the conversations of its agent calls, and knowledge that its agents learned only from it. It runs in the background and survives outages of a store. The id is never used again.",
      params: conversationParams,
      answers: [{ status: 204, description: "The conversation is deleted." }],
      errors: ["FORBIDDEN", "NOT_FOUND"],
    },
    async ({ params }, ports) => {
      unwrap(await (await findConversation(ports, params.id)).remove(ports.principal));
      return empty();
    },
  ),
  route(
    exportOperation({
      id: "exportConversation",
      path: `${CONVERSATION}/export`,
      tag: "conversations",
      summary: "Export a conversation",
      description:
        "For principals that may delete it. Lines of JSON: a header, the record with the versions of its agents, the journal, turns, events, keys and attachments, and their number. It has no secrets. `CONFLICT`, retriable, while work is in progress.",
      params: conversationParams,
      errors: ["FORBIDDEN", "NOT_FOUND", "CONFLICT"],
    }),
    async ({ params }, ports) =>
      exported(unwrap(await (await findConversation(ports, params.id)).exportLines(ports.principal))),
  ),
  route(
    importOperation({
      id: "importConversation",
      path: `${CONVERSATIONS}/import`,
      tag: "conversations",
      summary: "Import a conversation",
      description:
        "For administrators, because a file contains versions of personas and tools. The body is an export of any length, with lines of at most 16 MiB. The conversation has a new id, and the messages, turns and journal of the exported conversation. The conversation appears after the whole file was accepted. If a line is wrong, the error names it, and the import is discarded.",
      created: conversation,
      idDescription: "The id of the new conversation; generated when absent.",
      errors: ["FORBIDDEN", "CONFLICT"],
      permit: ({ principal }) => checkMayImport(principal),
    }),
    async ({ query }, ports, { req }) => {
      const { principal, actors, location } = ports;
      const policy = location(principal.tenant);
      const id = query.id ?? newConversationIdOf(`conv_${ulid()}`, "", {}, policy);
      checkNew(id, policy, "/id");
      const conversation = await findConversation(ports, id);
      await importFile(req.raw, async (part) => unwrap(await conversation.importLines(principal, part)));
      const view = unwrap(await (await actors.conversation(principal.tenant, id)).view(principal));
      return json(view, 201, `${CONVERSATIONS}/${id}`);
    },
  ),
  route(
    {
      id: "eraseEntry",
      method: "delete",
      path: `${CONVERSATION}/events/:eventId`,
      tag: "conversations",
      summary: "Erase the content of a message or of a tool's call",
      description:
        "For principals that may delete the conversation. `eventId` is the id of a message or of an operation. Its content is replaced by `[erased]` everywhere: in messages, turns, the journal, the sessions of agents and traces. Summaries that may contain it are dropped. Unreferenced attachments and knowledge that agents learned only from it are deleted. Ids, order and usage stay. Repeating the request is a no-op. `CONFLICT`, retriable, while its turn is active.",
      params: entryParams,
      answers: [{ status: 204, description: "The content is erased." }],
      errors: ["FORBIDDEN", "NOT_FOUND", "CONFLICT"],
    },
    async ({ params: { id, eventId } }, ports) => {
      unwrap(await (await findConversation(ports, id)).eraseEntry(ports.principal, eventId));
      return empty();
    },
  ),
  route(
    {
      id: "cancelConversation",
      method: "post",
      path: `${CONVERSATION}/cancel`,
      tag: "conversations",
      summary: "Stop a conversation with its active turns",
      description:
        "Each active turn fails with `CANCELLED`. Until the conversation resumes, each new message is recorded in a turn that fails with `CANCELLED`. Repeating the request is a no-op. The body may be absent.",
      params: conversationParams,
      body: stopSchema,
      optionalBody: true,
      answers: ok("The conversation is stopped.", conversation),
      errors: [...BODY_ERRORS, "NOT_FOUND", "CONVERSATION_CLOSED"],
    },
    async ({ params, body }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).cancel(ports.principal, body))),
  ),
  route(
    {
      id: "resumeConversation",
      method: "post",
      path: `${CONVERSATION}/resume`,
      tag: "conversations",
      summary: "Resume a stopped conversation",
      description:
        "The next message starts a turn. Stopped turns do not resume. `NOT_CANCELLED` if the conversation is not stopped. The body may be absent.",
      params: conversationParams,
      body: stopSchema,
      optionalBody: true,
      answers: ok("The conversation goes on.", conversation),
      errors: [...BODY_ERRORS, "FORBIDDEN", "NOT_FOUND", "NOT_CANCELLED", "CONVERSATION_CLOSED"],
    },
    async ({ params, body }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).resume(ports.principal, body))),
  ),
  route(
    {
      id: "completeConversation",
      method: "post",
      path: `${CONVERSATION}/complete`,
      tag: "conversations",
      summary: "End a conversation for good",
      description:
        "Each active turn fails with `CANCELLED`. Later messages, stops, resumes and changes fail with `CONVERSATION_CLOSED`. Reading stays possible. Repeating the request is a no-op. The body may be absent.",
      params: conversationParams,
      body: stopSchema,
      optionalBody: true,
      answers: ok("The conversation has ended.", conversation),
      errors: [...BODY_ERRORS, "FORBIDDEN", "NOT_FOUND"],
    },
    async ({ params, body }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).complete(ports.principal, body))),
  ),
  route(
    {
      id: "listMessages",
      method: "get",
      path: `${CONVERSATION}/messages`,
      tag: "conversations",
      summary: "List messages",
      params: conversationParams,
      query: pageSchema,
      answers: onePage("messages", message),
      errors: ["NOT_FOUND", "INVALID_INPUT"],
    },
    async ({ params, query }, ports) =>
      page(
        "messages",
        unwrap(await (await findConversation(ports, params.id)).messages(ports.principal, query)),
      ),
  ),
  route(
    {
      id: "listJournal",
      method: "get",
      path: `${CONVERSATION}/journal`,
      tag: "conversations",
      summary: "List the journal: every durable fact by its number",
      description:
        "With `type`, each page looks at up to 5,000 entries: a page may be empty and have a `nextCursor`.",
      params: conversationParams,
      query: journalQuery,
      answers: onePage("entries", journalEntry),
      errors: ["NOT_FOUND", "INVALID_INPUT"],
    },
    async ({ params, query: { type: types, ...options } }, ports) => {
      const conversation = await findConversation(ports, params.id);
      return page(
        "entries",
        unwrap(await conversation.journal(ports.principal, { ...options, ...defined({ types }) })),
      );
    },
  ),
];

/** Finds the actor of a conversation. Throws `NOT_FOUND` for an id that cannot exist. */
export async function findConversation(
  { actors, principal }: Pick<HttpEnv["Variables"], "actors" | "principal">,
  id: string,
): Promise<ConversationActor> {
  if (!isConversationId(id)) throw noConversation(id);
  return actors.conversation(principal.tenant, id);
}

function idsOf(kind: "agent" | "user", participants: readonly Participant[]): string[] {
  return participants.flatMap(({ type, id }) => (type === kind ? [id] : []));
}
