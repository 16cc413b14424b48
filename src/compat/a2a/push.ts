/**
 * The configurations of push notifications of A2A: their schemas, and their conversion to webhooks and back. Pure.
 *
 * A2A-15  A configuration belongs to the caller who created it. Its token and its credentials become headers, and are never returned.
 */
import { z } from "zod";
import { type NewWebhook, newWebhook, type WebhookView, webhookId } from "../../protocol/webhooks.ts";
import { validate } from "../../shared/validation.ts";
import { taskId } from "../mcp/tasks.ts";
import type { TurnPlace } from "./tasks.ts";

const MAX_ID = 255;
const id = z.string().max(MAX_ID);

/** The scheme of an `authorization` header, a token of HTTP. */
const scheme = z
  .string()
  .max(64)
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, "Must be the name of a scheme of HTTP, such as Bearer.");

const config = {
  id: z.union([z.literal(""), webhookId]).optional(),
  url: z.url().max(2_048),
  token: z.string().optional(),
  authentication: z.object({ scheme, credentials: z.string().optional() }).optional(),
};

export const sentConfig = z.object(config);
export type SentConfig = z.output<typeof sentConfig>;

export const newConfigBody = z
  .object(config)
  .meta({ example: { url: "https://example.com/notices", token: "a secret of yours" } });

export const newConfigParams = z.object({ ...config, taskId: id });
export const configParams = z.object({ taskId: id, id });
export const configsParams = z.object({ taskId: id });

/** Returns the webhook of a configuration. `defaultId` is the id if the client gave none. Throws `INVALID_INPUT`. */
export function webhookOf(
  { turnId }: TurnPlace,
  { id, url, token = "", authentication }: SentConfig,
  defaultId: string,
): NewWebhook {
  const { scheme, credentials = "" } = authentication ?? {};
  const headers = {
    ...(token !== "" && { "x-a2a-notification-token": token }),
    ...(scheme !== undefined && { authorization: `${scheme} ${credentials}`.trim() }),
  };
  const hook = { turnId, id: id === undefined || id === "" ? defaultId : id, url, headers };
  return validate(newWebhook, scheme === undefined ? hook : { ...hook, scheme });
}

/** Returns a configuration without its secrets. */
export function shownConfig(place: TurnPlace, { id, url, scheme }: WebhookView) {
  return { id, taskId: taskId(place), url, ...(scheme !== undefined && { authentication: { scheme } }) };
}
