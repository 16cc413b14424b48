/**
 * Deliveries to the webhook of a trigger: their signed text, and the requests that end the trigger's actor.
 *
 * WEBHOOKSIGN-1  The signature is the HMAC with SHA-256 of the time, the delivery's id and the body, joined by dots, in hexadecimal digits. The id has no
 *                dot, so no other id and body give the same text.
 */
import { knownTraceparent } from "../model/span.ts";
import { defined } from "../shared/defined.ts";
import { type DramatisError, notFound, unwrap } from "../shared/errors.ts";
import type { Principal } from "../shared/principal.ts";
import { isDestroyed } from "./destroyed.ts";
import type { Delivery, TriggerApi, TriggerStarted } from "./trigger-api.ts";

/** The largest body of a delivery, in bytes. */
export const MAX_WEBHOOK_BYTES = 256 * 1024;

/** The header of the time and the signature: `t=1772359200,v1=5257a8…`. */
export const SIGNATURE_HEADER = "dramatis-signature";
export const DELIVERY_HEADER = "dramatis-delivery";

const SIGNATURE = /^t=(\d{1,12}),\s?v1=([0-9a-f]{64})$/;
export const DELIVERY_ID = /^[A-Za-z0-9_-]{1,128}$/;

/** Reads the headers of a delivery. Returns `null` if a header is missing or invalid. */
export function readDelivery(headers: Headers, body: Uint8Array): Delivery | null {
  const id = headers.get(DELIVERY_HEADER) ?? "";
  const [, time, signature] = SIGNATURE.exec(headers.get(SIGNATURE_HEADER) ?? "") ?? [];
  if (!DELIVERY_ID.test(id) || time === undefined || signature === undefined) return null;
  const traceparent = knownTraceparent(headers.get("traceparent"));
  return { id, time: Number(time), signature, body, ...defined({ traceparent }) };
}

/** Returns the bytes that are signed (WEBHOOKSIGN-1). */
export function signedBytes({
  id,
  time,
  body,
}: Pick<Delivery, "id" | "time" | "body">): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`${time}.${id}.`);
  const bytes = new Uint8Array(head.length + body.length);
  bytes.set(head);
  bytes.set(body, head.length);
  return bytes;
}

export function webhookPath(tenant: string, id: string): string {
  return `/api/hooks/${encodeURIComponent(tenant)}/${id}`;
}

/** Passes a delivery to a trigger. Throws as `TriggerApi.deliver` fails. */
export async function deliverTo(
  trigger: Pick<TriggerApi, "deliver">,
  delivery: Delivery,
): Promise<TriggerStarted> {
  try {
    return unwrap(await trigger.deliver(delivery));
  } catch (error) {
    if (isDestroyed(error)) throw unknownWebhook();
    throw error;
  }
}

/** Deletes a trigger. Throws as `TriggerApi.remove` fails. */
export async function removeTrigger(
  trigger: Pick<TriggerApi, "remove">,
  principal: Principal,
): Promise<void> {
  try {
    unwrap(await trigger.remove(principal));
  } catch (error) {
    if (!isDestroyed(error)) throw error;
  }
}

/** The same error for every rejected delivery. It does not reveal whether the trigger exists. */
export function unknownWebhook(): DramatisError {
  return notFound(
    "No webhook accepts this request. Check its address, its two headers, its secret and its time.",
  );
}
