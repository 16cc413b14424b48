/** `/api/hooks`: takes the deliveries to webhooks of triggers. The signature replaces authentication. */
import { z } from "zod";
import { started, triggerId } from "../../protocol/trigger-api.ts";
import {
  DELIVERY_HEADER,
  DELIVERY_ID,
  deliverTo,
  MAX_WEBHOOK_BYTES,
  readDelivery,
  SIGNATURE_HEADER,
  unknownWebhook,
} from "../../protocol/webhook.ts";
import { isTenant } from "../../shared/principal.ts";
import { readBytes } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { json } from "../base/respond.ts";
import { type ApiOperation, BODY_ERRORS } from "../openapi/operation.ts";

const PATH = "/api/hooks/:tenant/:id" as const;

const params = z.object({
  tenant: z.string().refine(isTenant).meta({ description: "The tenant of the trigger.", example: "acme" }),
  id: triggerId,
});

export const webhookOperations: readonly ApiOperation[] = [
  {
    id: "deliverToTrigger",
    method: "post",
    path: PATH,
    tag: "triggers",
    summary: "Deliver to the webhook of a trigger",
    description:
      "The path is `webhookPath` of the trigger. The body is any JSON up to 256 KiB, or empty: a workflow gets it as `input.body`, a conversation as text behind the trigger's content. The signature is the HMAC with SHA-256, keyed with the trigger's secret, of the time, the delivery's id and the body, joined by dots. The same delivery again has the same answer. A request that no trigger accepts, for whatever reason, is `NOT_FOUND`.",
    open: true,
    params,
    headers: z.object({
      [SIGNATURE_HEADER]: z.string().meta({
        description: "The time in seconds, within 5 minutes, and the signature in hexadecimal digits.",
        example: "t=1772359200,v1=5257a869e7ecebeda32affa62cdca3fa51cad7e77a0e56ff536d0ce8e108d8bd",
      }),
      [DELIVERY_HEADER]: z.string().regex(DELIVERY_ID).meta({
        description: "The id of the delivery, the same when it is repeated. It is kept for 14 days.",
        example: "6f1c2a0e-3f0b-4b7c-9a57-2d6b1e1f0c11",
      }),
    }),
    body: z.unknown().meta({ description: "Any JSON.", example: { order: 17 } }),
    optionalBody: true,
    answers: [
      {
        status: 202,
        description: "The started run or turn. A repeated delivery returns the first result.",
        body: started,
      },
    ],
    errors: [...BODY_ERRORS, "NOT_FOUND", "CONFLICT", "IDEMPOTENCY_CONFLICT", "FORBIDDEN", "RATE_LIMITED"],
  },
];

/** `count` counts a request of an address, and throws `RATE_LIMITED`. */
export function webhookRoutes(
  app: HttpRoutes,
  count: (request: Request, env: unknown) => Promise<void>,
): void {
  app.post(PATH, async (context) => {
    await count(context.req.raw, context.env);
    const path = params.safeParse(context.req.param());
    const body = await readBytes(context.req.raw, Math.min(MAX_WEBHOOK_BYTES, context.var.maxBodyBytes));
    const delivery = readDelivery(context.req.raw.headers, body);
    if (!path.success || delivery === null) throw unknownWebhook();
    const { tenant, id } = path.data;
    return json(await deliverTo(await context.var.actors.trigger(tenant, id), delivery), 202);
  });
}
