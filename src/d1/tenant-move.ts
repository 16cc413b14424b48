/**
 * The move of a tenant's lists to another database, as a pure state machine. Each call of the command takes the next steps, so a move that
 * was interrupted continues with the next call.
 *
 * LISTS-1  A move waits until every isolate refuses the tenant's writes, and until earlier writes have ended. Then it copies.
 * LISTS-2  The old rows are deleted when no isolate reads them any more.
 * LISTS-3  A tenant has one move at a time. A move back to the old database before the end of the copy cancels the move.
 * LISTS-4  A copied row replaces the row with the same key. A copy that repeats after an interruption therefore ends with equal rows.
 */
import { conflict } from "../shared/errors.ts";
import { D1_TIMEOUT_MS } from "./in-time.ts";
import { FIRST_DATABASE, movingTo, PLACE_MS, type TenantPlace } from "./tenant-databases.ts";

/** Time after which no isolate uses an old place, and every write to the old place has ended, in milliseconds. */
const SETTLED_MS = PLACE_MS + 2 * D1_TIMEOUT_MS;

export type MoveStep =
  /** The lists are in the target, and no old rows are left. */
  | { readonly type: "done" }
  | { readonly type: "store"; readonly place: TenantPlace }
  /** Nothing can be done before this time. */
  | { readonly type: "wait"; readonly until: number }
  | { readonly type: "copy" }
  | { readonly type: "delete"; readonly from: string };

/** Returns the next step towards `target`. Throws `CONFLICT` during a move to another database. */
export function nextMove(stored: TenantPlace | null, target: string, now: number): MoveStep {
  const place = stored ?? { name: FIRST_DATABASE, target: null, left: null, copied: null, since: 0 };
  if (place.target !== null && place.name === target)
    return { type: "store", place: { ...place, target: null, left: place.target, copied: null, since: now } };
  const moving = movingTo(place);
  if (moving !== null && moving !== target) {
    const message = `The lists move to ${moving}. End this move before another.`;
    throw conflict(message);
  }
  if (place.target === null && place.left === null) {
    if (place.name === target) return { type: "done" };
    return { type: "store", place: { ...place, target, copied: null, since: now } };
  }
  const until = place.since + SETTLED_MS;
  if (place.copied === null && now < until) return { type: "wait", until };
  if (place.target !== null) return { type: "copy" };
  return { type: "delete", from: place.left ?? "" };
}

/** Returns the place after the target was emptied. The copy is a step of its own, so a late deletion of the emptying finds another begin. */
export function afterEmptying(place: TenantPlace, first: string): TenantPlace {
  return { ...place, copied: first, since: place.since + 1 };
}

/** Returns the place after a slice of the copy. `after` is its last row; `null` after the last slice. */
export function afterCopy(place: TenantPlace, after: string | null, now: number): TenantPlace {
  if (after !== null || place.target === null) return { ...place, copied: after };
  return { name: place.target, target: null, left: place.name, copied: null, since: now };
}

export function afterDeletion(place: TenantPlace): TenantPlace {
  return { ...place, left: null };
}
