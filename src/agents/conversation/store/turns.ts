/**
 * The table `turns`: one row per turn. The row of an active or failed turn owns all of its content; the row of a
 * completed turn keeps what its session events do not.
 *
 * ROW-1  A row that has become short leaves no pieces of its long form behind.
 */
import { type LongText, type PackedText, packedBytes } from "../../../memory/session/long-text.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { type Operation, packOperation, type StoredOperation, unpackOperation } from "../core/operation.ts";
import { issuesOf, type Reply, type Turn } from "../core/state.ts";
import { type TurnRow, turnRow } from "../core/turn-events.ts";
import { type PackedCall, packCall, unpackCall } from "./call-rows.ts";
import { currentForm, storedForm } from "./turn-forms.ts";

export const CREATE_TURNS =
  "CREATE TABLE IF NOT EXISTS turns (n INTEGER PRIMARY KEY, status TEXT NOT NULL, body TEXT NOT NULL)";

const PUT = `INSERT INTO turns (n, status, body) VALUES (?, ?, ?)
  ON CONFLICT (n) DO UPDATE SET status = excluded.status, body = excluded.body`;
const GET = "SELECT n, status, body FROM turns WHERE n = ?";
const FORWARD = "SELECT n, status, body FROM turns WHERE n > ? ORDER BY n LIMIT ?";
const BACKWARD = "SELECT n, status, body FROM turns WHERE n < ? ORDER BY n DESC LIMIT ?";

type Row = { n: number; status: string; body: PackedText };

/** A row as read: a whole turn, or a completed one whose content is in the session's events. */
export type StoredTurn = (Turn & { status: "active" | "failed" }) | (TurnRow & { status: "completed" });

/** Bytes of rows in one list: active and failed turns have all of their content in their rows. */
const MAX_LISTED_BYTES = 4 * 1024 * 1024;

/** Members that most turns have alike. Rows leave them out. */
const DEFAULTS = { recoveries: 0, issues: {} } as const;

export class TurnTable {
  /** Turns whose row was seen in pieces since the actor woke. An active turn's row is always seen. */
  readonly #long = new Set<number>();

  constructor(
    private readonly database: SqlDatabase,
    private readonly texts: LongText,
  ) {}

  put(turn: Turn): void {
    const content = turn.status === "completed" ? turnRow(turn) : turn;
    const { n, recoveries, issues: _issues, calls, ...rest } = storedForm(content);
    const body = JSON.stringify({
      ...rest,
      ...(recoveries === 0 ? {} : { recoveries }),
      ...issuesOf(turn),
      // `JSON.stringify` leaves out `undefined`.
      calls: calls?.map((call) => packCall(call, turn.createdAt)),
      ...(turn.status === "completed" ? {} : { operations: packedOperations(turn) }),
    });
    const packed = this.texts.pack(textKey(n), body);
    if (typeof packed !== "string") this.#long.add(n);
    else if (this.#long.has(n)) this.texts.discard(textKey(n));
    this.database.run(PUT, n, turn.status, packed);
  }

  get(n: number): StoredTurn | null {
    const [row] = this.database.all<Row>(GET, n);
    return row === undefined ? null : this.#read(row);
  }

  /**
   * Lists turns after (or, descending, before) number `n`: at most `limit`, and no more once their rows hold
   * `MAX_LISTED_BYTES`. `more` reports whether others follow.
   */
  list(n: number, order: "asc" | "desc", limit: number): { turns: StoredTurn[]; more: boolean } {
    const rows: Row[] = [];
    let bytes = 0;
    let more = false;
    for (const row of this.database.each<Row>(order === "asc" ? FORWARD : BACKWARD, n, limit + 1)) {
      more = rows.length === limit || bytes > MAX_LISTED_BYTES;
      if (more) break;
      rows.push(row);
      bytes += packedBytes(row.body);
    }
    return { turns: rows.map((row) => this.#read(row)), more };
  }

  #read({ n, status, body }: Row): StoredTurn {
    if (typeof body !== "string") this.#long.add(n);
    const stored = currentForm(JSON.parse(this.texts.unpack(textKey(n), body)));
    const value = { ...DEFAULTS, ...stored, n, status };
    if (value.calls !== undefined) {
      value.calls = value.calls.map((call: PackedCall) => unpackCall(call, value.createdAt));
    }
    if (value.operations !== undefined) value.operations = unpackedOperations(value);
    // SAFETY: only `put` writes these columns.
    return value as StoredTurn;
  }
}

function packedOperations({ operations, replies }: Pick<Turn, "operations" | "replies">): StoredOperation[] {
  return operations.map((operation) => packOperation(operation, replies[operation.reply]?.at));
}

function unpackedOperations({
  operations,
  replies,
}: {
  operations: readonly StoredOperation[];
  replies: readonly Reply[];
}): Operation[] {
  return operations.map((operation) => unpackOperation(operation, replies[operation.reply]?.at));
}

function textKey(n: number): string {
  return `turn:${n}`;
}
