/** A conversation on record: projections, chains of causes and incidents of its journal. */
import { z } from "zod";
import { PROJECTIONS, projection } from "../../protocol/projection-schemas.ts";
import { CAUSE_DIRECTIONS, causeChain, incident } from "../../protocol/record-schemas.ts";
import { ids } from "../../protocol/scalars.ts";
import { unwrap } from "../../shared/errors.ts";
import { filter, pageSchema } from "../base/query.ts";
import { json, page } from "../base/respond.ts";
import { ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, conversationParams, findConversation } from "./conversations.ts";

const projectionParams = z.object({
  id: ids.conversation,
  name: z.string().meta({ description: `Its name: ${PROJECTIONS.join(", ")}.`, example: "diagnostics" }),
});

const entryParams = z.object({
  id: ids.conversation,
  seq: z
    .string()
    .regex(/^[1-9][0-9]{0,14}$/)
    .transform(Number)
    .meta({ description: "The number of the entry.", example: "7" }),
});

const causeQuery = pageSchema.omit({ order: true }).extend({
  direction: z
    .enum(CAUSE_DIRECTIONS, "Must be `backward` or `forward`.")
    .describe(
      "With `backward` its causes, with `forward` the entries that follow from it. Default: `backward`.",
    )
    .exactOptional(),
});

const projectionQuery = pageSchema.extend({ turn: filter("Entries of this turn. For `timeline`.") });

const incidentQuery = pageSchema.extend({
  turn: filter("Incidents of this turn."),
  correlation: filter("Incidents with this correlation id: of the signal, or `{conversationId}:{turnId}`."),
});

export const recordRoutes: readonly Route[] = [
  route({
    id: "getProjection",
    method: "get",
    path: `${CONVERSATION}/projections/:name`,
    tag: "conversations",
    summary: "Read a projection of the journal",
    description:
      "For everyone who may read the conversation, also after its end. `limit`, `cursor` and `order` are for `timeline` and `canonical_timeline`, and `turn` is for `timeline`. With `turn`, each page looks at up to 5,000 entries: it may be empty and have a `nextCursor`. An unknown name is `NOT_FOUND`, and the error lists the names. `UNAVAILABLE`, retriable, if a very long journal is not read to its end: repeat the request.",
    params: projectionParams,
    query: projectionQuery,
    answers: ok("The projection.", projection),
    errors: ["UNAVAILABLE"],
    handle: async ({ params: { id, name }, query }, ports) => {
      const conversation = await findConversation(ports, id);
      return json(unwrap(await conversation.projection(ports.principal, name, query)));
    },
  }),
  route({
    id: "getCauses",
    method: "get",
    path: `${CONVERSATION}/journal/:seq/causes`,
    tag: "conversations",
    summary: "Trace the causes of an entry of the journal, or its consequences",
    description:
      "The entry comes first. `backward` continues with its cause, and the cause of the cause, to the first entry of the turn. `forward` continues with all entries that follow from it. `partial`: the chain may continue beyond 10,000 entries of the journal.",
    params: entryParams,
    query: causeQuery,
    answers: ok("The chain.", causeChain),
    handle: async ({ params: { id, seq }, query }, ports) => {
      const conversation = await findConversation(ports, id);
      return json(unwrap(await conversation.causes(ports.principal, seq, query)));
    },
  }),
  route({
    id: "listIncidents",
    method: "get",
    path: `${CONVERSATION}/incidents`,
    tag: "conversations",
    summary: "List the incidents of a conversation",
    description:
      "Failures, timeouts, refusals, denials, retries, resets, crashes, stops and late results, also after the end of the conversation. Each page looks at up to 5,000 entries of the journal: a page may be empty and have a `nextCursor`.",
    params: conversationParams,
    query: incidentQuery,
    answers: onePage("incidents", incident),
    handle: async ({ params: { id }, query }, ports) => {
      const conversation = await findConversation(ports, id);
      return page("incidents", unwrap(await conversation.incidents(ports.principal, query)));
    },
  }),
];
