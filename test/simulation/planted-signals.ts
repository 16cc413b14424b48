/** Planted defects of messages in batches, of their queue, and of the end of a conversation. */
import type { ActPlan, MessagePlan, Plan } from "./plan.ts";
import type { Planted } from "./planted.ts";
import { SLOW, saying, talking } from "./planted-plans.ts";
import { forgetting } from "./planted-ports.ts";

const PLAIN: MessagePlan = { waitsFor: "nothing", pause: 0, length: 1, replies: [] };

/** A batch with more messages than turns may be active. */
function bursting(): Plan {
  const { conversations, ...plan } = saying({});
  const messages = Array.from({ length: 70 }, () => ({ ...PLAIN, ...SLOW }));
  return {
    ...plan,
    conversations: conversations.map((own) => ({
      ...own,
      clients: own.clients.map((client) => ({ ...client, channel: "signals", messages })),
    })),
  };
}

const END: ActPlan = { does: "end", upon: "streaming", nth: 1, pause: 5 };

/** Defects of batches and of the queue. Random seeds find each of them, too: the first within `seeds`, after `from`. */
export const PLANTED_SIGNALS: (Planted & { from?: number; seeds: number })[] = [
  {
    defect: "messages of a batch that change places",
    property: "queued",
    from: 24,
    seeds: 60,
    plan: bursting(),
    variant: {
      ingress: (ingress) => ({
        async ingest(principal, signals) {
          const list = Array.isArray(signals) ? signals : [signals];
          return (await ingress.ingest(principal, list.toReversed())).toReversed();
        },
      }),
    },
  },
  {
    defect: "messages that wait and are forgotten",
    property: "once",
    seeds: 200,
    plan: bursting(),
    variant: {
      ingress: (ingress) => ({
        async ingest(principal, signals) {
          const list = Array.isArray(signals) ? signals : [signals];
          const rest = list.slice(60).map(() => ({ ok: true, value: { status: "queued" } }) as const);
          return [...(await ingress.ingest(principal, list.slice(0, 60))), ...rest];
        },
      }),
    },
  },
];

/** Defects of the end of a conversation. */
export const PLANTED_ENDS: Planted[] = [
  {
    defect: "an end that is not kept",
    property: "stops",
    plan: {
      ...talking([SLOW], { acts: [END] }),
      faults: [{ conversation: 0, port: "idle", nth: 1, kind: "crash", when: "before" }],
    },
    variant: { database: forgetting(/conversation.ended/) },
  },
];
