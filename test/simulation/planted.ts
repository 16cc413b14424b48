/** Planted defects at the ports of a simulated conversation, and plans that make each defect violate a property. */
import type { ExecutorReport } from "../../src/protocol/executor-api.ts";
import type { Variant } from "./life.ts";
import type { Fault, Plan } from "./plan.ts";
import {
  calling,
  crashAt,
  failingOnce,
  leavingAfter,
  SLOW,
  SMALL,
  saying,
  stopUpon,
  talking,
  withFaults,
} from "./planted-plans.ts";
import { forgetting, sending, withoutCount, withoutMessage } from "./planted-ports.ts";

export interface Planted {
  defect: string;
  variant: Variant;
  plan: Plan;
  property: string;
}

export const PLANTED: Planted[] = [
  {
    defect: "forgotten idempotency keys",
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
    defect: "an executor that runs each batch twice",
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
    defect: "a failed request that is retried at once",
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
    defect: "a record that no client receives",
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
    defect: "text that is shown again after it was withdrawn",
    property: "frames",
    plan: withFaults({ port: "model.piece", nth: 8, kind: "error", times: 1 } as Omit<Fault, "conversation">),
    variant: {
      publish: (publish) => (frames) => publish(frames.filter(({ type }) => type !== "message.reset")),
    },
  },
  {
    defect: "results of clients that are acknowledged but dropped",
    property: "client results",
    plan: saying({ replies: [calling({ tool: "ask" })] }),
    variant: {
      submit: () => async (results) => ({
        submitted: results.map(({ operationId }) => ({ operationId, turnId: "" })),
        changed: [],
      }),
    },
  },
  {
    defect: "answers to requests for approval that are not recorded",
    property: "approvals",
    plan: saying({ replies: [calling({ tool: "transfer", approval: { approves: true, ms: 50 } })] }),
    // SAFETY: nothing reads what it returns.
    variant: { approve: () => async () => undefined as never },
  },
  {
    defect: "denials that count as approvals",
    property: "approvals",
    plan: saying({ replies: [calling({ tool: "remit", approval: { approves: false, ms: 50 } })] }),
    variant: { approve: (approve) => (id, answer) => approve(id, { ...answer, approved: true }) },
  },
  {
    defect: "requests for approval that another person answers",
    property: "approvals",
    plan: saying({ replies: [calling({ tool: "transfer", approval: { approves: true, ms: 50 } })] }),
    variant: {
      approve: (approve) => (id, answer) =>
        approve(id, { ...answer, caller: { type: "user", userId: "mallory" } }),
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
    defect: "a directory that receives no usage",
    property: "usage",
    plan: SMALL,
    variant: { directory: (directory) => ({ ...directory, putUsage: async () => undefined }) },
  },
  {
    defect: "usage that is published before it is complete",
    property: "usage",
    plan: SMALL,
    variant: {
      directory: (directory) => ({
        ...directory,
        putUsage: (usage) => directory.putUsage({ ...usage, inputTokens: usage.inputTokens - 1 }),
      }),
    },
  },
  {
    defect: "a fallback that is called first",
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
    defect: "data that differs from the model's answer",
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

/** Defects of stops and of turns that overlap. Random seeds find each of them, too: the first within `seeds`. */
export const PLANTED_STOPS: (Planted & { from?: number; seeds: number })[] = [
  {
    defect: "a stop that is forgotten by a crash",
    property: "stops",
    from: 4,
    seeds: 60,
    plan: {
      ...talking([SLOW], { acts: [stopUpon("streaming", 40)] }),
      faults: [{ conversation: 0, port: "idle", nth: 1, kind: "crash", when: "before" }],
    },
    variant: { database: forgetting(/turn.failed.*"by"/s) },
  },
  {
    defect: "a queued turn that begins early",
    property: "queue",
    from: 11,
    seeds: 60,
    plan: talking([SLOW, {}], { order: "queued" }),
    variant: { order: () => "parallel" },
  },
  {
    defect: "a tool that continues when its turn is stopped",
    property: "over",
    seeds: 200,
    plan: talking([{ replies: [calling({ tool: "charge", ms: 5_000 })] }], { acts: [stopUpon("tool", 400)] }),
    variant: {
      executor: (executor) => ({
        run: (calls, caller) =>
          executor.run(calls, { ...caller, cancelled: () => new Promise(() => undefined) }),
      }),
    },
  },
  {
    defect: "a model call that continues when its turn is stopped",
    property: "over",
    from: 10,
    seeds: 60,
    // The stop arrives during the request.
    plan: talking([SLOW], { acts: [{ does: "stop turn", whose: "own", nth: 1, pause: 110 }] }),
    variant: {
      fetch:
        (fetch) =>
        (url, { signal: _signal, ...init }) =>
          fetch(url, init),
    },
  },
  {
    defect: "an interrupted turn without an end",
    property: "context",
    seeds: 60,
    plan: talking([SLOW, {}], { order: "interrupt" }),
    variant: { fetch: sending(withoutMessage("This turn has no answer.")) },
  },
  {
    defect: "a newer message that is not shown",
    property: "newer",
    seeds: 200,
    plan: talking([{ replies: [{ ...calling({ tool: "charge" }), length: 20, pace: 20 }] }, {}], {}),
    variant: { fetch: sending(withoutMessage("Meanwhile the user also said")) },
  },
  {
    defect: "turns without notes on each other",
    property: "context",
    seeds: 60,
    plan: talking([SLOW, {}], {}),
    variant: { fetch: sending(withoutMessage("Other turns of this conversation")) },
  },
];

/** A conversation that compacts itself after its second turn, and continues. */
const COMPACTING: Plan = talking(
  [300, 300, 20, 20].map((length) => ({ length, waitsFor: "answer" })),
  { memory: { contextTokens: 1_500, summaries: [] } },
);

/** Defects of compactions. Random seeds find each of them, too: the first within `seeds`. */
export const PLANTED_COMPACTIONS: (Planted & { from?: number; seeds: number })[] = [
  {
    defect: "a summary of a part of the replaced events",
    property: "context",
    from: 12,
    seeds: 60,
    plan: COMPACTING,
    variant: {
      fetch: sending((body) => {
        const { messages, ...rest }: { messages: { content: unknown }[] } = JSON.parse(body);
        const isOrder = JSON.stringify(messages.at(-1)?.content).includes("This is an order of the platform");
        return JSON.stringify({ ...rest, messages: isOrder ? messages.toSpliced(-2, 1) : messages });
      }),
    },
  },
  {
    defect: "a summary that no request carries",
    property: "context",
    from: 5,
    seeds: 60,
    plan: COMPACTING,
    variant: { fetch: sending(withoutMessage("Summary of the earlier conversation")) },
  },
];
