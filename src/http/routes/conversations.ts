/** `/api/conversations`: creates conversations, and reads them with their messages and their journal. */
import { ulid } from "ulid";
import { z } from "zod";
import type { ConversationActor } from "../../protocol/actor-lookup.ts";
import { forkBody, newConversation, updateConversation } from "../../protocol/conversation-requests.ts";
import {
  conversation,
  importedConversation,
  journalEntry,
  message,
} from "../../protocol/conversation-schemas.ts";
import { charactersOf } from "../../protocol/ids.ts";
import { ENTRY_TYPES } from "../../protocol/journal.ts";
import { entryTypesOf } from "../../protocol/journal-names.ts";
import { checkNew, newConversationIdOf } from "../../protocol/location-policy.ts";
import type { Participant } from "../../protocol/participants.ts";
import { stopRequest } from "../../protocol/requests.ts";
import { ids } from "../../protocol/scalars.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { isConversationId } from "../../shared/identifiers.ts";
import { listIds } from "../../shared/known-ids.ts";
import { inJurisdiction, jurisdictionOf } from "../../shared/location.ts";
import { checkMayImport, type Principal } from "../../shared/principal.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import type { RequestVariables } from "../base/context.ts";
import { filter, pageSchema } from "../base/query.ts";
import { empty, json, noConversation, page } from "../base/respond.ts";
import { ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { exported, exportOperation, importFile, importOperation } from "./backup.ts";

export const CONVERSATIONS = "/api/conversations";
export const CONVERSATION = `${CONVERSATIONS}/:id` as const;
/** Types of entries in one query. */
const MAX_TYPES = 50;

/** Returns the filter of a list of entries. `read` returns the types of a name: a type, or a name of the designs (NAMES-1). */
export function entryTypes<Type>(
  read: (name: string) => readonly Type[] | undefined,
  known: readonly string[],
) {
  const entryName = z.string().transform((name, context) => {
    const types = read(name);
    if (types !== undefined) return types;
    context.addIssue(
      `Unknown type of an entry: ${JSON.stringify(name)}. Types are: ${listIds(name, known)}.`,
    );
    return z.NEVER;
  });
  return z
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
    })
    .exactOptional();
}

const journalQuery = pageSchema.extend({
  type: entryTypes(entryTypesOf, ENTRY_TYPES),
  turn: filter("Entries of this turn."),
});

export const conversationParams = z.object({ id: ids.conversation });
const entryParams = z.object({
  id: ids.conversation,
  eventId: z.string().describe("The id of a message, or of an operation."),
});

/** Errors of requests that copy the past of a conversation. */
export const COPY_ERRORS = ["FORBIDDEN", "CONFLICT", "IDEMPOTENCY_CONFLICT", "CONVERSATION_CLOSED"] as const;

export const conversationRoutes: readonly Route[] = [
  route({
    id: "createConversation",
    method: "post",
    path: CONVERSATIONS,
    tag: "conversations",
    summary: "Create a conversation with an agent",
    description:
      "Give `agentId`, or `participants` with one agent and further users. The caller always takes part. A participant's `userId` or `agentId` is accepted for `id`. Later changes of the agent do not affect the conversation. With `history` it continues a conversation from elsewhere. Without `jurisdiction` it lives in its agent's jurisdiction, if the agent has one.",
    body: newConversation.meta({ example: { agentId: "assistant", title: "Numbers" } }),
    answers: [{ status: 201, description: "The conversation.", body: conversation, location: true }],
    errors: ["NOT_FOUND"],
    handle: async ({ body: { participants = [], jurisdiction, ...body } }, ports) => {
      const { principal, actors, location } = ports;
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
  }),
  route({
    id: "getConversation",
    method: "get",
    path: CONVERSATION,
    tag: "conversations",
    summary: "Read a conversation",
    params: conversationParams,
    answers: ok("The conversation.", conversation),
    handle: async ({ params }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).view(ports.principal))),
  }),
  route({
    id: "updateConversation",
    method: "patch",
    path: CONVERSATION,
    tag: "conversations",
    summary: "Change the title, the order of overlapping turns, or the budget",
    description:
      "A budget includes the conversation's earlier usage. A turn fails at once if its model call no longer fits the budget.",
    params: conversationParams,
    body: updateConversation.meta({ example: { turns: "queued", budget: { tokens: 100_000 } } }),
    answers: ok("The conversation.", conversation),
    errors: ["FORBIDDEN", "CONVERSATION_CLOSED"],
    handle: async ({ params, body }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).update(ports.principal, body))),
  }),
  route({
    id: "deleteConversation",
    method: "delete",
    path: CONVERSATION,
    tag: "conversations",
    summary: "Delete a conversation",
    description:
      "For its participants, operators and administrators. Its active turns stop, and every later request for it gets 404. The deletion also covers its messages, attachments, list entries, the conversations of its agent calls, and knowledge that its agents learned only from it. It runs in the background and survives outages of a store. The id is never used again.",
    params: conversationParams,
    answers: [{ status: 204, description: "The conversation is deleted." }],
    errors: ["FORBIDDEN"],
    handle: async ({ params }, ports) => {
      unwrap(await (await findConversation(ports, params.id)).remove(ports.principal));
      return empty();
    },
  }),
  route({
    ...exportOperation({
      id: "exportConversation",
      path: `${CONVERSATION}/export`,
      tag: "conversations",
      summary: "Export a conversation",
      description:
        "For principals that may delete it. Lines of JSON: a header, the record with the versions of its agents, the journal, turns, events, keys and attachments, and their number. It has no secrets. `CONFLICT`, retriable, while work is in progress.",
      params: conversationParams,
      errors: ["FORBIDDEN", "CONFLICT"],
    }),
    handle: async ({ params }, ports) =>
      exported(unwrap(await (await findConversation(ports, params.id)).exportLines(ports.principal))),
  }),
  route({
    ...importOperation({
      id: "importConversation",
      path: `${CONVERSATIONS}/import`,
      tag: "conversations",
      summary: "Import a conversation",
      description:
        "For administrators, because a file contains versions of personas and tools. The body is an export of any length, with lines of at most 16 MiB. The conversation has a new id, and the messages, turns and journal of the exported conversation. `notRestored` names repositories with uncommitted files that were left out. The conversation appears after the whole file was accepted. If a line is wrong, the error names it, and the import is discarded.",
      created: importedConversation,
      idDescription: "The id of the new conversation; generated when absent.",
      errors: ["FORBIDDEN", "CONFLICT"],
      permit: ({ principal }) => checkMayImport(principal),
    }),
    handle: async ({ query }, ports, { req }) => {
      const { principal, actors, location } = ports;
      const policy = location(principal.tenant);
      const id = query.id ?? newConversationIdOf(`conv_${ulid()}`, "", {}, policy);
      checkNew(id, policy, "/id");
      const conversation = await findConversation(ports, id);
      const end = await importFile(req.raw, async (part) =>
        unwrap(await conversation.importLines(principal, part)),
      );
      const notRestored = end?.notRestored ?? [];
      const view = unwrap(await (await actors.conversation(principal.tenant, id)).view(principal));
      return json({ ...view, ...(notRestored.length > 0 && { notRestored }) }, 201, `${CONVERSATIONS}/${id}`);
    },
  }),
  route({
    id: "forkConversation",
    method: "post",
    path: `${CONVERSATION}/fork`,
    tag: "conversations",
    summary: "Fork a conversation at a turn",
    description:
      "Creates a conversation with the history up to the end of a turn: equal messages, turns and session events, with copies of the attachments. Turns that were active then are left out. The fork has the participants, settings and pinned versions of the conversation, and an unspent budget. Memories of agents are not copied. `CONFLICT` if the turn is not over.",
    params: conversationParams,
    body: forkBody.meta({ example: { idempotencyKey: "a key of yours" } }),
    optionalBody: true,
    answers: [{ status: 201, description: "The new conversation.", body: conversation, location: true }],
    errors: COPY_ERRORS,
    handle: async ({ params, body: { idempotencyKey, ...body } }, ports) => {
      const { principal, location } = ports;
      const id = inJurisdiction(
        await forkIdOf(principal, params.id, idempotencyKey),
        jurisdictionOf(params.id),
      );
      checkNew(id, location(principal.tenant), "/id");
      const source = await findConversation(ports, params.id);
      const view = unwrap(await source.fork(principal, { id, ...body }));
      return json(view, 201, `${CONVERSATIONS}/${id}`);
    },
  }),
  route({
    id: "eraseEntry",
    method: "delete",
    path: `${CONVERSATION}/events/:eventId`,
    tag: "conversations",
    summary: "Erase the content of a message or of a tool's call",
    description:
      "For principals that may delete the conversation. `eventId` is the id of a message or of an operation. Its content is replaced by `[erased]` everywhere: in messages, turns, the journal, the sessions of agents and traces. Summaries that may contain it are dropped. Unreferenced attachments and knowledge that agents learned only from it are deleted. Ids, order and usage stay. Repeating the request is a no-op. `CONFLICT`, retriable, while its turn is active.",
    params: entryParams,
    answers: [{ status: 204, description: "The content is erased." }],
    errors: ["FORBIDDEN", "CONFLICT"],
    handle: async ({ params: { id, eventId } }, ports) => {
      unwrap(await (await findConversation(ports, id)).eraseEntry(ports.principal, eventId));
      return empty();
    },
  }),
  route({
    id: "cancelConversation",
    method: "post",
    path: `${CONVERSATION}/cancel`,
    tag: "conversations",
    summary: "Stop a conversation with its active turns",
    description:
      "Each active turn fails with `CANCELLED`. Until the conversation resumes, each new message is recorded in a turn that fails with `CANCELLED`. Repeating the request is a no-op. The body may be absent.",
    params: conversationParams,
    body: stopRequest,
    optionalBody: true,
    answers: ok("The conversation is stopped.", conversation),
    errors: ["CONVERSATION_CLOSED"],
    handle: async ({ params, body }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).cancel(ports.principal, body))),
  }),
  route({
    id: "resumeConversation",
    method: "post",
    path: `${CONVERSATION}/resume`,
    tag: "conversations",
    summary: "Resume a stopped conversation",
    description:
      "The next message starts a turn. Stopped turns do not resume. `NOT_CANCELLED` if the conversation is not stopped. The body may be absent.",
    params: conversationParams,
    body: stopRequest,
    optionalBody: true,
    answers: ok("The conversation goes on.", conversation),
    errors: ["FORBIDDEN", "NOT_CANCELLED", "CONVERSATION_CLOSED"],
    handle: async ({ params, body }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).resume(ports.principal, body))),
  }),
  route({
    id: "completeConversation",
    method: "post",
    path: `${CONVERSATION}/complete`,
    tag: "conversations",
    summary: "End a conversation for good",
    description:
      "Each active turn fails with `CANCELLED`. Later messages, stops, resumes and changes fail with `CONVERSATION_CLOSED`. Reading stays possible. Repeating the request is a no-op. The body may be absent.",
    params: conversationParams,
    body: stopRequest,
    optionalBody: true,
    answers: ok("The conversation has ended.", conversation),
    errors: ["FORBIDDEN"],
    handle: async ({ params, body }, ports) =>
      json(unwrap(await (await findConversation(ports, params.id)).complete(ports.principal, body))),
  }),
  route({
    id: "listMessages",
    method: "get",
    path: `${CONVERSATION}/messages`,
    tag: "conversations",
    summary: "List messages",
    params: conversationParams,
    query: pageSchema,
    answers: onePage("messages", message),
    handle: async ({ params, query }, ports) =>
      page(
        "messages",
        unwrap(await (await findConversation(ports, params.id)).messages(ports.principal, query)),
      ),
  }),
  route({
    id: "listJournal",
    method: "get",
    path: `${CONVERSATION}/journal`,
    tag: "conversations",
    summary: "List the journal: every durable fact by its number",
    description:
      "With `type` or `turn`, each page looks at up to 5,000 entries: a page may be empty and have a `nextCursor`. With `turn`, it looks only at the entries from the start to the end of the turn, and at the later entries of the turn.",
    params: conversationParams,
    query: journalQuery,
    answers: onePage("entries", journalEntry),
    handle: async ({ params, query: { type: types, ...options } }, ports) => {
      const conversation = await findConversation(ports, params.id);
      return page(
        "entries",
        unwrap(await conversation.journal(ports.principal, { ...options, ...defined({ types }) })),
      );
    },
  }),
];

/** Finds the actor of a conversation. Throws `NOT_FOUND` for an id that cannot exist. */
export async function findConversation(
  { actors, principal }: Pick<RequestVariables, "actors" | "principal">,
  id: string,
): Promise<ConversationActor> {
  if (!isConversationId(id)) throw noConversation(id);
  return actors.conversation(principal.tenant, id);
}

/** Returns the id of a fork. A key of a principal has one id for ever, so a repeated request finds the same fork. */
async function forkIdOf(
  { tenant, subject }: Principal,
  source: string,
  key: string | undefined,
): Promise<string> {
  if (key === undefined) return `conv_${ulid()}`;
  return `conv_${charactersOf(await sha256Hex(JSON.stringify([tenant, subject, source, key])))}`;
}

function idsOf(kind: "agent" | "user", participants: readonly Participant[]): string[] {
  return participants.flatMap(({ type, id }) => (type === kind ? [id] : []));
}
