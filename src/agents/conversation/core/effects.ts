/**
 * The effects that a state calls for. They are derived, never stored: after a crash the same state calls for the same effects.
 *
 * EFFECT-1  A state calls for at most one model call per turn. While the turn waits for an open operation, it calls for no model call.
 * EFFECT-4  Each operation and attempt is a separate effect with a stable key.
 * EFFECT-6  A turn that waits for others after crashes (ISOLATE-2) calls for no effect.
 * CLIENTTOOL-3  A turn that waits for its client calls for no effect: the actor may hibernate until the client answers. It also wakes at
 *               the client's time limit.
 * BEAT-1  The wait for the next heartbeat equals the age of the work, within `MIN_HEARTBEAT_MS` and `MAX_HEARTBEAT_MS`. So a
 *         crash delays young work briefly, and long work needs few heartbeats.
 */
import { callEnd } from "./call-time.ts";
import { MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS } from "./conversation-limits.ts";
import { type Assembly, type Extraction, runningExtractions } from "./hooks.ts";
import { delayedTurns } from "./isolation.ts";
import { dueAt, type Operation } from "./operation.ts";
import { type RunningSideCall, sideCallKey, sideCalls } from "./side-calls.ts";
import type { BaseState, ConversationState } from "./state.ts";
import type { CallingTurn, ModelCall, Turn } from "./turn.ts";
import { joiningOperations, openOperations, runnableOperations, sentCalls } from "./turn-operations.ts";

export type ModelCallEffect = { kind: "model"; key: string; turn: Turn; call: ModelCall };
export type OperationEffect = { kind: "tool"; key: string; turn: Turn; operation: Operation };
/** The context hook of a cycle. */
export type AssemblyEffect = { kind: "assembly"; key: string; turn: Turn; run: Assembly };
/** The extraction of a turn that is over. */
export type ExtractionEffect = { kind: "extraction"; key: string; n: number; run: Extraction };
/** A call for a summary or for a title. */
export type SideCallEffect = { kind: "side-call"; key: string; running: RunningSideCall };

/** The request for the versions of an agent that is to join. */
export type JoinEffect = { kind: "join"; key: string; turn: Turn; operation: Operation };

export type TurnEffect = ModelCallEffect | OperationEffect | AssemblyEffect | JoinEffect;

/** `key` identifies the work: two effects with the same key are the same attempt. */
export type Effect = TurnEffect | BackgroundEffect;

/** An effect that no active turn calls for. */
export type BackgroundEffect = SideCallEffect | ExtractionEffect;

export function effectsOf(state: ConversationState): Effect[] {
  return [...effectsOfTurns(state), ...backgroundEffects(state)];
}

export function effectsOfTurns({ active }: Pick<ConversationState, "active">): TurnEffect[] {
  const delayed = delayedTurns(active);
  return [...active.values()].flatMap((turn) => (delayed.has(turn.n) ? [] : effectsOfTurn(turn)));
}

export function backgroundEffects(
  state: Pick<BaseState, "compactions" | "titling" | "extraction">,
): BackgroundEffect[] {
  const extractions = runningExtractions(state).flatMap(([n, run]): ExtractionEffect[] => {
    if (run.deadline !== undefined || run.reserving !== undefined) return [];
    return [{ kind: "extraction", key: `extraction:${n}:${run.attempt}`, n, run }];
  });
  const calls = sideCalls(state).flatMap((running): SideCallEffect[] =>
    running.call.leasing ? [] : [{ kind: "side-call", key: sideCallKey(running), running }],
  );
  return [...calls, ...extractions];
}

/** Returns the effects that a turn calls for unless it is delayed. */
export function effectsOfTurn(turn: Turn): TurnEffect[] {
  const { n, status, call, assembly } = turn;
  if (status !== "active") return [];
  const effect = (kind: "tool" | "join", operation: Operation): TurnEffect => ({
    kind,
    key: `${kind}:${n}:${operation.item}:${operation.attempt}`,
    turn,
    operation,
  });
  const operations = [
    ...runnableOperations(turn).map((operation) => effect("tool", operation)),
    ...joiningOperations(turn).map((operation) => effect("join", operation)),
  ];
  if (assembly?.reserving !== undefined) return operations;
  if (assembly !== undefined && assembly.deadline === undefined) {
    const key = `assembly:${n}:${assembly.item}:${assembly.attempt}`;
    return [{ kind: "assembly", key, turn, run: assembly }, ...operations];
  }
  if (call === null || call.leasing) return operations;
  return [{ kind: "model", key: modelKey({ n, call }), turn, call }, ...operations];
}

export function modelKey({ n, call }: Pick<CallingTurn, "n" | "call">): string {
  return `model:${n}:${call.item}:${call.attempt}`;
}

/** Returns the keys of the effects that ended. A new turn has no `before`, an ended turn no `after`. */
export function endedEffects(before: Turn | undefined, after: Turn | undefined): string[] {
  if (before === undefined) return [];
  const left = new Set(after === undefined ? [] : effectsOfTurn(after).map(({ key }) => key));
  return effectsOfTurn(before).flatMap(({ key }) => (left.has(key) ? [] : [key]));
}

/** Reports whether something of a turn waits for its agent's answer. */
function isAsking(turn: Turn): boolean {
  const runs = [turn.assembly, ...openOperations(turn)];
  return turn.call?.leasing === true || runs.some((run) => run?.reserving === "leasing");
}

/**
 * Returns the milliseconds until the actor must wake. Returns `null` while no turn is active and no side call runs. Returns `null` also while
 * all active work waits for people without a deadline. Effects are as old as their turn or call, or as this life of the actor, which
 * restarted them at `wokeAt`.
 */
export function dueIn(state: ConversationState, now: number, wokeAt: number): number | null {
  const calls = sideCalls(state);
  const extractions = runningExtractions(state).map(([, run]) => run);
  if (state.active.size === 0 && calls.length === 0 && extractions.length === 0) return null;
  const waiting = [...state.active.values()].flatMap((turn) => [
    ...openOperations(turn),
    ...(turn.assembly === undefined ? [] : [turn.assembly]),
  ]);
  const deadlines = [...waiting, ...extractions].map(dueAt);
  for (const turn of state.active.values())
    deadlines.push(
      ...sentCalls(turn).flatMap(({ status, notBefore = now }) => (status === "pending" ? [notBefore] : [])),
    );
  const { call } = state.record;
  if (call !== undefined) deadlines.push(...[...state.active.values()].map((turn) => callEnd(call, turn)));
  const asking = [...state.active.values()].filter(isAsking);
  const begun = [
    ...asking.map(({ createdAt }) => createdAt),
    ...effectsOfTurns(state).map(({ turn }) => turn.createdAt),
    ...calls.map(({ startedAt }) => startedAt),
    ...extractions.filter(({ deadline }) => deadline === undefined).map(({ startedAt }) => startedAt),
  ];
  const heartbeats = begun.map((at) => heartbeatIn(now - Math.max(at, wokeAt)));
  const due = Math.min(...heartbeats, ...deadlines.map((deadline) => deadline - now));
  return due === Number.POSITIVE_INFINITY ? null : Math.max(0, due);
}

/** Returns the milliseconds until the next heartbeat of work that began `age` milliseconds ago. */
export function heartbeatIn(age: number): number {
  return Math.min(Math.max(age, MIN_HEARTBEAT_MS), MAX_HEARTBEAT_MS);
}
