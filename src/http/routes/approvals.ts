/** `/api/approvals`: lists the calls of tools and the gates that wait for the caller. */
import { z } from "zod";
import { waitingApproval } from "../../protocol/waiting-approvals.ts";
import { filter, pageSchema, timeFilter } from "../base/query.ts";
import { page } from "../base/respond.ts";
import { onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

const PATH = "/api/approvals";

const listQuery = pageSchema.extend({
  kind: z
    .enum(["tool", "gate"])
    .describe("Calls of tools (`tool`) or gates of runs (`gate`) only.")
    .exactOptional(),
  agent: filter("Calls of this agent."),
  conversation: filter("Calls in this conversation."),
  run: filter("Gates of this run."),
  since: timeFilter("since", "Requests since this time."),
});

export const approvalRoutes: readonly Route[] = [
  route({
    id: "listApprovals",
    method: "get",
    path: PATH,
    tag: "approvals",
    summary: "List the requests that wait for you",
    description:
      "The calls of tools and the gates that you may answer. The list changes a moment after the conversation or the run. Answer a call with `resolveApproval`, and a gate with `answerGate`.",
    query: listQuery,
    answers: onePage("approvals", waitingApproval),
    handle: async ({ query }, { principal, directory, clock }) =>
      page("approvals", await directory().approvals(principal, { ...query, now: clock.now() })),
  }),
];
