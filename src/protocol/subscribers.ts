/** Actors that subscribe to a conversation: their requests, and the envelopes with frames. */
import { z } from "zod";
import { durableFrameTypes } from "./frame-filter.ts";
import type { Frame } from "./frames.ts";

/** The type of an envelope from a conversation to a subscriber. */
export const CONVERSATION_FRAMES = "conversation.frames";

/** Maximum length of a frame to a subscriber. A longer frame arrives without its data. */
export const MAX_SUBSCRIBED_FRAME_LENGTH = 128 * 1024;

/** A frame without its data. Read the turn or the message by its id. */
export type OmittedFrame = Pick<
  Frame,
  "v" | "type" | "seq" | "turnId" | "messageId" | "operationId" | "time"
> & {
  omitted: true;
};

export type SubscribedFrame = (Frame & { omitted?: never }) | OmittedFrame;

/** The schema of the body of `CONVERSATION_FRAMES`, for the handler of a subscriber. */
export const conversationFrames = z.object({
  /** In order. Empty at the end of the subscription. */
  frames: z.array(z.custom<SubscribedFrame>((value) => typeof value === "object" && value !== null)),
  /** The number of the last entry that the frames cover. */
  cursor: z.int().min(0),
  /** The subscription is over: the conversation was deleted, or its principal may no longer read it. */
  ended: z.enum(["deleted", "access"]).exactOptional(),
});

export type ConversationFrames = z.infer<typeof conversationFrames>;

export const subscriberAddress = z.strictObject({
  kind: z
    .string()
    .regex(/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/, "Must be the class of an actor in kebab case.")
    .max(64),
  tenant: z.string().min(1).max(200),
  id: z.string().regex(/^[A-Za-z0-9._-]{1,200}$/, "Must be the id of an actor."),
});

export const subscribeActor = z.strictObject({
  /** The actor that gets the frames. */
  to: subscriberAddress,
  /** Begins after this entry. By default after the newest entry, or at the cursor of the same subscriber. */
  from: z.int().min(0).exactOptional(),
  /** Only frames of these types. */
  types: durableFrameTypes.exactOptional(),
});

export type SubscribeActor = z.infer<typeof subscribeActor>;
