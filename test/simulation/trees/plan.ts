/** Plans of trees of calls: callers and called agents, durations, failures, and stops. A seed gives one plan. */
import type { Budget } from "../../../src/protocol/budget.ts";
import type { TurnOrder } from "../../../src/protocol/conversation-schemas.ts";
import { Random } from "../../../src/testing/random.ts";

/** One agent's work in the tree. Its message is its node as JSON. */
export interface WorkPlan {
  id: number;
  /** The agent that does it. */
  agent: string;
  /** Part of its answer. Only the agents above it may see it. */
  secret: string;
  /** Milliseconds of each model call. */
  ms: number;
  /** Model calls that fail before one succeeds. */
  failures: number;
  /** `decline` and `silent` end without calls. */
  end: "answer" | "decline" | "silent" | "broken";
  calls: CallPlan[];
  /** Number of additional three-byte characters in its message; absent for 0. */
  padding?: number;
}

/** A call of an agent. */
export interface CallPlan {
  background: boolean;
  repeats: boolean;
  /** Needs an approval. `none`: the request stays unanswered. Absent if it needs no approval. */
  approval?: { answer: "approve" | "deny" | "none"; ms: number };
  /** The agent joins the conversation of the root; absent if it works alone. */
  joins?: true;
  work: WorkPlan;
}

export interface TreePlan {
  seed: number;
  root: WorkPlan;
  /** How the root's turns follow each other; in parallel when absent. */
  order?: TurnOrder;
  /** Further messages of the user to the root, in milliseconds, while others work. */
  more: { at: number; work: WorkPlan }[];
  budget?: Budget;
  /** Of each turn that a message of the user starts. */
  turnBudget?: Budget;
  /** Users who join the root's conversation or leave it, in milliseconds. */
  members: { at: number; type: "add" | "remove"; id: string }[];
  /**
   * When a user stops a conversation, in milliseconds, and which in the order of opening: 0 is the root. With `turn`, the turn of this
   * number only.
   */
  stops: { at: number; index: number; turn?: number }[];
  /** Crashes, and the chance of one at each crossing of a port. */
  crashes: number;
  crashChance: number;
  /** Deliveries that the network treats badly, and the chance of it. */
  badDeliveries: number;
  badChance: number;
  /** The limits of calls; absent for the defaults. */
  calls?: { depth: number; open: number; tree: number };
  /** Time limit of each call, in milliseconds. */
  timeoutMs: number;
}

/** Levels below the root. */
const DEPTH = 3;
/** Agents of a tree at most. */
const MAX_AGENTS = 20;

export function planTree(seed: number): TreePlan {
  const random = new Random(seed);
  const shape = random.fork("shape");
  const people = random.fork("people");
  const company = random.fork("company");
  let left = MAX_AGENTS - 1;
  let next = 0;
  const work = (level: number, path: readonly string[]): WorkPlan => {
    const id = next++;
    const agent = `agent-${level}-${shape.int(0, 3)}`;
    const most = level === DEPTH ? 0 : Math.min(left, level === 0 ? 5 : 3);
    const count = most === 0 ? 0 : shape.int(level === 0 ? 1 : 0, most);
    left -= count;
    const end =
      level > 0 && shape.chance(0.15) ? shape.pick(["decline", "silent", "broken"] as const) : "answer";
    return {
      id,
      agent,
      secret: `secret-${seed}-${id}-x`,
      ms: shape.small(1, 4_000),
      failures: shape.chance(0.1) ? shape.int(1, 2) : 0,
      end,
      calls: shape.list(end === "answer" ? count : 0, () => ({
        background: shape.chance(0.25),
        repeats: shape.chance(0.2),
        ...approvalOf(people),
        ...(level === 0 && company.chance(0.15) ? { joins: true as const } : {}),
        work: work(level + 1, [...path, agent]),
      })),
    };
  };
  const root = work(0, []);
  const talk = random.fork("talk");
  const more = talk.list(talk.chance(0.4) ? talk.int(1, 4) : 0, () => ({
    at: talk.small(1, 6_000),
    work: {
      id: next++,
      agent: root.agent,
      secret: `secret-${seed}-${next}-y`,
      ms: talk.small(1, 4_000),
      failures: 0,
      end: "answer" as const,
      calls: talk.list(talk.chance(0.3) ? talk.int(1, 2) : 0, () => ({
        background: talk.chance(0.5),
        repeats: talk.chance(0.2),
        ...approvalOf(people),
        work: work(DEPTH - 1, [root.agent]),
      })),
    },
  }));
  const fate = random.fork("fate");
  const limits = random.fork("limits");
  const members = random.fork("members");
  const turns = random.fork("turn budgets");
  return {
    seed,
    root,
    more,
    ...(fate.chance(0.4) ? { budget: { tokens: fate.int(2_000, 40_000) } } : {}),
    ...(turns.chance(0.3) ? { turnBudget: { tokens: turns.int(1_000, 20_000) } } : {}),
    members: members.list(members.chance(0.4) ? members.int(1, 8) : 0, () => ({
      at: members.small(1, 15_000),
      type: members.pick(["add", "add", "remove"] as const),
      id: members.pick(["bob", "cleo"]),
    })),
    stops: [
      ...fate.list(fate.chance(0.3) ? 1 : 0, () => ({ at: fate.small(1, 20_000), index: 0 })),
      ...fate.list(fate.chance(0.2) ? 1 : 0, () => ({ at: fate.small(1, 10_000), index: 0, turn: 1 })),
      ...fate.list(fate.chance(0.3) ? fate.int(1, 3) : 0, () => ({
        at: fate.small(1, 10_000),
        index: fate.int(1, MAX_AGENTS),
      })),
    ],
    ...(talk.chance(0.4) ? { order: talk.pick(["queued", "interrupt"] as const) } : {}),
    ...(limits.chance(0.4) ? { calls: { depth: 4, open: limits.int(1, 5), tree: limits.int(1, 12) } } : {}),
    crashes: fate.chance(0.7) ? fate.int(1, 8) : 0,
    crashChance: fate.pick([0.001, 0.005, 0.02]),
    badDeliveries: fate.chance(0.7) ? fate.int(1, 12) : 0,
    badChance: 0.3,
    timeoutMs: fate.pick([3_000, 20_000, 120_000]),
  };
}

function approvalOf(random: Random): Pick<CallPlan, "approval"> {
  if (!random.chance(0.15)) return {};
  const answer = random.pick(["approve", "approve", "deny", "none"] as const);
  return { approval: { answer, ms: random.small(1, 8_000) } };
}

/** Reports whether a plan has no faults and no stops. */
export function isCalm({ crashes, badDeliveries, stops }: TreePlan): boolean {
  return crashes === 0 && badDeliveries === 0 && stops.length === 0;
}

export function callsIn({ root, more }: TreePlan): CallPlan[] {
  return [root, ...more.map(({ work }) => work)].flatMap(callsOf);
}

function callsOf(work: WorkPlan): CallPlan[] {
  return work.calls.flatMap((call) => [call, ...callsOf(call.work)]);
}

export function worksIn({ root, more }: TreePlan): WorkPlan[] {
  return [root, ...more.map(({ work }) => work)].flatMap(worksOf);
}

/** All works of a tree. */
export function worksOf(work: WorkPlan): WorkPlan[] {
  return [work, ...work.calls.flatMap((call) => worksOf(call.work))];
}
