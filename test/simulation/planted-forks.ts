/** Planted defects of forks and of erasures, and plans that make each violate a property. */
import type { ImportPart } from "../../src/protocol/data-api.ts";
import type { ToolInvocation } from "../../src/protocol/executor-api.ts";
import type { Variant } from "./life.ts";
import type { ForkPlan, MessagePlan, Plan } from "./plan.ts";
import type { Planted } from "./planted.ts";
import { calling } from "./planted-plans.ts";

const PAST: ForkPlan = { whose: "past", upon: "over", nth: 2, pause: 2_000 };
const MESSAGE: MessagePlan = { waitsFor: "nothing", pause: 0, length: 3, replies: [] };

/** Two turns, the first with a call, and a fork at one of them. */
const forking = (fork: ForkPlan): Plan => ({
  seed: 1,
  conversations: [
    {
      maxMoves: 4,
      budget: { modelCalls: 20 },
      clients: [
        {
          ...{ user: "ada", channel: "http", joins: 0, latency: 5, absences: [] },
          messages: [{ ...MESSAGE, waitsFor: "answer", replies: [calling({ tool: "charge" })] }, MESSAGE],
          forks: [fork],
        },
      ],
    },
  ],
  faults: [],
});

/** A fork at the first turn, after the second. */
const SILENT = forking(PAST);
/** As `SILENT`, with a message in the fork. */
const FORKED = forking({ ...PAST, message: { ...MESSAGE, replies: [calling({ tool: "save" })] } });
/** The user erases the first message in the fork. */
const ERASED = forking({ ...PAST, erases: 0 });

/** Changes the lines of a fork. */
const rewriting =
  (rewrite: (line: string) => string) =>
  (part: ImportPart): ImportPart => ({ ...part, lines: part.lines.map(rewrite) });

/** Lets a fork run the calls of its source again. */
function repeating(): Variant {
  const old: ToolInvocation[] = [];
  return {
    dispatched: (calls, conversation) => {
      if (conversation > 0) return [...calls, ...old];
      old.push(...calls);
      return calls;
    },
  };
}

/** Keeps a copy of each event. */
const KEEPING = [
  "CREATE TABLE trash (content TEXT)",
  "CREATE TRIGGER keep AFTER INSERT ON cf_agents_events BEGIN INSERT INTO trash VALUES (new.content); END",
];

export const PLANTED_FORKS: Planted[] = [
  {
    defect: "a fork with another history",
    property: "forked",
    plan: FORKED,
    variant: { forked: rewriting((line) => line.replaceAll("#0.0.0 ", "#0.0.9 ")) },
  },
  {
    defect: "a fork at another turn",
    property: "forked",
    plan: FORKED,
    variant: {
      forks: (own) => ({ fork: (principal, { id }) => own.fork(principal, { id }) }),
    },
  },
  {
    defect: "a fork that has spent a part of its budget",
    property: "forked",
    plan: FORKED,
    variant: {
      forked: rewriting((line) =>
        line.includes("conversation.forked") ? line.replace("[{", '[{"p":[0,0,0,1],') : line,
      ),
    },
  },
  {
    defect: "a fork without the budget of its source",
    property: "forked",
    plan: FORKED,
    variant: {
      forked: rewriting((line) =>
        line.includes("conversation.forked") ? line.replace('"modelCalls":20', '"modelCalls":99') : line,
      ),
    },
  },
  {
    defect: "a fork that is acknowledged and forgotten",
    property: "forked",
    plan: SILENT,
    variant: {
      // SAFETY: nobody reads the view.
      forks: () => ({ fork: async () => ({}) as never }),
    },
  },
  {
    defect: "a fork with its future in its source",
    property: "once",
    plan: FORKED,
    variant: { place: () => 0 },
  },
  {
    defect: "a fork that runs a call of its history again",
    property: "forked",
    plan: FORKED,
    variant: repeating(),
  },
  {
    defect: "a log of events that keeps erased texts",
    property: "erased",
    plan: ERASED,
    variant: { log: (log) => ({ ...log, replace: async () => undefined }) },
  },
  {
    defect: "a directory that keeps erased texts",
    property: "erased",
    plan: ERASED,
    variant: {
      directory: (directory) => ({
        ...directory,
        putTurns: (tenant, owner, published) =>
          JSON.stringify(published).includes("[erased]")
            ? Promise.resolve()
            : directory.putTurns(tenant, owner, published),
      }),
    },
  },
  {
    defect: "an erasure that leaves a copy in the storage",
    property: "erased",
    plan: ERASED,
    variant: {
      database: (database) => ({
        ...database,
        run: (statement, ...values) => {
          database.run(statement, ...values);
          if (values.some((value) => String(value).includes("conversation.forked")))
            for (const also of KEEPING) database.run(also);
        },
      }),
    },
  },
];
