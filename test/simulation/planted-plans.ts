/** Small plans that the planted defects are tried with. */
import type {
  ActPlan,
  CallPlan,
  ConversationPlan,
  Fault,
  MessagePlan,
  ModelFailure,
  Plan,
  ReplyPlan,
} from "./plan.ts";

/** Two tools in parallel, in one short turn. */
export const SMALL: Plan = {
  seed: 1,
  conversations: [
    {
      maxMoves: 4,
      clients: [
        {
          user: "ada",
          channel: "socket",
          joins: 0,
          latency: 5,
          absences: [],
          messages: [
            {
              waitsFor: "acknowledgement",
              pause: 0,
              length: 2,
              replies: [
                {
                  failures: [],
                  length: 12,
                  pace: 20,
                  calls: [
                    { tool: "charge", arguments: "valid", ms: 40, outcome: "answer", progress: 1 },
                    { tool: "save", arguments: "valid", ms: 10, outcome: "answer", progress: 0 },
                  ],
                },
              ],
            },
          ],
        },
      ],
    },
  ],
  faults: [],
};

export const withFaults = (...faults: Omit<Fault, "conversation">[]): Plan => ({
  ...SMALL,
  // SAFETY: `Omit` loses the relation between kind and members; each call passes the members of one kind.
  faults: faults.map((fault) => ({ conversation: 0, ...fault }) as Fault),
});

export const crashAt = (port: Fault["port"], nth: number): Plan =>
  withFaults({ port, nth, kind: "crash", when: "after" } as Omit<Fault, "conversation">);

/** A message with an answer that takes more than half a second. */
export const SLOW: Partial<MessagePlan> = { replies: [{ failures: [], length: 30, pace: 30, calls: [] }] };

/** One message of a user who repeats the request until it gets a response. */
export function saying(message: Partial<MessagePlan>, conversation: Partial<ConversationPlan> = {}): Plan {
  const plain: MessagePlan = { waitsFor: "answer", pause: 0, length: 2, replies: [] };
  const messages = [{ ...plain, ...message }];
  return {
    ...SMALL,
    conversations: SMALL.conversations.map((own) => ({
      ...own,
      ...conversation,
      clients: own.clients.map((client) => ({ ...client, channel: "http", messages })),
    })),
  };
}

export function calling(call: Partial<CallPlan>): ReplyPlan {
  const plain: CallPlan = { tool: "save", arguments: "valid", ms: 10, outcome: "answer", progress: 0 };
  return { failures: [], length: 3, pace: 0, calls: [{ ...plain, ...call }] };
}

/** Messages of one user, 100 ms apart. */
export function talking(
  messages: Partial<MessagePlan>[],
  { acts = [], ...conversation }: Partial<ConversationPlan> & { acts?: ActPlan[] },
): Plan {
  const { conversations, ...plan } = saying({}, conversation);
  const plain: MessagePlan = { waitsFor: "acknowledgement", pause: 100, length: 2, replies: [] };
  return {
    ...plan,
    conversations: conversations.map((own) => ({
      ...own,
      clients: own.clients.map((client) => ({
        ...client,
        acts,
        messages: messages.map((message) => ({ ...plain, ...message })),
      })),
    })),
  };
}

export function stopUpon(upon: NonNullable<ActPlan["upon"]>, pause: number): ActPlan {
  return { does: "stop turn", whose: "own", upon, nth: 1, pause };
}

export function leavingAfter(ms: number): Plan["conversations"] {
  return SMALL.conversations.map((conversation) => ({
    ...conversation,
    clients: conversation.clients.map((client) => ({ ...client, leaves: ms })),
  }));
}

export function failingOnce(failure: ModelFailure): Plan["conversations"] {
  const conversations = structuredClone(SMALL.conversations);
  for (const { clients } of conversations) {
    for (const message of clients.flatMap(({ messages }) => messages))
      message.replies = message.replies.map((reply) => ({ ...reply, failures: [failure] }));
  }
  return conversations;
}
