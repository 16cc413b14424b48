/** Plans of turns that run workflows: the work of the runs, the delays of people, and the times of stops. */
import { Random } from "../../../src/testing/random.ts";

/** A workflow: its steps follow each other. */
export interface FlowPlan {
  id: number;
  steps: FlowStep[];
}

export type FlowStep =
  /** A person answers after `ms`. Without `ms`, the gate fails after `limit`. */
  | { kind: "gate"; ms?: number; limit?: number }
  /**
   * An agent with `calls` calls of a tool that take `ms`. A person approves the first call after `asks`, if present.
   */
  | { kind: "agent"; calls: number; ms: number; timeoutMs?: number; asks?: number }
  /** A task that takes `ms`. */
  | { kind: "task"; ms: number }
  /** A sub-workflow, in `width` runs at once. Default: 1. */
  | { kind: "flow"; flow: FlowPlan; width?: number };

export interface FlowCall {
  flow: FlowPlan;
  background: boolean;
  effect: "once" | "idempotent";
  /** The time limit of the tool; the usual one when absent. */
  timeoutMs?: number;
}

export interface TurnPlan {
  /** Milliseconds after the start of the simulation. */
  at: number;
  calls: FlowCall[];
}

export interface FlowsPlan {
  seed: number;
  /** The runs that may work below the run of a call at once, and the branches above which a fan-out is spread. Default: the deployed values. */
  room?: number;
  spread?: number;
  turns: TurnPlan[];
  /** When a user stops a turn, or, without `turn`, the conversation. */
  stops: { at: number; turn?: number }[];
  /** When all actors are reset, as by a deployment. */
  resets: number[];
  crashes: number;
  crashChance: number;
  badDeliveries: number;
  badChance: number;
}

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** The share of the plans with a call that starts more runs than its tree has room for. */
const CROWDED = 0.2;
/** Levels of sub-workflows. */
const DEPTH = 2;

export function planFlows(seed: number): FlowsPlan {
  const random = new Random(seed);
  const shape = random.fork("shape");
  let next = 0;
  const flow = (level: number): FlowPlan => ({
    id: next++,
    steps: Array.from({ length: shape.int(0, 3) }, () => step(level)),
  });
  const step = (level: number): FlowStep => {
    const kind = shape.pick(
      level === DEPTH ? (["gate", "agent"] as const) : (["gate", "agent", "flow"] as const),
    );
    switch (kind) {
      case "gate":
        return shape.chance(0.2)
          ? { kind, limit: shape.pick([5_000, HOUR, 2 * DAY]) }
          : { kind, ms: shape.pick([10, 30_000, 2 * HOUR, 3 * DAY]) };
      case "agent":
        return {
          kind,
          calls: shape.int(0, 4),
          ms: shape.pick([10, 5_000, 14 * MINUTE]),
          ...(shape.chance(0.2) ? { timeoutMs: shape.pick([3_000, 20 * MINUTE]) } : {}),
          ...(shape.chance(0.3) ? { asks: shape.pick([100, 2 * HOUR]) } : {}),
        };
      case "flow":
        return { kind, flow: flow(level + 1) };
      default:
        return kind satisfies never;
    }
  };
  const talk = random.fork("talk");
  const turns = Array.from({ length: talk.int(1, 3) }, () => ({
    at: talk.small(1, 20_000),
    calls: Array.from({ length: talk.int(1, 3) }, () => ({
      flow: flow(0),
      background: talk.chance(0.3),
      effect: talk.pick(["once", "idempotent"] as const),
      ...(talk.chance(0.3) ? { timeoutMs: talk.pick([2_000, 10 * MINUTE, 2 * DAY]) } : {}),
    })),
  }));
  const crowd = random.fork("crowd");
  const isCrowded = crowd.chance(CROWDED);
  const [first] = turns.toSorted((one, other) => one.at - other.at);
  if (isCrowded)
    first?.calls.unshift({ flow: crowdOf(crowd, () => next++), background: false, effect: "once" });
  const fate = random.fork("fate");
  const stops = fate.list(fate.chance(0.4) ? fate.int(1, 2) : 0, () => ({
    at: fate.pick([fate.small(1, 30_000), fate.int(1, 2 * DAY)]),
    ...(fate.chance(0.8) ? { turn: fate.int(1, 3) } : {}),
  }));
  if (isCrowded && crowd.chance(0.7)) stops.push({ at: (first?.at ?? 0) + crowd.int(1, 20_000), turn: 1 });
  return {
    seed,
    ...(isCrowded && { room: crowd.int(1, 3), spread: crowd.pick([2, 1_000]) }),
    turns,
    stops,
    resets: fate.list(fate.chance(0.5) ? fate.int(1, 3) : 0, () => fate.int(1, 3 * DAY)),
    crashes: fate.chance(0.7) ? fate.int(1, 8) : 0,
    crashChance: fate.pick([0.001, 0.005, 0.02]),
    badDeliveries: fate.chance(0.7) ? fate.int(1, 12) : 0,
    badChance: 0.3,
  };
}

/** Returns a flow that starts more runs than its tree has room for. */
function crowdOf(random: Random, id: () => number): FlowPlan {
  // A task holds its room. People and agents do not.
  const leaf: FlowPlan = {
    id: id(),
    steps: [
      { kind: "task", ms: random.pick([10, 5_000]) },
      ...random.list(random.int(0, 1), (): FlowStep => ({ kind: "gate", ms: 30_000 })),
    ],
  };
  const step: FlowStep = { kind: "flow", flow: leaf, width: random.int(3, 5) };
  if (random.chance(0.5)) return { id: id(), steps: [step] };
  return { id: id(), steps: [{ kind: "flow", flow: { id: id(), steps: [step] }, width: random.int(2, 3) }] };
}

/** Returns a flow and all flows below it. */
export function flowsOf(flow: FlowPlan): FlowPlan[] {
  return [flow, ...flow.steps.flatMap((step) => (step.kind === "flow" ? flowsOf(step.flow) : []))];
}
