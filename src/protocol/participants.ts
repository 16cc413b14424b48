/**
 * The participants of a conversation.
 *
 * PARTY-1  `{type, userId}` and `{type, agentId}` mean `{type, id}`.
 */
import { z } from "zod";
import { agentIdSchema } from "../shared/id-schemas.ts";
import { isJsonObject } from "../shared/json.ts";

/** A user or an agent of a conversation. */
export interface Participant {
  type: "user" | "agent";
  id: string;
}

/** Accepts a participant in both forms, and returns `{type, id}`. */
export const participantSchema: z.ZodType<Participant> = z.preprocess(
  withId,
  z.discriminatedUnion("type", [
    z.strictObject({ type: z.literal("agent"), id: agentIdSchema }),
    z.strictObject({ type: z.literal("user"), id: z.string().min(1).max(200) }),
  ]),
);

/** Moves `userId` of a user, or `agentId` of an agent, to `id`. The schema refuses whatever else is there. */
function withId(value: unknown): unknown {
  if (!isJsonObject(value) || value.id !== undefined) return value;
  const { userId, agentId, ...rest } = value;
  if (value.type === "user" && agentId === undefined) return { ...rest, id: userId };
  if (value.type === "agent" && userId === undefined) return { ...rest, id: agentId };
  return value;
}
