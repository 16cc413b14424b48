/** What a conversation is created from, checked, and the record it becomes. */
import { z } from "zod";
import type { VersionChain } from "../../library/types.ts";
import { DramatisError } from "../../shared/errors.ts";
import { CHOSEN_ID_RULE, isChosenId, isConversationId } from "../../shared/identifiers.ts";
import type { Principal } from "../../shared/principal.ts";
import type { ConversationRecord } from "./state.ts";

const chosenId = z.string().refine(isChosenId, CHOSEN_ID_RULE);

/** The input of `create`. */
export const createConversationSchema = z.strictObject({
  id: z.string().refine(isConversationId, "Must be a conversation id."),
  agentId: chosenId,
  title: z.string().min(1).max(200).optional(),
  projectId: chosenId.optional(),
  users: z.array(z.string().min(1).max(200)).max(100).optional(),
});

/** What the conversation's agent gives it. */
export interface AgentPart {
  chain: VersionChain;
  projectIds: string[];
}

/** Throws `INVALID_INPUT` if the agent does not work in the project. */
export function conversationRecord(
  principal: Principal,
  input: z.output<typeof createConversationSchema>,
  { chain, projectIds }: AgentPart,
  now: number,
): ConversationRecord {
  const projectId = input.projectId ?? projectIds[0] ?? "default";
  if (!projectIds.includes(projectId)) {
    throw new DramatisError("INVALID_INPUT", `The agent "${input.agentId}" does not work in this project.`, {
      errors: [{ path: "/projectId", message: `Must be one of: ${projectIds.join(", ")}.` }],
    });
  }
  const users = [...new Set([principal.subject, ...(input.users ?? [])])];
  return {
    id: input.id,
    tenant: principal.tenant,
    title: input.title ?? null,
    agentId: input.agentId,
    projectId,
    participants: [
      ...users.map((id) => ({ type: "user" as const, id })),
      { type: "agent" as const, id: input.agentId },
    ],
    chain,
    createdAt: now,
  };
}
