/** `POST /api/conversations/:id/signals`: takes signals in their envelopes, one or a batch. */
import { z } from "zod";
import { acceptedSignal, signalEnvelope, signalResults } from "../../protocol/signal-schemas.ts";
import { unwrap } from "../../shared/errors.ts";
import { json } from "../base/respond.ts";
import { type Route, route } from "../openapi/route.ts";
import { CONVERSATION, conversationParams, findConversation } from "./conversations.ts";

const SIGNALS = `${CONVERSATION}/signals` as const;

const EXAMPLE = {
  id: "a key of yours",
  type: "conversation.user.message",
  data: { content: "What is 12*(3+4)?" },
  meta: { correlation_id: "order-4711" },
};

export const signalRoutes: readonly Route[] = [
  route({
    id: "sendSignals",
    method: "post",
    path: SIGNALS,
    tag: "conversations",
    summary: "Send a signal, or a batch of them",
    description:
      "A message, a stop or a resume in an envelope, or a batch. Each signal of a batch has its own result, in order. A refused signal does not stop the others. A message that cannot begin its turn yet is `queued`, and begins after the earlier messages. Stops and resumes never wait. The same `id` with the same `correlation_id` is applied once.",
    params: conversationParams,
    body: z
      .union([signalEnvelope, z.array(z.unknown()).describe("Signals; each is checked for itself.")])
      .meta({ example: EXAMPLE }),
    reads: z.unknown(),
    answers: [
      { status: 202, description: "The signal is accepted.", body: acceptedSignal },
      { status: 200, description: "The results of a batch.", body: signalResults },
    ],
    errors: [
      "INVALID_SIGNAL",
      "FORBIDDEN",
      "CONFLICT",
      "IDEMPOTENCY_CONFLICT",
      "CONVERSATION_CLOSED",
      "NOT_CANCELLED",
      "RATE_LIMITED",
      "QUEUE_OVERFLOW",
    ],
    handle: async ({ params, body }, ports) => {
      const conversation = await findConversation(ports, params.id);
      const results = unwrap(await conversation.ingest(ports.principal, body));
      if (Array.isArray(body)) return json({ results });
      const [result] = results;
      if (result === undefined) throw new Error("The conversation must answer every signal.");
      return json(unwrap(result), 202);
    },
  }),
];
