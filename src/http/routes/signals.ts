/** `POST /api/conversations/:id/signals`: takes signals in their envelopes, one or a batch. */

import { z } from "zod";
import { EXTERNAL_TYPES } from "../../protocol/signals.ts";
import { unwrap } from "../../shared/errors.ts";
import { json } from "../base/respond.ts";
import { BODY_ERRORS } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { acceptedSignal, signalResults } from "../openapi/signal-views.ts";
import { CONVERSATION, conversationParams, findConversation } from "./conversations.ts";

const SIGNALS = `${CONVERSATION}/signals` as const;

const members = z.record(z.string(), z.unknown());

/** Describes what the conversation itself checks, so that its answers name the envelope's own problems. */
const envelope = z
  .looseObject({
    id: z.string().exactOptional().meta({ description: "The idempotency key, with the correlation id." }),
    type: z.enum(EXTERNAL_TYPES),
    source: z.string().exactOptional(),
    time: z.string().exactOptional(),
    data: members.exactOptional().meta({
      description:
        "The payload. For a message: as the body of `POST …/turns`. For a stop: `{turnId?, reason?}`. For a resume: `{reason?}`.",
    }),
    meta: members.nullable().exactOptional().meta({ description: "Overrides the members of `extensions`." }),
    extensions: members.nullable().exactOptional().meta({
      description: "`correlation_id` is kept with everything that follows from the signal.",
    }),
    specversion: z.string().exactOptional(),
  })
  .meta({ id: "Signal" });

const EXAMPLE = {
  id: "a key of yours",
  type: "conversation.user.message",
  data: { content: "What is 12*(3+4)?" },
  meta: { correlation_id: "order-4711" },
};

export const signalRoutes: readonly Route[] = [
  route(
    {
      id: "sendSignals",
      method: "post",
      path: SIGNALS,
      tag: "conversations",
      summary: "Send a signal, or a batch of them",
      description:
        "A message, a stop or a resume in an envelope, or a batch. Each signal of a batch has its own result, in order. A refused signal does not stop the others. A message that cannot begin its turn yet is `queued`, and begins after the earlier messages. Stops and resumes never wait. The same `id` with the same `correlation_id` is applied once.",
      params: conversationParams,
      body: z
        .union([envelope, z.array(z.unknown()).meta({ description: "Signals; each is checked for itself." })])
        .meta({ example: EXAMPLE }),
      reads: z.unknown(),
      answers: [
        { status: 202, description: "The signal is accepted.", body: acceptedSignal },
        { status: 200, description: "The results of a batch.", body: signalResults },
      ],
      errors: [
        ...BODY_ERRORS,
        "INVALID_SIGNAL",
        "FORBIDDEN",
        "NOT_FOUND",
        "CONFLICT",
        "IDEMPOTENCY_CONFLICT",
        "CONVERSATION_CLOSED",
        "NOT_CANCELLED",
        "RATE_LIMITED",
        "QUEUE_OVERFLOW",
      ],
    },
    async ({ params, body }, ports) => {
      const conversation = await findConversation(ports, params.id);
      const results = unwrap(await conversation.ingest(ports.principal, body));
      if (Array.isArray(body)) return json({ results });
      const [result] = results;
      if (result === undefined) throw new Error("The conversation must answer every signal.");
      return json(unwrap(result), 202);
    },
  ),
];
