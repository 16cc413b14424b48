/**
 * The webhook of a trigger: its secret, the signature check of a delivery, and the mapping of its body.
 *
 * WEBHOOK-1  A delivery needs a signature with the secret of this trigger, within 5 minutes of its time. Any other delivery gets the same
 *            answer as a delivery to an unknown trigger.
 * WEBHOOK-2  The secret is shown only when it is created. It is in no entry, view or log.
 * WEBHOOK-3  The id of a delivery is stored for 14 days with a hash of its body. A repeated delivery starts no second run. The id of a
 *            refused delivery can be used again.
 * WEBHOOK-4  The body is data: `input.body` of the run, in addition to the trigger's own input, or a text after the trigger's own content.
 *            The signature authenticates the sender, not the body, so the content is untrusted (RECALL-8).
 * WEBHOOK-5  A webhook is refused if no body can make its input valid: all members except `body` are checked when it is created or changed.
 */
import { toBase64Url } from "../../../protocol/operation-handle.ts";
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import type { Delivery, TriggerStarts } from "../../../protocol/trigger-api.ts";
import { MAX_WEBHOOK_BYTES, signedBytes, unknownWebhook } from "../../../protocol/webhook.ts";
import { type Content, parseContent } from "../../../shared/content.ts";
import { isJsonObject, parseBody } from "../../../shared/json.ts";
import type { TriggerRecord } from "../core/record.ts";
import { TOLERANCE_MS } from "../core/trigger-limits.ts";

const SECRET_BYTES = 32;
const HMAC = { name: "HMAC", hash: "SHA-256" } as const;

/** Returns a new secret. Its UTF-8 text is the key of the signature. */
export function newSecret(): string {
  return `whsec_${toBase64Url(crypto.getRandomValues(new Uint8Array(SECRET_BYTES)))}`;
}

/** Throws `NOT_FOUND` unless the delivery is for this trigger (WEBHOOK-1). `now` is in milliseconds. */
export async function checkSigned(
  { secret }: Pick<TriggerRecord, "secret">,
  delivery: Delivery,
  now: number,
): Promise<void> {
  if (secret === undefined || delivery.body.length > MAX_WEBHOOK_BYTES) throw unknownWebhook();
  const key = await crypto.subtle.importKey("raw", encoded(secret), HMAC, false, ["verify"]);
  // `verify` compares in constant time.
  const isSigned = await crypto.subtle.verify(
    "HMAC",
    key,
    fromHex(delivery.signature),
    signedBytes(delivery),
  );
  const isInTime = Math.abs(now - delivery.time * 1_000) <= TOLERANCE_MS;
  if (!isSigned || !isInTime) throw unknownWebhook();
}

/** Returns the start of a delivery (WEBHOOK-4). Throws `INVALID_JSON`, `INVALID_INPUT` or `TOO_LARGE`. */
export function startsWith(starts: TriggerStarts, bytes: Uint8Array): TriggerStarts {
  const body = bytes.length === 0 ? undefined : parseBody(bytes);
  if ("workflow" in starts)
    return body === undefined ? starts : { ...starts, input: { ...starts.input, body } };
  const text = typeof body === "string" ? body : body === undefined ? "" : JSON.stringify(body, null, 2);
  const content = parseContent(joined(starts.content, text));
  return { ...starts, content, ...(text === "" ? {} : { untrusted: true }) };
}

/** Returns the workflow with an input schema that does not require `body` (WEBHOOK-5). */
export function beforeBody(workflow: PinnedWorkflow): PinnedWorkflow {
  const { definition } = workflow;
  const { required, properties } = definition.inputSchema;
  const inputSchema = {
    ...definition.inputSchema,
    ...(Array.isArray(required) ? { required: required.filter((name) => name !== "body") } : {}),
    ...(isJsonObject(properties) ? { properties: { ...properties, body: {} } } : {}),
  };
  return { ...workflow, definition: { ...definition, inputSchema } };
}

function joined(content: Content | undefined, text: string): Content {
  if (content === undefined || text === "") return content ?? text;
  return typeof content === "string" ? `${content}\n\n${text}` : [...content, { type: "text", text }];
}

function encoded(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(new TextEncoder().encode(text));
}

function fromHex(digits: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length: digits.length / 2 }, (_, index) =>
    Number.parseInt(digits.slice(2 * index, 2 * index + 2), 16),
  );
}
