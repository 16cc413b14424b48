/** `/api/approvals`: lists the calls of tools and the gates that wait for the caller. */

import { z } from "zod";
import { answeredBy } from "../../protocol/move-schemas.ts";
import { anyJson, count, ids, runId, time } from "../../protocol/scalars.ts";
import { HUMAN_KINDS } from "../../protocol/task-definition.ts";
import type { WaitingCall, WaitingGate } from "../../protocol/waiting-approvals.ts";
import { pageSchema } from "../base/query.ts";
import { page } from "../base/respond.ts";
import { onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

const PATH = "/api/approvals";

const filter = (what: string) => z.exactOptional(z.string().min(1).max(200).meta({ description: what }));

const listQuery = pageSchema.extend({
  kind: z.exactOptional(
    z.enum(["tool", "gate"]).meta({ description: "Calls of tools (`tool`) or gates of runs (`gate`) only." }),
  ),
  agent: filter("Calls of this agent."),
  conversation: filter("Calls in this conversation."),
  run: filter("Gates of this run."),
  since: z.exactOptional(
    z.iso
      .datetime({ offset: true, error: "Must be a time in ISO 8601, such as `2026-01-31T12:00:00Z`." })
      .meta({ description: "Requests since this time.", example: "2026-01-31T12:00:00Z" })
      .transform((text) => Date.parse(text)),
  ),
});

const members = {
  operationId: z.string().meta({ description: "Names the request in the answer." }),
  projectId: z.string(),
  ...answeredBy,
  input: z.exactOptional(
    z.record(z.string(), anyJson).meta({ description: "Absent if it is too large for the list." }),
  ),
  requestedAt: time,
  expiresAt: z.exactOptional(time),
};

const call: z.ZodType<WaitingCall> = z.strictObject({
  kind: z.literal("tool"),
  ...members,
  conversationId: ids.conversation,
  turnId: ids.turn,
  agentId: ids.agent,
  name: z.string().meta({ description: "The name of the tool." }),
  target: z.exactOptional(z.string()),
}) as z.ZodType<WaitingCall>;

const gate: z.ZodType<WaitingGate> = z.strictObject({
  kind: z.literal("gate"),
  ...members,
  runId,
  workflow: z.strictObject({ library: ids.library, id: ids.definition, version: count }),
  node: z.exactOptional(z.string()),
  question: z.enum(HUMAN_KINDS),
  prompt: z.string(),
  schema: z.record(z.string(), anyJson).meta({ description: "JSON Schema of the answer." }),
}) as z.ZodType<WaitingGate>;

const waiting = z
  .union([call, gate])
  .meta({ id: "WaitingApproval", description: "A call of a tool, or a gate, that waits for a person." });

export const approvalRoutes: readonly Route[] = [
  route(
    {
      id: "listApprovals",
      method: "get",
      path: PATH,
      tag: "approvals",
      summary: "List the requests that wait for you",
      description:
        "The calls of tools and the gates that you may answer. The list changes a moment after the conversation or the run. Answer a call with `resolveApproval`, and a gate with `answerGate`.",
      query: listQuery,
      answers: onePage("approvals", waiting),
      errors: ["INVALID_INPUT"],
    },
    async ({ query }, { principal, directory, clock }) =>
      page("approvals", await directory().approvals(principal, { ...query, now: clock.now() })),
  ),
];
