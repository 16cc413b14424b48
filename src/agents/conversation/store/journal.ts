/**
 * The table `journal`: one packed row per commit, with the commit's entries and the head after it.
 *
 * JOURNAL-1  Entry numbers have no gaps: the first number of a row follows the last number of the previous row.
 * TITLE-2  The erasure of a message also erases titles in the journal that are from the message, or from a model that saw it. Their entries
 *          have the title `null`.
 * HEAD-1  `unpackHead(packHead(head))` equals the head. Heads are never rewritten.
 */
import { type Amounts, addAmounts, subtractAmounts } from "../../../model/spending.ts";
import type { UsageTotals } from "../../../model/usage.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { EntryType } from "../../../protocol/journal.ts";
import { defined } from "../../../shared/defined.ts";
import { invalid } from "../../../shared/errors.ts";
import { lastSeq } from "../../../shared/journal-row.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { isRecorded, withoutGiven, withoutTexts } from "../core/erasure.ts";
import type { JournalEntry, JournalRow } from "../core/journal-entry.ts";
import { type Head, NEW_STATE } from "../core/state.ts";

export const CREATE_JOURNAL =
  "CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, body TEXT NOT NULL)";

const INSERT = "INSERT INTO journal (seq, at, body) VALUES (?, ?, ?)";
const NEWEST = "SELECT seq, at, body FROM journal ORDER BY seq DESC LIMIT 1";
/** The row of an entry is the last row that begins at or before the entry. */
const FORWARD = `SELECT seq, at, body FROM journal
  WHERE seq >= coalesce((SELECT max(seq) FROM journal WHERE seq <= ?), 0) ORDER BY seq LIMIT ?`;
const BACKWARD = "SELECT seq, at, body FROM journal WHERE seq <= ? ORDER BY seq DESC LIMIT ?";

/** Rows with entries of an item of a turn. May include false matches. */
const OF_ITEM = "SELECT seq, at, body FROM journal WHERE seq >= ?1 AND instr(body, ?2) > 0 ORDER BY seq";
/** As `OF_ITEM`, and rows with entries of hooks. */
const OF_ITEM_OR_HOOK = `SELECT seq, at, body FROM journal WHERE seq >= ?1 AND (instr(body, ?2) > 0
  OR (instr(body, ?3) > 0 AND (instr(body, '"memory_extraction.') > 0 OR instr(body, '"context_assembly.') > 0
    OR instr(body, '"task.') > 0))) ORDER BY seq`;
/** Entries of hooks have texts that derive from the turn's texts. */
const OF_HOOK = /^(?:memory_extraction|context_assembly)\./;
/** Rows that changed the title. May include false matches. */
const OF_TITLE = `SELECT seq, at, body FROM journal WHERE instr(body, '["conversation.updated",null,null,{"title":"') > 0`;
/** Rows that may have entries of a type, newest first. */
const OF_TYPE = "SELECT seq, at, body FROM journal WHERE instr(body, ?) > 0 ORDER BY seq DESC";
const REPLACE = "UPDATE journal SET body = ? WHERE seq = ?";

type Row = { seq: number; at: number; body: string };

export class Journal {
  constructor(private readonly database: SqlDatabase) {}

  append({ seq, at, entries }: JournalRow, head: Head): void {
    this.database.run(INSERT, seq, at, JSON.stringify([packHead(head), ...entries.map(packEntry)]));
  }

  newest(): { row: JournalRow; head: Head } | null {
    const [stored] = this.database.all<Row>(NEWEST);
    return stored === undefined ? null : unpack(stored);
  }

  /** Returns the head after the commit with entry `seq`; `null` for an entry before the first. */
  headAt(seq: number): Head | null {
    const [stored] = this.database.all<Row>(BACKWARD, seq, 1);
    return stored === undefined ? null : unpack(stored).head;
  }

  /**
   * Returns the head after the commit that ended turn `n`, with that commit's last entry; `null` if it has not ended. `from` is the turn's
   * first entry. A turn never becomes active again, so the search goes in growing steps from there, and then by halves.
   */
  endOf(from: number, n: number): (Head & { seq: number }) | null {
    const newest = this.newest();
    if (newest === null || newest.head.active.includes(n)) return null;
    let first = from;
    let found = newest;
    for (let step = 1; first < found.row.seq; step *= 2) {
      const middleSeq = Math.floor((first + found.row.seq - 1) / 2);
      const [stored] = this.database.all<Row>(BACKWARD, Math.min(first + step - 1, middleSeq), 1);
      if (stored === undefined) break;
      const middle = unpack(stored);
      // The journal lacks rows.
      if (lastSeq(middle.row) < first) break;
      if (middle.head.active.includes(n)) first = lastSeq(middle.row) + 1;
      else found = middle;
    }
    return { ...found.head, seq: lastSeq(found.row) };
  }

  /** Returns the newest entry of a type that `fits`, with its number; `null` if there is none. */
  newestOf(
    type: EntryType,
    fits: (entry: JournalEntry) => boolean = () => true,
  ): (JournalEntry & { seq: number }) | null {
    for (const stored of this.database.each<Row>(OF_TYPE, `"${type}",`)) {
      const { row } = unpack(stored);
      const index = row.entries.findLastIndex((entry) => entry.type === type && fits(entry));
      const entry = row.entries[index];
      if (entry !== undefined) return { ...entry, seq: row.seq + index };
    }
    return null;
  }

  /** Returns at most `limit` rows, ascending, from the row with entry `from` on. */
  forward(from: number, limit: number): JournalRow[] {
    return this.#rows(FORWARD, from, limit);
  }

  /** Yields the rows of `forward`, and unpacks each when it is needed. */
  *along(from: number, limit: number): Generator<JournalRow> {
    for (const stored of this.database.all<Row>(FORWARD, from, limit)) yield unpack(stored).row;
  }

  /** Returns at most `limit` rows, descending, from the last row that begins at or before entry `from`. */
  backward(from: number, limit: number): JournalRow[] {
    return this.#rows(BACKWARD, from, limit);
  }

  /** Returns at most `limit` rows with their heads, ascending, from the row with entry `from` on. */
  withHeads(from: number, limit: number): { row: JournalRow; head: Head }[] {
    return this.database.all<Row>(FORWARD, from, limit).map(unpack);
  }

  /** Returns at most `limit` rows as they are stored, from the row with entry `from` on. */
  raw(from: number, limit: number): { seq: number; at: number; body: unknown[] }[] {
    return this.database
      .all<Row>(FORWARD, from, limit)
      .map(({ seq, at, body }) => ({ seq, at, body: JSON.parse(body) as unknown[] }));
  }

  /** Appends a row as `raw` returned it. Throws `INVALID_INPUT` unless it follows the newest. */
  putRaw({ seq, at, body }: { seq: number; at: number; body: unknown[] }): void {
    const newest = this.newest();
    const next = newest === null ? 1 : newest.row.seq + newest.row.entries.length;
    if (seq !== next) throw invalid(`The next entry of the journal is ${next}, not ${seq}.`);
    this.database.run(INSERT, seq, at, JSON.stringify(body));
  }

  /** Returns the numbers of the entries of an item of turn `n`, from entry `from` on. */
  entriesOf(from: number, n: number, item: number): number[] {
    return this.#rowsOf(from, n, item).flatMap((stored) => {
      const { row } = unpack(stored);
      return row.entries.flatMap((entry, index) => (isOf(entry, n, item) ? [row.seq + index] : []));
    });
  }

  /** Removes the texts from the data of the entries of an item of turn `n`, and of the turn's hooks, from entry `from` on. */
  redact(from: number, n: number, item: number): void {
    const begin = this.#beginOf(from);
    const hooks = new Set<number | null | undefined>();
    for (const stored of this.database.all<Row>(OF_ITEM_OR_HOOK, begin, `",${n},${item}`, `",${n},`)) {
      // SAFETY: only `append` writes this column.
      const [head, ...packed] = JSON.parse(stored.body) as [PackedHead, ...PackedEntry[]];
      const ofHooks = packed.filter(([type, turn]) => turn === n && OF_HOOK.test(type));
      for (const [, , place] of ofHooks) hooks.add(place);
      const redacted = packed.map((entry): PackedEntry => {
        const [type, turn, place, data] = entry;
        if (data === undefined || type === "entry.erased") return entry;
        // The report of several failures names no turn. It quotes the last failure, which is in its row.
        const isReport = type === "memory_extraction.failing" && ofHooks.length > 0;
        const isHooks = turn === n && (OF_HOOK.test(type) || (isRecorded(type) && hooks.has(place)));
        if (isReport || isHooks) return [type, turn ?? null, place ?? null, withoutGiven(data)];
        if (turn !== n || place !== item) return entry;
        return [type, turn, place, withoutTexts(data)];
      });
      this.database.run(REPLACE, JSON.stringify([head, ...redacted]), stored.seq);
    }
  }

  titles(): Set<string> {
    const entries = this.database.all<Row>(OF_TITLE).flatMap((stored) => unpack(stored).row.entries);
    return new Set(entries.flatMap(({ type, data }) => titleIn(type, data) ?? []));
  }

  /** Returns the titles that models gave to the conversation, and who wrote each, oldest first. */
  titlesByModels(): { seq: number; title: string; turnId: string; by: JsonObject }[] {
    return this.database.all<Row>(OF_TITLE).flatMap((stored) =>
      unpack(stored).row.entries.flatMap(({ type, data }) => {
        const title = titleIn(type, data);
        if (title === undefined || !isJsonObject(data) || data.automatic !== true) return [];
        const { by } = data;
        return isJsonObject(by) && typeof by.turnId === "string"
          ? [{ seq: stored.seq, title, turnId: by.turnId, by }]
          : [];
      }),
    );
  }

  removeTitles(titles: readonly string[]): void {
    for (const stored of this.database.all<Row>(OF_TITLE)) {
      // SAFETY: only `append` writes this column.
      const [head, ...packed] = JSON.parse(stored.body) as [PackedHead, ...PackedEntry[]];
      const kept = packed.map((entry): PackedEntry => {
        const [type, turn, item, data] = entry;
        const title = titleIn(type, data);
        if (!isJsonObject(data) || title === undefined || !titles.includes(title)) return entry;
        return [type, turn ?? null, item ?? null, { ...data, title: null }];
      });
      this.database.run(REPLACE, JSON.stringify([head, ...kept]), stored.seq);
    }
  }

  #rowsOf(from: number, n: number, item: number): Row[] {
    return this.database.all<Row>(OF_ITEM, this.#beginOf(from), `",${n},${item}`);
  }

  /** Returns the first entry number of the row with entry `from`. */
  #beginOf(from: number): number {
    return this.database.all<Row>(BACKWARD, from, 1)[0]?.seq ?? from;
  }

  #rows(statement: string, from: number, limit: number): JournalRow[] {
    return this.database.all<Row>(statement, from, limit).map((stored) => unpack(stored).row);
  }
}

/** Without zeros at the end. */
type PackedSpending = [tokens?: number, nanoDollars?: number, toolCalls?: number, modelCalls?: number];
type PackedUsage = [calls: number, input: number, cached: number, output: number, nanoDollars: number];
/** The head in each row. Names are short, and members with their initial value are left out. */
type PackedHead = {
  /** Turns. */
  n?: number;
  s?: Head["sessions"];
  /** Active turns. */
  a?: Head["active"];
  u?: PackedUsage;
  st?: Head["status"];
  g?: Head["gate"];
  o?: Head["order"];
  m?: NonNullable<Head["orchestration"]>;
  q?: NonNullable<Head["queue"]>;
  c?: Head["compactions"];
  i?: NonNullable<Head["titling"]>;
  x?: NonNullable<Head["extraction"]>;
  b?: Head["budget"];
  l?: NonNullable<Head["leases"]>;
  /** Spent: the amounts that the usage lacks. */
  p?: PackedSpending;
  /** Spent by agents. */
  w?: Record<string, PackedSpending>;
  t?: NonNullable<Head["exchanges"]>;
};
type PackedEntry = [type: EntryType, turn?: number | null, item?: number | null, data?: Json];

export function packHead({
  turns,
  sessions,
  active,
  usage,
  status,
  gate,
  order,
  orchestration,
  queue,
  compactions,
  titling,
  extraction,
  budget,
  leases,
  spent,
  spentBy,
  exchanges,
}: Head): PackedHead {
  const beyond = subtractAmounts(spent, amountsOfUsage(usage));
  return defined({
    n: turns === 0 ? undefined : turns,
    s: Object.keys(sessions).length === 0 ? undefined : sessions,
    a: active.length === 0 ? undefined : active,
    u: isUnused(usage) ? undefined : packUsage(usage),
    st: status === NEW_STATE.status ? undefined : status,
    g: gate === NEW_STATE.gate ? undefined : gate,
    o: order === NEW_STATE.order ? undefined : order,
    m: orchestration,
    q: queue,
    c: Object.keys(compactions).length === 0 ? undefined : compactions,
    i: titling,
    x: extraction,
    b: budget,
    l: leases,
    p: Object.values(beyond).some((amount) => amount !== 0) ? packSpending(beyond) : undefined,
    w: spentBy && mapped(spentBy, packSpending),
    t: exchanges,
  });
}

export function unpackHead({
  n: turns,
  s: sessions,
  a: active = [],
  u,
  st: status,
  g: gate,
  o: order,
  m: orchestration,
  q: queue,
  c: compactions,
  i: titling,
  x: extraction,
  b: budget,
  l: leases,
  p,
  w,
  t: exchanges,
}: PackedHead): Head {
  const usage = u === undefined ? NEW_STATE.usage : unpackUsage(u);
  const counted = amountsOfUsage(usage);
  const spent = p === undefined ? counted : addAmounts(counted, unpackSpending(p));
  const spentBy = w && mapped(w, unpackSpending);
  return {
    ...NEW_STATE,
    ...defined({ turns, sessions, usage, spent, status, gate, order, orchestration, queue }),
    ...defined({ compactions, titling, extraction, budget, leases, spentBy, exchanges }),
    active,
  };
}

function amountsOfUsage({ calls, inputTokens, outputTokens, nanoDollars }: UsageTotals): Amounts {
  return { tokens: inputTokens + outputTokens, nanoDollars, toolCalls: 0, modelCalls: calls };
}

function packSpending({ tokens, nanoDollars, toolCalls, modelCalls }: Amounts): PackedSpending {
  const amounts = [tokens, nanoDollars, toolCalls, modelCalls];
  // SAFETY: the zeros that are left out are optional.
  return amounts.slice(0, amounts.findLastIndex((amount) => amount !== 0) + 1) as PackedSpending;
}

function unpackSpending([
  tokens = 0,
  nanoDollars = 0,
  toolCalls = 0,
  modelCalls = 0,
]: PackedSpending): Amounts {
  return { tokens, nanoDollars, toolCalls, modelCalls };
}

function mapped<From, To>(
  values: Readonly<Record<string, From>>,
  to: (value: From) => To,
): Record<string, To> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, to(value)]));
}

function packUsage({
  calls,
  inputTokens,
  cachedInputTokens,
  outputTokens,
  nanoDollars,
}: UsageTotals): PackedUsage {
  return [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars];
}

/** Reports whether the usage is zero. A failed attempt uses tokens before its call is counted. */
function isUnused(usage: UsageTotals): boolean {
  return packUsage(usage).every((count) => count === 0);
}

function unpackUsage(packed: PackedUsage): UsageTotals {
  const [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars] = packed;
  return { calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars };
}

function titleIn(type: EntryType, data: Json | undefined): string | undefined {
  if (type !== "conversation.updated" || !isJsonObject(data)) return undefined;
  return typeof data.title === "string" ? data.title : undefined;
}

function isOf({ turn, item }: JournalEntry, n: number, other: number): boolean {
  return turn === n && item === other;
}

function packEntry({ type, turn, item, data }: JournalEntry): PackedEntry {
  if (data !== undefined) return [type, turn ?? null, item ?? null, data];
  if (item !== undefined) return [type, turn ?? null, item];
  return turn === undefined ? [type] : [type, turn];
}

function unpack({ seq, at, body }: Row): { row: JournalRow; head: Head } {
  // SAFETY: only `append` writes this column.
  const [head, ...packed] = JSON.parse(body) as [PackedHead, ...PackedEntry[]];
  const entries = packed.map(([type, turn, item, data]) => ({
    type,
    ...defined({ turn: turn ?? undefined, item: item ?? undefined, data }),
  }));
  return { row: { seq, at, entries }, head: unpackHead(head) };
}
