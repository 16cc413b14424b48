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

/** The parts of the past that an agent which joins can be told of. */
export const HANDOFFS = ["none", "latest-turn", "recent", "full"] as const;

/** The past that an agent which joins is told of: a part of the conversation, or a text. */
export type Handoff = (typeof HANDOFFS)[number] | { custom: string };

/** A participant that is added. */
export interface NewParticipant extends Participant {
  /** For agents only. Absent: each request tells of the newest turns of other agents. */
  handoff?: Handoff;
}

/** Length of a handoff in words of its own, in UTF-16 units. */
export const MAX_CUSTOM_HANDOFF = 8_000;

/** Accepts a participant in both forms, and returns `{type, id}`. */
export const participantSchema: z.ZodType<Participant> = z.preprocess(
  withId,
  z.discriminatedUnion("type", [
    z.strictObject({ type: z.literal("agent"), id: agentIdSchema }),
    z.strictObject({ type: z.literal("user"), id: z.string().min(1).max(200) }),
  ]),
);

/** As `participantSchema`; an agent may bring a handoff. */
export const newParticipantSchema: z.ZodType<NewParticipant> = z.preprocess(
  withId,
  z.discriminatedUnion("type", [
    z.strictObject({
      type: z.literal("agent"),
      id: agentIdSchema,
      handoff: z.exactOptional(
        z.union(
          [z.enum(HANDOFFS), z.strictObject({ custom: z.string().trim().min(1).max(MAX_CUSTOM_HANDOFF) })],
          {
            error: `Must be ${HANDOFFS.map((name) => JSON.stringify(name)).join(", ")}, or {custom}, with a text of at most ${MAX_CUSTOM_HANDOFF} characters.`,
          },
        ),
      ),
    }),
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
