/** Planted defects of regenerated turns, edited messages and records of turns, and plans that make each violate a property. */
import type { ActPlan, Plan } from "./plan.ts";
import type { Planted } from "./planted.ts";
import { calling, saying, talking } from "./planted-plans.ts";
import { storing } from "./planted-ports.ts";

/** One message with a call that must run once, and an act after its answer. */
const replacing = (act: ActPlan): Plan =>
  talking([{ replies: [calling({ tool: "charge" })] }], { acts: [act] });

const AFTER = { whose: "own", upon: "over", nth: 1, pause: 200 } as const;
const REGENERATED: Plan = replacing({ does: "regenerate", ...AFTER, again: 20 });
const EDITED: Plan = replacing({
  ...{ does: "edit", ...AFTER },
  message: { waitsFor: "nothing", pause: 0, length: 3, replies: [] },
});

export const PLANTED_REPLACEMENTS: Planted[] = [
  {
    defect: "a repeated replacement that makes a second turn",
    property: "replaced",
    plan: REGENERATED,
    variant: {
      replacing: (own) => {
        let newest: string | undefined;
        const regenerate: typeof own.regenerate = async (principal, turnId) => {
          const started = await own.regenerate(principal, newest ?? turnId);
          newest = started.turnId;
          return started;
        };
        return { regenerate, edit: (...edit) => own.edit(...edit) };
      },
    },
  },
  {
    defect: "a replacement that is acknowledged and forgotten",
    property: "replaced",
    plan: REGENERATED,
    variant: {
      replacing: (own) => ({
        regenerate: async (_principal, turnId) => ({ turnId, messageId: "", from: 0, repeated: false }),
        edit: (...edit) => own.edit(...edit),
      }),
    },
  },
  {
    defect: "a regenerated turn that makes its calls again",
    property: "tool runs",
    plan: REGENERATED,
    variant: {
      replacing: (own) => ({
        regenerate: (principal, turnId, options) =>
          own.edit(principal, turnId, { content: "#0.0.0", ...options }),
        edit: (...edit) => own.edit(...edit),
      }),
    },
  },
  {
    defect: "a replaced turn that changes",
    property: "replaced",
    plan: EDITED,
    variant: {
      database: storing((value) =>
        value.includes('"replacedBy":') ? value.replace(/"completedAt":\d+/, '"completedAt":7') : value,
      ),
    },
  },
  {
    defect: "a request with a replaced turn",
    property: "context",
    plan: EDITED,
    variant: { database: storing((value) => value.replaceAll("supersedes", "follows")) },
  },
  {
    defect: "a note on replaced turns that leaves out a call with an effect",
    property: "replaced",
    plan: EDITED,
    variant: { database: storing((value) => value.replaceAll("- charge(", "- look_up(")) },
  },
  {
    defect: "a directory that receives no turns",
    property: "records",
    plan: saying({}),
    variant: { directory: (directory) => ({ ...directory, putTurns: async () => undefined }) },
  },
  {
    defect: "a directory that keeps the first state of a turn",
    property: "records",
    plan: saying({ replies: [{ failures: [], length: 30, pace: 200, calls: [] }] }),
    variant: {
      directory: (directory) => ({
        ...directory,
        putTurns: (tenant, owner, published) => directory.putTurns(tenant, owner, { ...published, seq: 1 }),
      }),
    },
  },
];
