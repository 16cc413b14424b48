/**
 * The effects that the state of a run calls for. Pure.
 *
 * RUNEFFECT-1  An effect has one key for each attempt of a token's work, so it runs once at a time.
 */
import type { RunChange } from "./draft.ts";
import { timeOutAt } from "./fan-in.ts";
import { graphOf } from "./graph.ts";
import { MAX_HEARTBEAT_MS, MIN_HEARTBEAT_MS } from "./run-limits.ts";
import { runDueAt } from "./run-time.ts";
import { definitionOf, isOver, type RunState, type Token, type Working } from "./state.ts";
import { pendingIn } from "./tree-share.ts";
import { workOf } from "./work.ts";

export type RunEffect =
  | TaskEffect
  /** The next commit advances tokens. */
  | { readonly kind: "advance"; readonly key: "advance" };

export interface TaskEffect {
  readonly kind: "task";
  readonly key: string;
  readonly token: Token;
  readonly work: Working;
}

/** Returns every effect that a state calls for. */
export function effectsOf(state: RunState): RunEffect[] {
  return [...[...state.tokens.values()].flatMap((token) => effectOf(state, token)), ...advanceOf(state)];
}

export function effectsAfter(changes: readonly RunChange[], state: RunState): RunEffect[] {
  const touched = new Set(changes.flatMap(({ tokens }) => [...tokens]));
  const own = [...touched].flatMap((id) => {
    const token = state.tokens.get(id);
    return token === undefined ? [] : effectOf(state, token);
  });
  return [...own, ...advanceOf(state)];
}

export function endedBy(changes: readonly (RunChange & { before: RunState })[], state: RunState): string[] {
  return changes.flatMap(({ before, tokens }) =>
    [...tokens].flatMap((id) => {
      const token = before.tokens.get(id);
      const [effect] = token === undefined ? [] : effectOf(before, token);
      const now = state.tokens.get(id);
      const [left] = now === undefined ? [] : effectOf(state, now);
      return effect === undefined || left?.key === effect.key ? [] : [effect.key];
    }),
  );
}

/** Returns in how many milliseconds a run must wake; `null` if it need not. */
export function dueIn(state: RunState, now: number, wokeAt: number): number | null {
  if (isOver(state)) return null;
  const graph = graphOf(definitionOf(state));
  let at = runDueAt(state) ?? Number.POSITIVE_INFINITY;
  for (const fanOut of state.fanOuts.values())
    at = Math.min(at, timeOutAt(fanOut, graph.meeting(fanOut.origin, fanOut.group)) ?? at);
  const heartbeat = now + heartbeatIn(now - wokeAt);
  const isPending = pendingIn(state);
  // Each commit calls this twice, and a run may have thousands of tokens.
  for (const token of state.tokens.values()) {
    const { phase } = token;
    if (at <= now || isPending(token)) return 0;
    if (phase.kind !== "working") continue;
    const until = phase.lostUntil ?? phase.deadline;
    if (until !== undefined) at = Math.min(at, until);
    else if (workOf(state.record, token)?.kind === "task")
      at = Math.min(at, Math.max(phase.notBefore ?? 0, heartbeat));
  }
  return at === Number.POSITIVE_INFINITY ? null : Math.max(0, at - now);
}

/** Returns the wait for the next heartbeat, which restarts lost effects. The wait grows with the time since the last wake. */
function heartbeatIn(age: number): number {
  return Math.min(Math.max(age, MIN_HEARTBEAT_MS), MAX_HEARTBEAT_MS);
}

function effectOf({ record }: RunState, token: Token): TaskEffect[] {
  const { phase, id } = token;
  if (phase.kind !== "working" || phase.lostUntil !== undefined) return [];
  if (workOf(record, token)?.kind !== "task") return [];
  return [{ kind: "task", key: `node:${id}:${phase.attempt}`, token, work: phase }];
}

function advanceOf(state: RunState): RunEffect[] {
  return [...state.tokens.values()].some(pendingIn(state)) && !isOver(state)
    ? [{ kind: "advance", key: "advance" }]
    : [];
}
