/** The table `run_tokens`: tokens that have not ended, or are stopped until a retry. The input of a node is in the entry that began it. */
import type { LongText, PackedText } from "../../../memory/session/long-text.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { RunEntry } from "../../../protocol/workflow-run.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import type { RunChange } from "../core/draft.ts";
import type { Phase, RunState, Token } from "../core/state.ts";
import type { RunJournal, RunJournalRow } from "./run-journal.ts";

const PUT =
  "INSERT INTO run_tokens (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body";
const DELETE = "DELETE FROM run_tokens WHERE id = ?";
const ALL = "SELECT id, body FROM run_tokens ORDER BY id";

/** The place of the entry that began the work of a token: the first number of its row, and its index there. */
type InputPlace = readonly [row: number, index: number];

/** A stored phase. An input of `null` refers to the input of the run. */
type StoredPhase = WithoutInput<Phase> & { input?: InputPlace | null };
type WithoutInput<Any> = Any extends unknown ? Omit<Any, "input"> : never;

type StoredToken = Omit<Token, "id" | "phase"> & {
  phase: StoredPhase;
  /** The token is stopped until a retry; absent if it has not ended. */
  stopped?: true;
};

export interface StoredTokens {
  readonly tokens: Map<number, Token>;
  readonly stopped: Map<number, Token>;
}

export class TokenTable {
  /** Places of the token inputs that this instance has read or written. */
  readonly #places = new WeakMap<JsonObject, InputPlace>();

  constructor(
    private readonly database: SqlDatabase,
    private readonly texts: LongText,
  ) {}

  put(before: RunState, { state, tokens }: RunChange, row: RunJournalRow): void {
    const begun = new Map(row.entries.flatMap(beginningOf));
    for (const id of tokens) {
      const live = state.tokens.get(id);
      const token = live ?? state.stopped?.tokens.get(id);
      if (token === undefined) {
        if (before.tokens.has(id) || before.stopped?.tokens.has(id)) this.database.run(DELETE, id);
        continue;
      }
      const index = begun.get(id);
      if (index !== undefined && token.phase.kind === "working" && token.phase.input !== before.record.input)
        this.#places.set(token.phase.input, [row.seq, index]);
      const stored = this.#stored(token, before.record.input);
      const text = JSON.stringify(live === undefined ? { ...stored, stopped: true } : stored);
      this.database.run(PUT, id, this.texts.pack(keyOf(id), text));
    }
  }

  /** Returns all tokens. `own` is the input of the run. */
  all(journal: RunJournal, own: JsonObject): StoredTokens {
    const rows = new Map<number, RunJournalRow>();
    const inputAt = (place: InputPlace | null): JsonObject => {
      if (place === null) return own;
      const [seq, index] = place;
      const row = rows.get(seq) ?? journal.at(seq);
      rows.set(seq, row);
      const { data } = row.entries[index] ?? {};
      if (!isJsonObject(data) || !isJsonObject(data.input))
        throw new Error(`Entry ${seq + index} began no node.`);
      return data.input;
    };
    const all: StoredTokens = { tokens: new Map(), stopped: new Map() };
    for (const { id, body } of this.database.each<{ id: number; body: PackedText }>(ALL)) {
      // SAFETY: only `put` writes this column.
      const { phase, stopped, ...token } = JSON.parse(this.texts.unpack(keyOf(id), body)) as StoredToken;
      const { input: place, ...rest } = phase;
      const input = place === undefined ? undefined : inputAt(place);
      if (input !== undefined && place) this.#places.set(input, place);
      // SAFETY: `#stored` leaves out the input of no phase that has one.
      const own = (input === undefined ? rest : { ...rest, input }) as Phase;
      all[stopped === true ? "stopped" : "tokens"].set(id, { ...token, id, phase: own });
    }
    return all;
  }

  #stored({ id, phase: { input, ...phase }, ...token }: Token, own: JsonObject): StoredToken {
    if (input === undefined) return { ...token, phase };
    const place = input === own ? null : this.#places.get(input);
    if (place === undefined) throw new Error(`No entry began token ${id}.`);
    return { ...token, phase: { ...phase, input: place } };
  }
}

/** Returns the token that an entry began, and the entry's index. */
function beginningOf({ type, token }: RunEntry, index: number): [number, number][] {
  return type === "task.dispatched" && token !== undefined ? [[token, index]] : [];
}

function keyOf(id: number): string {
  return `run-token:${id}`;
}
