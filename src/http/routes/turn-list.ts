/** `/api/turns`: lists the turns of a tenant. */
import { z } from "zod";
import { LISTED_ISSUES, LISTED_STATUSES, TARGET_KINDS, turnRecord } from "../../protocol/turn-records.ts";
import { filter, pageSchema, timeFilter } from "../base/query.ts";
import { page } from "../base/respond.ts";
import { onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

const PATH = "/api/turns";

const listQuery = pageSchema.extend({
  agent: filter("Turns of this agent."),
  user: filter("Turns that a message of this person caused, also through other agents."),
  conversation: filter("Turns of this conversation."),
  status: z
    .enum(LISTED_STATUSES)
    .describe(
      "Turns with this status. `stopped`: failed turns with the code `CANCELLED`. `failed`: the other failed turns.",
    )
    .exactOptional(),
  issues: z
    .enum(LISTED_ISSUES)
    .describe("Turns with a failed call of a tool. They may have completed.")
    .exactOptional(),
  tool: filter("Turns that called this tool: `library/id`."),
  targetKind: z
    .enum(TARGET_KINDS)
    .describe("Turns with a call that the code of a tool, the client, an agent or a workflow answers.")
    .exactOptional(),
  run: filter("The turns that this run started, and the turn that started it."),
  since: timeFilter("since", "Turns that began at this time or later."),
  until: timeFilter("until", "Turns that began before this time."),
});

export const turnListRoutes: readonly Route[] = [
  route({
    id: "listAllTurns",
    method: "get",
    path: PATH,
    tag: "turns",
    summary: "List the turns of all conversations",
    description:
      "The turns of the caller's conversations. For operators and administrators, all turns of the tenant. A turn appears, and changes here, a moment later than in its conversation.",
    query: listQuery,
    answers: onePage("turns", turnRecord),
    handle: async ({ query }, { principal, directory }) =>
      page("turns", await directory().turns(principal, query)),
  }),
];
