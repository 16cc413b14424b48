/**
 * The turns that one read needs, with their content. Active turns come from memory, finished turns from the store. Each turn is read once.
 *
 * READ-1  A read returns whole turns, at least one, and stops at its limit.
 * READ-2  Readers that page through a long turn, one after another, read it from the store once.
 */
import { resolveId, type TurnKey } from "../../../protocol/ids.ts";
import { notFound } from "../../../shared/errors.ts";
import { WeakValues } from "../../../shared/weak-values.ts";
import { turnLength } from "../core/content-size.ts";
import type { TurnLookup } from "../core/frames.ts";
import type { ConversationState } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";

/** Default limit of a read, in UTF-16 units. */
const MAX_READ_LENGTH = 4 * 1024 * 1024;
/** Minimum length of a turn that is kept for the next read. */
const LONG_TURN = 64 * 1024;
/** Long turns that are kept. */
const MAX_RECENT = 32;

/** Long turns that were read, until memory is collected. A finished turn never changes. */
export type RecentTurns = WeakValues<number, Turn>;

export const newRecentTurns = (): RecentTurns => new WeakValues(MAX_RECENT);

/** Returns the turn that an id names. Throws `NOT_FOUND` for other ids. */
export function requireTurn<Found extends TurnKey>(
  id: string,
  turnOf: (n: number) => Found | null | undefined,
): Found {
  const found = resolveId(id, "turn", (n) => turnOf(n) ?? null);
  if (found !== null) return found.turn;
  throw notFound(`This conversation has no turn "${id}".`);
}

export class TurnReader {
  readonly #taken = new Map<number, Turn | undefined>();
  #length = 0;

  constructor(
    private readonly state: ConversationState,
    private readonly store: Pick<ConversationDatabase, "turn">,
    private readonly recent: RecentTurns,
    private readonly limit = MAX_READ_LENGTH,
  ) {}

  readonly take: TurnLookup = (n) => {
    if (this.#taken.has(n)) return this.#taken.get(n);
    const turn = this.state.active.get(n) ?? this.recent.get(n) ?? this.store.turn(n) ?? undefined;
    this.#taken.set(n, turn);
    if (turn === undefined) return undefined;
    if (turn.status !== "active" && turnLength(turn) >= LONG_TURN) this.recent.set(n, turn);
    this.#length += turnLength(turn);
    return turn;
  };

  admits(n: number): boolean {
    return this.#taken.has(n) || this.#length < this.limit;
  }
}
