/** Runs a seed of the workflow tools, and checks its properties after all work has ended. Each property returns its violations in words. */

import type { Turn } from "../../../src/agents/conversation/core/turn.ts";
import { isOver, type RunState } from "../../../src/agents/coordinator/core/state.ts";
import { shareInUse } from "../../../src/agents/coordinator/core/tree-share.ts";
import { calledRunId, operationId } from "../../../src/protocol/ids.ts";
import type { RunEntry, RunEntryType } from "../../../src/protocol/workflow-run.ts";
import type { RunActor } from "../../../src/testing/world/actors.ts";
import { isDeath } from "../../../src/testing/world/mortal-actor.ts";
import { DAY, type FlowCall, type FlowPlan, type FlowsPlan, flowsOf, planFlows } from "./plan.ts";
import { type Defect, FlowWorld, TOKENS } from "./world.ts";

export async function playFlows(
  plan: FlowsPlan,
  defect?: Defect,
): Promise<{ world: FlowWorld; violations: string[] }> {
  const world = new FlowWorld(plan, defect);
  const log = console.error;
  // The code under test reports crashes and defects there.
  console.error = (...reported: unknown[]) => {
    const error = reported.find((one) => one instanceof Error);
    if (!isDeath(error)) world.log.push(`reported: ${error?.stack ?? reported.join(" ")}`);
  };
  try {
    await world.play();
    return { world, violations: violationsOf(world) };
  } catch (error) {
    return { world, violations: [error instanceof Error ? (error.stack ?? error.message) : String(error)] };
  } finally {
    console.error = log;
  }
}

export async function simulateFlows(seed: number, defect?: Defect): Promise<string[]> {
  const { world, violations } = await playFlows(planFlows(seed), defect);
  for (const actor of [...world.conversations.values(), ...world.runs.values()]) actor.database.close();
  return violations;
}

/** Returns the turns of the user's conversation. */
export function turnsOf({ root }: FlowWorld): Turn[] {
  const { runtime } = root.awake();
  return Array.from({ length: runtime.state.turns }, (_, index) => runtime.turn(index + 1)).flatMap(
    (turn) => turn ?? [],
  );
}

/** Returns the states of the runs that have begun. */
export function statesOf({ runs }: FlowWorld): RunState[] {
  return [...runs.values()].flatMap((actor) => {
    const { runtime } = actor.awake();
    return runtime.exists ? [runtime.state] : [];
  });
}

function violationsOf(world: FlowWorld): string[] {
  const turns = turnsOf(world);
  const runs = statesOf(world);
  return [
    ...world.log,
    ...rest(world, turns, runs),
    ...owners(turns, runs),
    ...survivors(world, turns),
    ...ledger(world, turns),
    ...outcomes(world, turns),
    ...starts(world, runs),
  ];
}

/** Every turn and every run ends, every call has a result, and every envelope has its outcome. */
function rest(world: FlowWorld, turns: readonly Turn[], runs: readonly RunState[]): string[] {
  const actors = [...world.conversations.values(), ...world.runs.values()];
  return [
    ...turns.filter(({ status }) => status === "active").map(({ n }) => `turn ${n} is still active`),
    ...turns.flatMap(({ n, operations }) =>
      operations
        .filter(({ result }) => result === undefined)
        .map(({ item }) => `call ${item} of ${n} is open`),
    ),
    ...runs.filter((run) => !isOver(run)).map(({ record }) => `${record.id} continues`),
    ...actors
      .filter(({ keyValue }) => keyValue.list("mailbox:out:", 1).length > 0)
      .map(({ id }) => `${id} has envelopes under way`),
    ...[...world.conversations.values()].flatMap(({ id, life }) =>
      id !== world.root.id && life?.runtime.exists && life.runtime.state.status === "active"
        ? [`${id} was never closed`]
        : [],
    ),
  ];
}

const TOKEN_ENDS: ReadonlySet<RunEntryType> = new Set(["token.completed", "token.failed", "token.cancelled"]);
const RUN_ENDS: ReadonlySet<RunEntryType> = new Set([
  ...(["workflow.completed", "workflow.failed", "workflow.cancelled", "workflow.timed_out"] as const),
]);
/** Maximum time between the check of the run above by a start and its commit, in milliseconds. */
const START_MS = 100;

/** Each start has one end, no run starts work after its end, and no tree reserves room at rest. */
function starts({ runs: actors }: FlowWorld, runs: readonly RunState[]): string[] {
  return runs.flatMap((run) => {
    const { id, parent, createdAt } = run.record;
    const entries = entriesOf(actors.get(id));
    const started = entries.flatMap(({ type, token }) => (type === "task.dispatched" ? [token] : []));
    const ends = entries.flatMap(({ type, token }) => (TOKEN_ENDS.has(type) ? [token] : []));
    const last = entries.findIndex(({ type }) => RUN_ENDS.has(type));
    const above = parent && actors.get(parent.runId)?.awake().runtime.endedAt;
    const late = above === undefined ? 0 : createdAt - above;
    return [
      ...[...new Set(started)]
        .filter((token) => ends.filter((one) => one === token).length !== 1)
        .map((token) => `the start of token ${token} of ${id} does not have exactly one end`),
      ...(entries.slice(last + 1).some(({ type }) => type === "task.dispatched" || RUN_ENDS.has(type))
        ? [`${id} continues after its end`]
        : []),
      ...([...run.tokens.values()].some((token) => shareInUse(token) > 0)
        ? [`${id} uses a share at rest`]
        : []),
      ...(late > START_MS ? [`${id} began ${late} ms after the end of the run above`] : []),
    ];
  });
}

function entriesOf(actor: RunActor | undefined): RunEntry[] {
  const journal = actor?.awake().runtime.store.journal;
  const entries: RunEntry[] = [];
  for (;;) {
    const row = journal?.holding(entries.length + 1);
    if (row === undefined) return entries;
    entries.push(...row.entries);
  }
}

/** Each run of a call belongs to one attempt. No attempt has two runs. */
function owners(turns: readonly Turn[], runs: readonly RunState[]): string[] {
  const known = new Set(
    turns.flatMap((turn) =>
      turn.operations.flatMap(({ item, attempt }) =>
        Array.from({ length: attempt }, (_, index) => calledRunId(operationId(turn, item), index + 1)),
      ),
    ),
  );
  return runs.flatMap(({ record }) =>
    record.parent === undefined && !known.has(record.id) ? [`${record.id} belongs to no call`] : [],
  );
}

/** A cancellation arrives within this time on a network without faults. Milliseconds. */
const ARRIVAL_MS = 1_000;

/** Without faults, a run ends when its call waits no longer. */
function survivors({ plan, runs }: FlowWorld, turns: readonly Turn[]): string[] {
  if (plan.crashes > 0 || plan.badDeliveries > 0 || plan.resets.length > 0) return [];
  return turns.flatMap((turn) =>
    turn.operations.flatMap(({ item, status, attempt, result, completedAt = 0 }) => {
      if (status !== "cancelled" && result?.error?.code !== "TIMEOUT") return [];
      const { runtime } = runs.get(calledRunId(operationId(turn, item), attempt))?.awake() ?? {};
      const end = runtime?.exists ? (runtime.endedAt ?? Number.POSITIVE_INFINITY) : 0;
      return end > completedAt + ARRIVAL_MS
        ? [`the run of ${item} worked on for ${end - completedAt} ms`]
        : [];
    }),
  );
}

/**
 * The conversation has spent the tokens that the providers counted in all runs below it. It may have spent more if tokens were estimated, and less
 * if a stopped run had agents that reported too late.
 */
function ledger({ plan, root, requests, crashed }: FlowWorld, turns: readonly Turn[]): string[] {
  const { spent } = root.awake().runtime.state;
  const counted = requests.answered * TOKENS;
  const isStopped = turns.some(({ operations }) =>
    operations.some(({ status, result }) => status === "cancelled" || result?.error?.code === "TIMEOUT"),
  );
  const isExact = crashed === 0 && requests.lost === 0 && plan.resets.length === 0;
  const isRight = (isExact ? spent.tokens <= counted : true) && (isStopped || spent.tokens >= counted);
  return isRight
    ? []
    : [`the conversation has spent ${spent.tokens} tokens, and the providers counted ${counted}`];
}

/** Maximum time of the network and the models in a run, in milliseconds. */
const MARGIN_MS = 10_000;

/** The outcome of a flow: its longest time between two answers of people, and the time since the last answer. */
interface Course {
  longest: number;
  since: number;
  /** The flow fails by itself; `maybe` if the times are too close to decide. */
  fails: boolean | "maybe";
}

function courseOf({ steps }: FlowPlan, before = 0): Course {
  let course: Course = { longest: before, since: before, fails: false };
  const take = (milliseconds: number) => {
    const since = course.since + milliseconds;
    course = { ...course, since, longest: Math.max(course.longest, since) };
  };
  for (const step of steps) {
    if (course.fails === true) return course;
    if (step.kind === "flow") {
      const below = courseOf(step.flow, course.since);
      course = {
        ...below,
        longest: Math.max(course.longest, below.longest),
        fails: below.fails || course.fails,
      };
    } else if (step.kind === "task") {
      take(step.ms);
    } else if (step.kind === "gate") {
      if (step.ms === undefined) return { ...course, fails: true };
      course = { ...course, since: 0 };
    } else {
      const { calls, ms, asks, timeoutMs = DAY } = step;
      if (calls > 0 && asks !== undefined) course = { ...course, since: 0 };
      const time = calls * ms;
      take(Math.min(time, timeoutMs));
      if (time > timeoutMs + MARGIN_MS) return { ...course, fails: true };
      if (time + MARGIN_MS > timeoutMs) course = { ...course, fails: "maybe" };
    }
  }
  return course;
}

/** Returns the time of all runs of a flow, one after another. */
function totalOf({ steps }: FlowPlan): number {
  return steps.reduce((sum, step) => {
    if (step.kind === "flow") return sum + (step.width ?? 1) * totalOf(step.flow);
    if (step.kind === "task") return sum + step.ms + MARGIN_MS;
    if (step.kind === "gate") return sum + (step.ms ?? step.limit ?? 0);
    return sum + step.calls * (step.ms + MARGIN_MS) + (step.asks ?? 0);
  }, 0);
}

/** Without faults and stops, each call ends as its flow and its time limit require. */
function outcomes({ plan }: FlowWorld, turns: readonly Turn[]): string[] {
  if (plan.crashes > 0 || plan.badDeliveries > 0 || plan.stops.length > 0 || plan.resets.length > 0)
    return [];
  const planned = new Map(
    plan.turns.flatMap(({ calls }) => calls).map((call) => [`flow_${call.flow.id}`, call]),
  );
  return turns.flatMap(({ operations }) =>
    operations.flatMap(({ name, result }) => {
      const call = planned.get(name);
      const expected = call === undefined ? undefined : expectedOf(call);
      if (call === undefined || expected === undefined) return [];
      const found = result?.success ? JSON.stringify(result.result) : (result?.error?.code ?? "");
      return found === expected
        ? []
        : [`${name} gave ${found} and not ${expected}: ${result?.error?.message}`];
    }),
  );
}

/** Returns the result of a call, or the code of its error; `undefined` if the times are too close to decide. */
function expectedOf({ flow, timeoutMs = DAY }: FlowCall): string | undefined {
  // Runs that wait for room or for each other take longer than one branch.
  const isWide = flowsOf(flow).some(({ steps }) =>
    steps.some((step) => step.kind === "flow" && step.width !== undefined),
  );
  if (isWide && totalOf(flow) + MARGIN_MS > timeoutMs) return undefined;
  const { longest, fails } = courseOf(flow);
  if (longest > timeoutMs + MARGIN_MS) return fails === false ? "TIMEOUT" : undefined;
  if (longest + MARGIN_MS > timeoutMs || fails === "maybe") return undefined;
  return fails ? "EXECUTION_FAILED" : JSON.stringify({ done: `F${flow.id}` });
}
