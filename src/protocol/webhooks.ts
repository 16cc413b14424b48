/** Webhooks of turns: addresses outside that get the states of a turn. */
import { z } from "zod";
import type { Principal } from "../shared/principal.ts";
import type { TurnView } from "./conversation-schemas.ts";
import { ids } from "./scalars.ts";

/** The kind of a webhook's address in envelopes. There is no actor of this kind. */
export const WEBHOOK = "webhook";
export const MAX_WEBHOOKS = 5;

const headerValue = z
  .string()
  .min(1)
  .max(4_096)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, "Must have printable ASCII characters only.");

export const webhookId = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,128}$/, "Must have 1 to 128 letters, digits, dots, dashes or underscores.");

export const newWebhook = z.strictObject({
  turnId: ids.turn,
  id: webhookId,
  url: z.url().max(2_048),
  /** Headers with secrets. No method returns them. */
  headers: z.record(z.string(), headerValue),
  /** The scheme of the header `authorization`. */
  scheme: z.string().max(64).exactOptional(),
});

export type NewWebhook = z.infer<typeof newWebhook>;

/** A webhook without its secrets. */
export type WebhookView = Omit<NewWebhook, "headers">;

export interface WebhookNotice {
  url: string;
  headers: Readonly<Record<string, string>>;
  conversationId: string;
  turn: TurnView;
  /** The person whose webhook it is. */
  reader: Principal;
}

/** Posts a notice. Throws `DramatisError`: a retriable error if a later attempt may succeed. */
export type PostWebhook = (notice: WebhookNotice) => Promise<void>;
