/**
 * The participants of a conversation.
 *
 * PARTY-1  `{type, userId}` and `{type, agentId}` mean `{type, id}`.
 */
import { z } from "zod";
import { agentIdSchema } from "../shared/id-schemas.ts";
import { isJsonObject } from "../shared/json.ts";

/** The parts of the history that a joining agent can receive. */
export const HANDOFFS = ["none", "latest-turn", "recent", "full"] as const;

/** Length of a custom handoff, in UTF-16 units. */
export const MAX_CUSTOM_HANDOFF = 8_000;

const handoffSchema = z.union(
  [z.enum(HANDOFFS), z.strictObject({ custom: z.string().trim().min(1).max(MAX_CUSTOM_HANDOFF) })],
  {
    error: `Must be ${HANDOFFS.map((name) => JSON.stringify(name)).join(", ")}, or {custom}, with a text of at most ${MAX_CUSTOM_HANDOFF} characters.`,
  },
);

/** The history that a joining agent receives: a part of the conversation, or a text. */
export type Handoff = z.infer<typeof handoffSchema>;

const agent = z.strictObject({ type: z.literal("agent"), id: agentIdSchema });
const user = z.strictObject({ type: z.literal("user"), id: z.string().min(1).max(200) });

/** Accepts a participant in both forms, and returns `{type, id}`. */
export const participantSchema = z.preprocess(withId, z.discriminatedUnion("type", [agent, user]));

export type Participant = z.infer<typeof participantSchema>;

/** As `participantSchema`; an agent may have a handoff. By default each request shows the newest turns of other agents. */
export const newParticipantSchema = z.preprocess(
  withId,
  z.discriminatedUnion("type", [agent.extend({ handoff: handoffSchema.exactOptional() }), user]),
);

export type NewParticipant = z.infer<typeof newParticipantSchema>;

/** Moves `userId` of a user, or `agentId` of an agent, to `id`. The schema refuses other members. */
function withId(value: unknown): unknown {
  if (!isJsonObject(value) || value.id !== undefined) return value;
  const { userId, agentId, ...rest } = value;
  if (value.type === "user" && agentId === undefined) return { ...rest, id: userId };
  if (value.type === "agent" && userId === undefined) return { ...rest, id: agentId };
  return value;
}
