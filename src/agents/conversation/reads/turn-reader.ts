/**
 * The turns that one read needs, with their content: active ones from memory, finished ones from the store, each once.
 *
 * READ-1  A read returns whole turns, at least one, and stops at `MAX_READ_LENGTH`.
 */
import { turnLength } from "../core/content-size.ts";
import type { TurnLookup } from "../core/frames.ts";
import type { ConversationState, Turn } from "../core/state.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";

/** In UTF-16 units. */
const MAX_READ_LENGTH = 4 * 1024 * 1024;

export class TurnReader {
  readonly #taken = new Map<number, Turn | undefined>();
  #length = 0;

  constructor(
    private readonly state: ConversationState,
    private readonly store: ConversationDatabase,
  ) {}

  readonly take: TurnLookup = (n) => {
    if (this.#taken.has(n)) return this.#taken.get(n);
    const turn = this.state.active.get(n) ?? this.store.turn(n) ?? undefined;
    this.#taken.set(n, turn);
    if (turn !== undefined) this.#length += turnLength(turn);
    return turn;
  };

  /** Reports whether the read may take this turn. */
  admits(n: number): boolean {
    return this.#taken.has(n) || this.#length < MAX_READ_LENGTH;
  }
}
