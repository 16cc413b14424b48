/** Planted defects at the ports of a simulated conversation, and plans under which they violate a property. */
import type { SqlValue } from "../../src/ports/sql-database.ts";
import type { ExecutorReport } from "../../src/protocol/executor-api.ts";
import type { Variant } from "./life.ts";
import type {
  CallPlan,
  ConversationPlan,
  Fault,
  MessagePlan,
  ModelFailure,
  Plan,
  ReplyPlan,
} from "./plan.ts";

/** Two tools in parallel, in one short turn. */
const SMALL: Plan = {
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

const withFaults = (...faults: Omit<Fault, "conversation">[]): Plan => ({
  ...SMALL,
  // SAFETY: `Omit` loses the relation between kind and members; each call passes the members of one kind.
  faults: faults.map((fault) => ({ conversation: 0, ...fault }) as Fault),
});
const crashAt = (port: Fault["port"], nth: number): Plan =>
  withFaults({ port, nth, kind: "crash", when: "after" } as Omit<Fault, "conversation">);

interface Planted {
  defect: string;
  variant: Variant;
  plan: Plan;
  property: string;
}

export const PLANTED: Planted[] = [
  {
    defect: "idempotency keys that are forgotten",
    property: "once",
    plan: withFaults({ port: "socket.up", nth: 1, kind: "duplicate" }),
    variant: {
      keyValue: (keyValue) => ({
        ...keyValue,
        put: (key, value) => (key.startsWith("seen:") ? undefined : keyValue.put(key, value)),
      }),
    },
  },
  {
    defect: "an executor that runs what it is given twice",
    property: "tool runs",
    plan: SMALL,
    variant: {
      executor: (executor) => ({
        async run(calls, caller) {
          await executor.run(calls, { ...caller, report: async () => [] });
          await executor.run(calls, caller);
        },
      }),
    },
  },
  {
    defect: "an executor that mixes up its answers",
    property: "results",
    plan: SMALL,
    variant: {
      executor: (executor) => ({
        run(calls, { report, cancelled }) {
          const ids = calls.map(({ operationId }) => operationId);
          const next = (id: string) => ids[(ids.indexOf(id) + 1) % ids.length] ?? id;
          const mixedUp = (reports: ExecutorReport[]) =>
            report(reports.map((one) => ({ ...one, operationId: next(one.operationId) })));
          return executor.run(calls, { report: mixedUp, cancelled });
        },
      }),
    },
  },
  {
    defect: "a wake-up that is never set",
    property: "ends",
    plan: { ...crashAt("model.piece", 2), conversations: leavingAfter(200) },
    variant: { window: () => () => undefined },
  },
  {
    defect: "a failed request that is repeated at once",
    property: "attempts",
    plan: { ...SMALL, conversations: failingOnce("server error") },
    variant: {
      fetch: (fetch) => async (url, init) => {
        const answer = await fetch(url, init);
        return answer.ok ? answer : fetch(url, init);
      },
    },
  },
  {
    defect: "crashes that are not counted",
    property: "recoveries",
    plan: {
      ...SMALL,
      faults: Array.from({ length: 12 }, (_, index) => crashAt("model.request", index + 1).faults).flat(),
    },
    variant: {
      database: (database) => ({
        ...database,
        run: (statement, ...values) => database.run(statement, ...values.map(withoutCount)),
      }),
    },
  },
  {
    defect: "commits that are not atomic",
    property: "once",
    plan: crashAt("sql.run", 2),
    variant: { database: (database) => ({ ...database, transaction: (body) => body() }) },
  },
  {
    defect: "a record that no client is told of",
    property: "frames",
    plan: SMALL,
    variant: {
      publish: (publish) => (frames) => publish(frames.filter(({ type }) => type !== "tool.completed")),
    },
  },
  {
    defect: "text that is lost",
    property: "frames",
    plan: SMALL,
    variant: {
      publish: (publish) => (frames) =>
        publish(
          frames.map((frame) =>
            frame.type === "message.delta" ? { ...frame, data: { ...frame.data, text: "…" } } : frame,
          ),
        ),
    },
  },
  {
    defect: "text that is shown again after it was taken back",
    property: "frames",
    plan: withFaults({ port: "model.piece", nth: 8, kind: "error", times: 1 } as Omit<Fault, "conversation">),
    variant: {
      publish: (publish) => (frames) => publish(frames.filter(({ type }) => type !== "message.reset")),
    },
  },
  {
    defect: "results of clients that are acknowledged and not taken",
    property: "client results",
    plan: saying({ replies: [calling({ tool: "ask" })] }),
    variant: {
      submit: () => async (results) => results.map(({ operationId }) => ({ operationId, turnId: "" })),
    },
  },
  {
    defect: "requests that are made twice",
    property: "calls",
    plan: SMALL,
    variant: {
      fetch: (fetch) => async (url, init) => {
        await fetch(url, init);
        return fetch(url, init);
      },
    },
  },
  {
    defect: "a directory that is told nothing",
    property: "usage",
    plan: SMALL,
    variant: { directory: () => async () => undefined },
  },
  {
    defect: "usage that is told before it is complete",
    property: "usage",
    plan: SMALL,
    variant: { directory: (put) => (usage) => put({ ...usage, inputTokens: usage.inputTokens - 1 }) },
  },
  {
    defect: "a fallback that is asked first",
    property: "fallbacks",
    plan: saying({}, { fallbacks: 1 }),
    variant: { fetch: sending((body) => body.replace('"model":"first"', '"model":"second"')) },
  },
  {
    defect: "images that are left out",
    property: "context",
    plan: saying({ images: 1 }),
    variant: { fetch: sending((body) => body.replaceAll(/,\{"type":"image_url".*?\}\}/g, "")) },
  },
  {
    defect: "a history that is left out",
    property: "context",
    plan: saying({}, { history: 1 }),
    variant: { fetch: sending((body) => body.replaceAll("Before 0: a question.", "")) },
  },
  {
    defect: "data that is not what the model said",
    property: "data",
    plan: saying({ output: ["prose"] }),
    variant: {
      fetch: (fetch) => async (url, init) => {
        const response = await fetch(url, init);
        return new Response((await response.text()).replaceAll("[#", "(#"), response);
      },
    },
  },
];

/** One message of a user who repeats the request until it gets a response. */
function saying(message: Partial<MessagePlan>, conversation: Partial<ConversationPlan> = {}): Plan {
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

function calling(call: Partial<CallPlan>): ReplyPlan {
  const plain: CallPlan = { tool: "save", arguments: "valid", ms: 10, outcome: "answer", progress: 0 };
  return { failures: [], length: 3, pace: 0, calls: [{ ...plain, ...call }] };
}

/** Replaces the body of a request. */
function sending(change: (body: string) => string): NonNullable<Variant["fetch"]> {
  return (fetch) => (url, init) => fetch(url, { ...init, body: change(String(init.body)) });
}

function leavingAfter(ms: number): Plan["conversations"] {
  return SMALL.conversations.map((conversation) => ({
    ...conversation,
    clients: conversation.clients.map((client) => ({ ...client, leaves: ms })),
  }));
}

function failingOnce(failure: ModelFailure): Plan["conversations"] {
  const conversations = structuredClone(SMALL.conversations);
  for (const { clients } of conversations) {
    for (const message of clients.flatMap(({ messages }) => messages))
      message.replies = message.replies.map((reply) => ({ ...reply, failures: [failure] }));
  }
  return conversations;
}

/** Removes the number of crashes from a turn's row. */
function withoutCount(value: SqlValue): SqlValue {
  return typeof value === "string" ? value.replace(/"recoveries":\d+,/, "") : value;
}
