/**
 * The turns that one read looks at, with their content: active ones from memory, finished ones from the store, each once.
 *
 * READ-1  A read ends once the turns it took hold `MAX_READ_CHARACTERS`; it takes at least one turn, and takes turns whole.
 */
import type { TurnLookup } from "../core/frames.ts";
import { toolsLength } from "../core/planning/content-size.ts";
import type { ConversationState, Turn } from "../core/state.ts";
import type { ConversationDatabase } from "../store/conversation-database.ts";

const MAX_READ_CHARACTERS = 4 * 1024 * 1024;

export class TurnReader {
  readonly #taken = new Map<number, Turn | undefined>();
  #characters = 0;

  constructor(
    private readonly state: ConversationState,
    private readonly store: ConversationDatabase,
  ) {}

  readonly take: TurnLookup = (n) => {
    if (this.#taken.has(n)) return this.#taken.get(n);
    const turn = this.state.active.get(n) ?? this.store.turn(n) ?? undefined;
    this.#taken.set(n, turn);
    if (turn !== undefined) this.#characters += contentLength(turn);
    return turn;
  };

  /** Whether the read may go on to this turn. */
  admits(n: number): boolean {
    return this.#taken.has(n) || this.#characters < MAX_READ_CHARACTERS;
  }
}

function contentLength({ input, replies, operations, output, tools }: Turn): number {
  const texts = typeof input === "string" ? input.length : JSON.stringify(input).length;
  const answers = replies.reduce(
    (sum, { text, reasoning = "", native }) =>
      sum + text.length + reasoning.length + (native === undefined ? 0 : JSON.stringify(native).length),
    0,
  );
  const demanded = output === undefined ? 0 : JSON.stringify(output).length;
  const brought = demanded + toolsLength(tools);
  return texts + answers + brought + (operations.length === 0 ? 0 : JSON.stringify(operations).length);
}
