/**
 * The table `turns`: one row per turn. An active turn's content is in its row and in the texts that the row refers to. The row of a
 * finished turn has only the content that its session events lack.
 */
import type { LongText, TextReference } from "../../../memory/session/long-text.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { TurnIssues } from "../../../protocol/caller-schemas.ts";
import { MAX_TURN_NUMBER } from "../../../protocol/ids.ts";
import { defined } from "../../../shared/defined.ts";
import { MAX_PAGE_BYTES } from "../../../shared/page.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import type { ListedTurn } from "../core/decisions.ts";
import { replacedNumber } from "../core/replacement.ts";
import type { StoredParts } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import type { TurnRow } from "../core/turn-events.ts";
import { memberKey } from "./turn-members.ts";
import { packTurn, partKey } from "./turn-packing.ts";
import { factsOf, type StoredTurn, type TurnColumns, type TurnFacts, unpackTurn } from "./turn-reading.ts";

export const CREATE_TURNS =
  "CREATE TABLE IF NOT EXISTS turns (n INTEGER PRIMARY KEY, status TEXT NOT NULL, body TEXT NOT NULL)";

const PUT = `INSERT INTO turns (n, status, body) VALUES (?, ?, ?)
  ON CONFLICT (n) DO UPDATE SET status = excluded.status, body = excluded.body`;
const GET = "SELECT n, status, body FROM turns WHERE n = ?";
const FORWARD = "SELECT n, status, body FROM turns WHERE n > ? ORDER BY n LIMIT ?";
const AFTER = "SELECT n, status, body FROM turns WHERE n > ? ORDER BY n";
const REPLACING = `SELECT n, status, body FROM turns
  WHERE n > ? AND (instr(body, '"regenerates":"') > 0 OR instr(body, '"edits":"') > 0) ORDER BY n`;
const ERASED_FROM = `SELECT n FROM turns WHERE n >= ? AND instr(body, '"erased"') > 0 ORDER BY n`;
const BACKWARD = "SELECT n, status, body FROM turns WHERE n < ? ORDER BY n DESC LIMIT ?";

/** Maximum number of rows in a search for the newest turns of a kind. */
const MAX_LOOK_BACK = 64;

export interface Written {
  /** The parts outside the row: pass them with the turn's next form. */
  stored: StoredParts | undefined;
  /** The texts that the events of a finished turn refer to, by event id. */
  contents: ReadonlyMap<string, TextReference>;
}

export type Amendment = Partial<Pick<Turn, "hooks" | "lateEntries" | "replacedBy">> & {
  issues?: TurnIssues;
};

export class TurnTable {
  constructor(
    private readonly database: SqlDatabase,
    private readonly texts: LongText,
  ) {}

  /** Writes a turn. `before` has the parts from its last write or read. Call it in the transaction that writes the turn's events. */
  put(turn: Turn, before?: StoredParts): Written {
    const { body, texts, dropped, stored, contents } = packTurn(turn, before);
    this.texts.discardKeys(dropped);
    this.texts.write(texts);
    this.database.run(PUT, turn.n, turn.status, body);
    return { stored, contents };
  }

  /** Rewrites a finished turn. Its earlier row and texts are deleted. */
  replace(turn: Turn): void {
    const { stored } = this.get(turn.n) ?? {};
    const members = [...(stored?.texts ?? [])].flatMap(([id, texts]) =>
      [...texts.keys()].map((member) => memberKey(id, member)),
    );
    const parts = (stored?.parts ?? []).map((_, index) => partKey(turn, index));
    const { body, texts } = packTurn(turn);
    this.texts.discardKeys([...members, ...parts]);
    this.texts.write(texts);
    this.database.run(PUT, turn.n, turn.status, body);
  }

  /** Writes a finished turn as `get` returns it. */
  putStored(turn: TurnRow): void {
    const { body, texts } = packTurn({ ...turn, input: "", replies: [], operations: [], call: null });
    this.texts.write(texts);
    this.database.run(PUT, turn.n, turn.status, body);
  }

  /** Adds issues, facts of hooks, numbers of late entries or the next version to a finished turn. */
  amend(n: number, { issues, hooks, lateEntries, replacedBy }: Amendment): void {
    const [row] = this.database.all<TurnColumns>(GET, n);
    if (row === undefined) return;
    const members = JSON.parse(row.body);
    const changed = {
      ...members,
      ...(issues && { issues: { ...members.issues, ...issues } }),
      ...(hooks && { hooks: { ...members.hooks, ...hooks } }),
      ...(lateEntries && { lateEntries: [...(members.lateEntries ?? []), ...lateEntries] }),
      ...defined({ replacedBy }),
    };
    this.database.run(PUT, n, row.status, JSON.stringify(changed));
  }

  /** Returns a turn and the parts outside its row; `null` for an unknown number. */
  get(n: number): { turn: StoredTurn; stored?: StoredParts } | null {
    const [row] = this.database.all<TurnColumns>(GET, n);
    return row === undefined ? null : unpackTurn(row, (references) => this.texts.read(references));
  }

  /** Returns a turn without its content; `null` for an unknown number. */
  facts(n: number): TurnFacts | null {
    const [row] = this.database.all<TurnColumns>(GET, n);
    return row === undefined ? null : factsOf(row);
  }

  /**
   * Lists turns after (or, descending, before) number `n`, without their content. The list has at most `limit` turns, and ends when its
   * rows have `MAX_PAGE_BYTES`. `more` reports whether others follow.
   */
  list(n: number, order: "asc" | "desc", limit: number): { turns: TurnFacts[]; more: boolean } {
    const rows: TurnColumns[] = [];
    let bytes = 0;
    let more = false;
    for (const row of this.database.each<TurnColumns>(order === "asc" ? FORWARD : BACKWARD, n, limit + 1)) {
      more = rows.length === limit || bytes > MAX_PAGE_BYTES;
      if (more) break;
      rows.push(row);
      bytes += utf8Length(row.body);
    }
    return { turns: rows.map(factsOf), more };
  }

  /** Filters the turns after number `n` by their callers. Returns their numbers, ascending. Reads only rows. */
  numbersAfter(n: number, passes: (caller: Turn["caller"]) => boolean): number[] {
    const numbers: number[] = [];
    for (const row of this.database.each<TurnColumns>(AFTER, n))
      if (passes(JSON.parse(row.body).caller)) numbers.push(row.n);
    return numbers;
  }

  /** Returns the newest turn that replaced turn `n` or a turn before it; `undefined` if there is none. Reads only rows after `n`. */
  supersededBy(n: number): TurnFacts | undefined {
    let by: TurnFacts | undefined;
    for (const row of this.database.each<TurnColumns>(REPLACING, n))
      if ((replacedNumber(JSON.parse(row.body)) ?? Number.POSITIVE_INFINITY) <= n) by = factsOf(row);
    return by;
  }

  /** Returns the numbers of the turns with erased content, from number `n` on. May include other turns. */
  erasedFrom(n: number): number[] {
    return this.database.all<{ n: number }>(ERASED_FROM, n).map((row) => row.n);
  }

  /** Returns the newest turns that pass, at most `limit`, descending, without their content. It reads `MAX_LOOK_BACK` rows at most. */
  newest(limit: number, passes: (turn: ListedTurn) => boolean): ListedTurn[] {
    const found: ListedTurn[] = [];
    if (limit === 0) return found;
    // Replaced turns are left out: from the replaced turn up to the turn that replaced it.
    let end = Number.POSITIVE_INFINITY;
    for (const row of this.database.each<TurnColumns>(BACKWARD, MAX_TURN_NUMBER + 1, MAX_LOOK_BACK)) {
      const { agentId, caller, exchange, silent, regenerates, edits } = JSON.parse(row.body);
      if (row.n >= end) continue;
      end = replacedNumber({ regenerates, edits }) ?? end;
      // SAFETY: only `put` writes this column.
      const turn = {
        n: row.n,
        status: row.status as ListedTurn["status"],
        agentId,
        caller,
        ...defined({ exchange, silent }),
      };
      if (passes(turn)) found.push(turn);
      if (found.length === limit) break;
    }
    return found;
  }
}
