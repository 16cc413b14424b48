/** Turns that other turns replaced, from the turns of a conversation at rest. Pure. */
import { MAX_NOTED_REPLACED } from "../../src/agents/conversation/core/conversation-limits.ts";
import type { Operation } from "../../src/agents/conversation/core/operation.ts";
import type { Turn } from "../../src/agents/conversation/core/turn.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { Outcome } from "./history.ts";
import { numberOf } from "./scope.ts";
import type { TurnTimeline } from "./turn-times.ts";

/** Returns the id of the turn that a turn replaced. */
export function replacedId({
  regenerates,
  edits,
}: Pick<TurnView, "regenerates" | "edits">): string | undefined {
  return regenerates ?? edits;
}

/** Returns the numbers of the turns that were replaced before an entry: of each replaced turn, and of the turns after it. */
export function replacedAt({ turns }: Pick<TurnTimeline, "turns">, seq: number): Set<number> {
  const gone = new Set<number>();
  for (const { turn, started } of turns) {
    const old = replacedId(turn);
    if (old === undefined || started >= seq) continue;
    for (let n = numberOf(old); n < numberOf(turn.id); n++) gone.add(n);
  }
  return gone;
}

/** Returns the calls that the note of a replacement must list: calls with effects that the new turn does not take over. Older turns are not read. */
export function notedCalls(turn: TurnView, { contents }: Pick<Outcome, "contents">): Operation[] {
  const n = numberOf(turn.id);
  const versions = versionsOf(contents.get(n), contents);
  const oldest = versions.at(-1);
  const old = versions[0];
  if (oldest === undefined || old === undefined) return [];
  const own = contents.get(n);
  // The originals of the calls that it took over.
  const taken =
    turn.regenerates === undefined
      ? []
      : versions.flatMap((version, index) => originals(version, versions, index));
  return [...contents.values()].flatMap((other) => {
    if (other.n < Math.max(oldest.n, n - MAX_NOTED_REPLACED) || other.n >= n || other === own) return [];
    return other.operations.filter(
      (operation) =>
        operation.reply >= (other.taken ?? 0) &&
        (operation.effect !== "pure" || operation.target !== "code") &&
        !taken.includes(operation),
    );
  });
}

/** Returns the earlier versions of a turn, the newest first. */
function versionsOf(turn: Turn | undefined, contents: ReadonlyMap<number, Turn>): Turn[] {
  const id = turn && replacedId(turn);
  const old = id === undefined ? undefined : contents.get(numberOf(id));
  return old === undefined ? [] : [old, ...versionsOf(old, contents)];
}

/** Returns the calls of a version that a regeneration of the newest version takes over. */
function originals(version: Turn, versions: readonly Turn[], index: number): Operation[] {
  // A chain of regenerations ends at an edit, which starts without calls.
  const newer = versions.slice(0, index);
  if (newer.some(({ regenerates }) => regenerates === undefined)) return [];
  const copied = newer.map(
    ({ operations, taken = 0 }) =>
      new Set(operations.filter(({ reply }) => reply < taken).map(({ item }) => item)),
  );
  return version.operations.filter(({ item }) => copied.every((items) => items.has(item)));
}

/** The content of an ended turn. */
export function keptOf({ input, status, output, error, moves, completedAt }: TurnView) {
  return { input, status, output, error, moves, completedAt };
}
