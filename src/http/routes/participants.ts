/** `/api/conversations/:id/participants`: adds users and agents to a conversation, and removes them. */
import { z } from "zod";
import { newParticipantSchema } from "../../protocol/participants.ts";
import { unwrap } from "../../shared/errors.ts";
import { readBody } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { pathParams } from "../base/query.ts";
import { empty, json } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS, ok } from "../openapi/operation.ts";
import { conversation } from "../openapi/views.ts";
import { CONVERSATION, conversationOf, conversationParams } from "./conversations.ts";

const PARTICIPANTS = `${CONVERSATION}/participants` as const;
const PARTICIPANT = `${PARTICIPANTS}/:type/:participantId` as const;

const participantParams = conversationParams.extend({
  type: z.enum(["user", "agent"]).meta({ description: "Kind of the participant." }),
  participantId: z
    .string()
    .min(1)
    .max(200)
    .meta({ description: "Id of the user or of the agent.", example: "ada" }),
});

export const participantOperations: readonly ApiOperation[] = [
  {
    id: "addParticipant",
    method: "post",
    path: PARTICIPANTS,
    tag: "conversations",
    summary: "Add a user or an agent to a conversation",
    description:
      "The user may read the whole conversation and speak in it. The agent must work in the conversation's project; later changes of the agent do not affect the conversation. Adding one who takes part changes nothing. `userId` or `agentId` is accepted for `id`. `handoff` of an agent that joins for the first time is what it is told of the past.",
    params: conversationParams,
    body: newParticipantSchema.meta({ example: { type: "agent", id: "lawyer" } }),
    answers: ok("The conversation.", conversation),
    errors: [...BODY_ERRORS, "FORBIDDEN", "NOT_FOUND", "CONFLICT", "CONVERSATION_CLOSED"],
  },
  {
    id: "removeParticipant",
    method: "delete",
    path: PARTICIPANT,
    tag: "conversations",
    summary: "Remove a user or an agent from a conversation",
    description:
      "The connections of the user are closed, and the active turns of the agent end. Removing a user or an agent that does not take part has no effect. The agent that answers messages without an addressee stays: `CONFLICT`.",
    params: participantParams,
    answers: [{ status: 204, description: "The participant does not take part any more." }],
    errors: ["FORBIDDEN", "NOT_FOUND", "CONFLICT", "CONVERSATION_CLOSED"],
  },
];

export function participantRoutes(app: HttpRoutes): void {
  app.post(PARTICIPANTS, async (context) => {
    const conversation = await conversationOf(context);
    const participant = await readBody(context, newParticipantSchema);
    return json(unwrap(await conversation.addParticipant(context.var.principal, participant)));
  });

  app.delete(PARTICIPANT, async (context) => {
    const { type, participantId: id } = pathParams(participantParams, context.req);
    const conversation = await conversationOf(context);
    unwrap(await conversation.removeParticipant(context.var.principal, { type, id }));
    return empty();
  });
}
