/**
 * Checks trees of calls after kills. Pure.
 *
 * KILLTREE-1  Every turn ends, and every conversation of a call is over, also after stops and kills.
 * KILLTREE-2  Each operation has one outcome.
 * KILLTREE-3  A `once` tool runs at most once per operation, and exactly once if it succeeded.
 * KILLTREE-4  The usage of each conversation is the sum of its own model calls and of the calls below it. Each amount counts once.
 */
import type { RoomRecord, TreeRecord, TreesHistory } from "./history.ts";

const OUTCOME = /^tool\.(?:completed|failed|cancelled)$/;

/** Returns the violations of a history, in words. */
export function checkTrees({ trees, hits }: TreesHistory): string[] {
  const runs = new Map<string, number>();
  for (const { operationId, isOnce } of hits)
    if (isOnce) runs.set(operationId, (runs.get(operationId) ?? 0) + 1);
  const repeated = [...runs].filter(([, count]) => count > 1);
  const unrun = trees
    .flatMap(({ rooms }) => rooms)
    .flatMap(({ once, succeeded }) => once.filter((id) => succeeded.includes(id) && !runs.has(id)));
  return [
    ...repeated.map(([id, count]) => `KILLTREE-3 ${id} ran ${count} times`),
    ...unrun.map((id) => `KILLTREE-3 ${id} succeeded, and ran 0 times`),
    ...trees.flatMap(({ rooms }) => [
      ...rooms.flatMap(ends),
      ...rooms.flatMap(outcomes),
      ...rooms.flatMap((room) => amounts(room, rooms)),
    ]),
  ];
}

/** Returns the missing kinds of trees. A run must contain each kind, or it proves too little. */
export function missingInTrees({ trees, hits }: TreesHistory): string[] {
  const kinds: [boolean, string][] = [
    [trees.some(({ rooms }) => rooms.length > 10), "tree of three levels"],
    [trees.some(({ stopped }) => stopped), "tree that was stopped"],
    [trees.some(isComplete), "tree that was completed"],
    [hits.some(({ isOnce }) => isOnce), "run of a `once` tool"],
  ];
  return kinds.flatMap(([isThere, what]) => (isThere ? [] : [`There was no ${what}.`]));
}

function isComplete({ rooms: [root] }: TreeRecord): boolean {
  return root?.journal.some(({ type }) => type === "turn.completed") ?? false;
}

function ends({ id, operationId, status, active }: RoomRecord): string[] {
  return [
    ...(active === 0 ? [] : [`KILLTREE-1 ${active} turns of ${id} are active`]),
    ...(operationId === undefined || status === "completed" ? [] : [`KILLTREE-1 ${id} is ${status}`]),
  ];
}

function outcomes({ id, journal }: RoomRecord): string[] {
  const asked = journal.filter(({ type }) => type === "tool.requested");
  return asked.flatMap(({ operationId }) => {
    const count = journal.filter(
      (entry) => entry.operationId === operationId && OUTCOME.test(entry.type),
    ).length;
    return count === 1 ? [] : [`KILLTREE-2 ${operationId} of ${id} has ${count} outcomes`];
  });
}

function amounts({ id, calls, spent, counted }: RoomRecord, rooms: readonly RoomRecord[]): string[] {
  const opened = calls.map(({ operationId }) => operationId);
  const below = rooms
    .filter(({ operationId = "" }) => opened.includes(operationId))
    .reduce((sum, room) => sum + room.spent.tokens, 0);
  const own = spent.tokens - below;
  // The usage of interrupted calls is an estimate. The estimate is at least the counted usage.
  const isRight = spent.estimated ? own >= counted : own === counted;
  return isRight ? [] : [`KILLTREE-4 ${id} has spent ${own} tokens of its own, and ${counted} were counted`];
}
