/** Facts of turns that decide how the console shows them. Pure. */
import {
  type MessageView,
  newestVersions,
  type OperationState,
  type TurnState,
} from "../../src/client/index.ts";
import { STOP_CODE } from "./format.ts";

/** Returns how many turns a turn waits for: its place in the queue, from 1. Returns 0 if it does not wait. */
export function turnsBefore(turns: readonly TurnState[], turn: TurnState): number {
  return turns.filter(isQueued).indexOf(turn) + 1;
}

/** Reports whether somebody stopped the turn. The text of a failed turn is incomplete, but the turn was not stopped. */
export function wasStopped({ error, items }: TurnState): boolean {
  if (error !== undefined) return error.code === STOP_CODE;
  // The turn of an old message may not be loaded.
  return items.some((item) => item.type === "message" && item.message.stopped === true);
}

/**
 * The reason for the wait of a turn. `approval`: a person must approve a call of the turn or of a called agent. `person`: a run asks a
 * person. `result`: a tool reports its result later. `background`: the agent has answered, and its tools still work.
 */
export type Wait = "approval" | "background" | "person" | "result";

/** Returns the reason for the wait of a turn; `null` if the turn does not wait. Background calls count as a wait for a person only if all open calls wait for one. */
export function waitOf({ status, phase, items }: TurnState): Wait | null {
  if (status !== "active" || phase !== "waiting") return null;
  const open = items.flatMap((item) =>
    item.type === "tool" && isOpen(item.operation) ? [item.operation] : [],
  );
  const blocking = open.filter((operation) => !operation.async);
  const waitsBy = (test: (operation: OperationState) => boolean) =>
    blocking.some(test) || (open.length > 0 && open.every(test));
  if (waitsBy(isAsking)) return "approval";
  if (waitsBy(({ held }) => held === true)) return "person";
  return blocking.some(({ deferredUntil }) => deferredUntil !== undefined) ? "result" : "background";
}

/**
 * Returns the turns to show as threads. Messages of other turns stand between the messages of such a turn, or several turns
 * answer now.
 */
export function threadsOf(
  turns: readonly TurnState[],
  messages: readonly MessageView[],
): ReadonlySet<string> {
  const place = new Map<string, { first: number; last: number; count: number }>();
  messages.forEach(({ turnId }, index) => {
    const { first = index, count = 0 } = place.get(turnId) ?? {};
    place.set(turnId, { first, last: index, count: count + 1 });
  });
  const working = turns.filter(isWorking);
  const isThread = (turn: TurnState) => {
    const { first = 0, last = 0, count = 0 } = place.get(turn.id) ?? {};
    if (isWorking(turn)) return working.length > 1 || messages.length - first > count;
    return last - first + 1 > count;
  };
  return new Set(turns.filter(isThread).map(({ id }) => id));
}

/** Returns the turns that later turns replaced. A turn without a message is none of them. */
export function replacedTurns(
  turns: readonly Pick<TurnState, "id">[],
  messages: readonly MessageView[],
): ReadonlySet<string> {
  const known = new Set(messages.map(({ turnId }) => turnId));
  const newest = new Set(newestVersions(messages).map(({ turnId }) => turnId));
  return new Set(turns.map(({ id }) => id).filter((id) => known.has(id) && !newest.has(id)));
}

/** A turn that is shown, and its version. */
export interface ShownTurn<Turn> {
  turn: Turn;
  /** The first version of the turn: all versions share the place. */
  place: string;
  /** The turns that begin the versions, oldest first. */
  versions: readonly string[];
}

/**
 * Returns the turns of the shown versions. A version lasts up to the turn that began the next version. `chosen` has the version of a place;
 * other places show the version with the sought turn, or the newest version.
 */
export function shownTurns<Turn extends Pick<TurnState, "id">>(
  turns: readonly Turn[],
  messages: readonly MessageView[],
  chosen: ReadonlyMap<string, string>,
  sought?: string,
): ShownTurn<Turn>[] {
  const at = new Map(turns.map(({ id }, index) => [id, index]));
  const indexOf = (id = "") => at.get(id) ?? -1;
  const placeOf = new Map<string, string>();
  const places = new Map<string, string[]>();
  for (const { turnId, regenerates, edits } of messages) {
    const old = regenerates ?? edits;
    if (old === undefined || !at.has(old) || placeOf.has(turnId)) continue;
    const place = placeOf.get(old) ?? old;
    placeOf.set(turnId, place);
    places.set(place, [...(places.get(place) ?? [place]), turnId]);
  }
  const hidden = new Set<number>();
  for (const [place, versions] of places) {
    const starts = versions.map(indexOf);
    const end = starts.at(-1) ?? 0;
    const target = indexOf(chosen.get(place) ?? sought);
    const found = target > end ? -1 : starts.findLastIndex((start) => start <= target);
    const index = found === -1 ? versions.length - 1 : found;
    const [from = end, to = end + 1] = [starts[index], starts[index + 1]];
    for (let n = indexOf(place); n <= end; n += 1) if (n < from || n >= to) hidden.add(n);
  }
  return turns.flatMap((turn, index) => {
    const place = placeOf.get(turn.id) ?? turn.id;
    return hidden.has(index) ? [] : [{ turn, place, versions: places.get(place) ?? [] }];
  });
}

function isOpen({ state }: OperationState): boolean {
  return state === "running" || state === "awaiting_approval";
}

/** Reports whether an operation waits for a person: itself, or an agent that it called. */
function isAsking({ state, agent }: OperationState): boolean {
  return state === "awaiting_approval" || (agent?.asks ?? []).length > 0;
}

function isWorking({ status, phase }: TurnState): boolean {
  return status === "active" && phase === undefined;
}

function isQueued({ status, phase }: TurnState): boolean {
  return status === "active" && phase === "queued";
}
