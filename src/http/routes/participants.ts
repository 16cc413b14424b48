/** `/api/conversations/:id/participants`: adds users and agents to a conversation, and removes them. */
import { z } from "zod";
import { conversation } from "../../protocol/conversation-schemas.ts";
import { newParticipantSchema } from "../../protocol/participants.ts";
import { unwrap } from "../../shared/errors.ts";
import { empty, json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, conversationParams, findConversation } from "./conversations.ts";

const PARTICIPANTS = `${CONVERSATION}/participants` as const;
const PARTICIPANT = `${PARTICIPANTS}/:type/:participantId` as const;

const participantParams = conversationParams.extend({
  type: z.enum(["user", "agent"]).describe("Kind of the participant."),
  participantId: z
    .string()
    .min(1)
    .max(200)
    .meta({ description: "Id of the user or of the agent.", example: "ada" }),
});

export const participantRoutes: readonly Route[] = [
  route({
    id: "addParticipant",
    method: "post",
    path: PARTICIPANTS,
    tag: "conversations",
    summary: "Add a user or an agent to a conversation",
    description:
      "A user can read the whole conversation and write in it. An agent must work in the conversation's project. Later changes of the agent do not affect the conversation. Adding a current participant is a no-op. `userId` or `agentId` is accepted for `id`. `handoff` selects the history for an agent that joins for the first time.",
    params: conversationParams,
    body: newParticipantSchema.meta({ example: { type: "agent", id: "lawyer" } }),
    answers: ok("The conversation.", conversation),
    errors: ["FORBIDDEN", "CONFLICT", "CONVERSATION_CLOSED"],
    handle: async ({ params, body }, ports) => {
      const conversation = await findConversation(ports, params.id);
      return json(unwrap(await conversation.addParticipant(ports.principal, body)));
    },
  }),
  route({
    id: "removeParticipant",
    method: "delete",
    path: PARTICIPANT,
    tag: "conversations",
    summary: "Remove a user or an agent from a conversation",
    description:
      "The connections of the user are closed, and the active turns of the agent end. Removing a user or an agent that does not take part has no effect. The agent that answers messages without an addressee stays: `CONFLICT`.",
    params: participantParams,
    answers: [{ status: 204, description: "The participant does not take part any more." }],
    errors: ["FORBIDDEN", "CONFLICT", "CONVERSATION_CLOSED"],
    handle: async ({ params: { id, type, participantId } }, ports) => {
      const conversation = await findConversation(ports, id);
      unwrap(await conversation.removeParticipant(ports.principal, { type, id: participantId }));
      return empty();
    },
  }),
];
