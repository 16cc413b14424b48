/** `/api/events` and `/api/search`: the events of a tenant, and the search of its messages. */
import { z } from "zod";
import {
  eventLogId,
  type FoundMessage,
  foundMessage,
  LOGGED_TYPES,
  loggedEvent,
  MAX_QUERY,
  MESSAGE_ROLES,
} from "../../protocol/event-log.ts";
import { loggedTypesOf } from "../../protocol/journal-names.ts";
import { requireOperator } from "../../protocol/mailbox-api.ts";
import { defined } from "../../shared/defined.ts";
import { hasCode, unwrap } from "../../shared/errors.ts";
import { JURISDICTIONS, type Jurisdiction, jurisdictionOf } from "../../shared/location.ts";
import type { RequestVariables } from "../base/context.ts";
import { filter, pageSchema, positionHeader, positionSchema, timeFilter } from "../base/query.ts";
import { events, page, wantsEvents } from "../base/respond.ts";
import { onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { entryTypes } from "./conversations.ts";

const place = z
  .enum(JURISDICTIONS)
  .describe(
    "Conversations and runs in this jurisdiction. Default: the jurisdiction of `conversation`, `run` or `agent`, otherwise those without a jurisdiction.",
  )
  .exactOptional();

const eventsQuery = pageSchema.extend({
  type: entryTypes((name) => loggedTypesOf(name) && [name], LOGGED_TYPES),
  agent: filter("Events of turns of this agent."),
  conversation: filter("Events of this conversation."),
  run: filter("Events of this run of a workflow."),
  correlation: filter("Events with this `correlationId`."),
  since: timeFilter("since", "Events at this time or later."),
  until: timeFilter("until", "Events before this time."),
  after: positionSchema.describe("Events with a higher `seq`.").exactOptional(),
  jurisdiction: place,
});

const searchQuery = pageSchema.omit({ order: true }).extend({
  q: z.string().min(1).max(MAX_QUERY).describe("Words. A message must contain each of them."),
  agent: filter("Messages of turns of this agent."),
  role: z.enum(MESSAGE_ROLES).describe("Messages that a person, or an agent, wrote.").exactOptional(),
  user: filter("Messages of turns that a message of this person caused."),
  since: timeFilter("since", "Messages at this time or later."),
  until: timeFilter("until", "Messages before this time."),
  jurisdiction: place,
});

export const eventLogRoutes: readonly Route[] = [
  route({
    id: "listEvents",
    method: "get",
    path: "/api/events",
    tag: "events",
    summary: "List and follow the events of all conversations and runs",
    description:
      "The journal entries of the tenant's conversations and runs by their number, for operators and administrators. With `Accept: text/event-stream` the answer is an endless stream: the events after `after`, and then each new event. A page looks at a bounded number of events, so it may be empty and have a `nextCursor`. An event appears a moment later than in its conversation or run.",
    query: eventsQuery,
    headers: positionHeader,
    answers: [{ ...onePage("events", loggedEvent)[0], stream: loggedEvent }],
    errors: ["FORBIDDEN", "RATE_LIMITED"],
    permit: ({ principal }) => requireOperator(principal),
    handle: async ({ query, headers }, ports, context) => {
      const { jurisdiction, type: names, ...given } = query;
      const log = await logOf(ports, jurisdiction, given);
      const isOfConversations = given.conversation !== undefined || given.agent !== undefined;
      const types = names?.flatMap((name) => loggedTypesOf(name, isOfConversations) ?? []);
      const request = { ...given, ...defined({ types }) };
      if (!wantsEvents(context)) return page("events", unwrap(await log.events(ports.principal, request)));
      const { limit: _limit, cursor: _cursor, order: _order, ...filters } = request;
      const after = headers["Last-Event-ID"] ?? query.after;
      return events(context, async () =>
        unwrap(await log.follow(ports.principal, { ...filters, ...defined({ after }) })),
      );
    },
  }),
  route({
    id: "searchMessages",
    method: "get",
    path: "/api/search",
    tag: "turns",
    summary: "Search the messages of all conversations",
    description:
      "The newest messages first: of the caller's conversations, and of all conversations of the tenant for operators and administrators. A message appears a moment after the end of its turn. A page looks at a bounded number of messages, so it may be short and have a `nextCursor`. During an outage of D1 the messages have no `title`.",
    query: searchQuery,
    answers: onePage("messages", foundMessage),
    handle: async ({ query: { jurisdiction, ...query } }, ports) => {
      const log = await logOf(ports, jurisdiction, query);
      const found = unwrap(await log.search(ports.principal, query));
      const titles = await titlesOf(ports, found.items);
      const items = found.items.map((message) => {
        const title = titles.get(message.conversationId);
        return { ...message, ...defined({ title }) };
      });
      return page("messages", { ...found, items });
    },
  }),
];

/** Returns the titles of the messages' conversations. An outage of D1 costs the titles only. */
async function titlesOf(
  { principal, directory }: RequestVariables,
  messages: readonly FoundMessage[],
): Promise<ReadonlyMap<string, string>> {
  try {
    const ids = messages.map(({ conversationId }) => conversationId);
    return await directory().titles(principal.tenant, ids);
  } catch (error) {
    if (hasCode(error, "UNAVAILABLE")) return new Map();
    throw error;
  }
}

function logOf(
  { principal, actors }: RequestVariables,
  jurisdiction: Jurisdiction | undefined,
  { conversation, run, agent = "" }: { conversation?: string; run?: string; agent?: string },
) {
  const place = jurisdiction ?? jurisdictionOf(conversation ?? run ?? agent);
  return actors.eventLog(principal.tenant, eventLogId(place));
}
