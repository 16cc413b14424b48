/**
 * The storage of a run in its actor's database. Only this class writes it.
 *
 * RUNSTORE-1  A commit writes journal, tokens, branches and areas in one transaction of its caller.
 * RUNSTORE-2  A commit writes one row for its entries, and one row for each changed token. It writes one row for all changed branches of a
 *             fan-out, and one row for each written member of an area. The end of a fan-out deletes its rows. So a branch of one node
 *             writes two rows, and a part of the rows that its group shares.
 * RUNSTORE-5  A run that failed keeps the rows of the tokens and fan-outs that a retry needs, at most the number that it had at once. Rows
 *             of a failed branch last until its fan-in fires. Other ended runs keep no such rows.
 * RUNSTORE-3  The state that a wake reads equals the state in memory before.
 */
import { LongText, type PackedText } from "../../../memory/session/long-text.ts";
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { PinnedWorkflow } from "../../../protocol/pinned-workflow.ts";
import { defined } from "../../../shared/defined.ts";
import { conflict } from "../../../shared/errors.ts";
import { lastSeq } from "../../../shared/journal-row.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { VersionedRecord } from "../../base/storage/schema-upgrade.ts";
import type { RunChange } from "../core/draft.ts";
import { headOf, spentIn } from "../core/head.ts";
import type { RunRecord } from "../core/record.ts";
import type { RunState } from "../core/state.ts";
import { BranchTable } from "./branches.ts";
import { RunJournal, type RunJournalRow } from "./run-journal.ts";
import { CREATE_JOURNAL, CREATE_TOKENS, CREATE_VALUES, RUN_KEY, RUN_SCHEMA } from "./run-tables.ts";
import { TokenTable } from "./tokens.ts";

/** The record as stored: its large members are values of their own. */
type StoredRecord = Omit<RunRecord, "workflow" | "input">;

const PUT =
  "INSERT INTO run_values (name, body) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET body = excluded.body";
const ALL = "SELECT name, body FROM run_values";

export class RunDatabase {
  readonly journal: RunJournal;
  readonly #texts: LongText;
  readonly #tokens: TokenTable;
  readonly #branches: BranchTable;
  readonly #record: VersionedRecord<StoredRecord>;
  #newestAt = 0;

  constructor(
    private readonly database: SqlDatabase,
    keyValue: KeyValue,
  ) {
    this.#texts = new LongText(database);
    this.journal = new RunJournal(database, this.#texts);
    this.#tokens = new TokenTable(database, this.#texts);
    this.#branches = new BranchTable(database, this.#texts);
    this.#record = new VersionedRecord(RUN_SCHEMA, { database, keyValue }, RUN_KEY);
  }

  /** The time of the newest commit that was read or written; 0 before. */
  get newestAt(): number {
    return this.#newestAt;
  }

  /** Throws `UNAVAILABLE` for storage of a newer release. */
  checkVersion(): void {
    this.#record.get();
  }

  /** Creates the tables and the record, in the caller's transaction. Throws `CONFLICT` if the run exists. */
  create(state: RunState): RunState {
    const { workflow, input, ...record } = state.record;
    if (this.#record.get() !== undefined) throw conflict("This run already exists.");
    for (const statement of [CREATE_JOURNAL, CREATE_TOKENS, CREATE_VALUES]) this.database.run(statement);
    this.#record.put(record);
    this.#putValue("workflow", workflow as unknown as Json);
    this.#putValue("input", input);
    this.#putChanged("state", {}, state.state);
    this.#putChanged("output", {}, state.root.output);
    this.journal.append(
      { seq: 1, at: record.createdAt, entries: [{ type: "workflow.started" }] },
      headOf(state),
    );
    return state;
  }

  /** Returns the state as of the last commit; `null` before the run was created. */
  load(): RunState | null {
    const stored = this.#record.get();
    const newest = stored === undefined ? null : this.journal.newest();
    if (stored === undefined || newest === null) return null;
    const { row, head } = newest;
    this.#newestAt = Math.max(this.#newestAt, row.at);
    const { workflow, input, result, state, output } = this.#values();
    const { tokens, stopped } = this.#tokens.all(this.journal, input as JsonObject);
    const { fanOuts, stopped: stoppedFanOuts, rootActive } = this.#branches.all(tokens);
    return {
      // SAFETY: only `create` writes these values.
      record: { ...stored, workflow: workflow as unknown as PinnedWorkflow, input: input as JsonObject },
      status: head.s ?? "running",
      seq: lastSeq(row),
      made: { tokens: head.t, fanOuts: head.f ?? 0 },
      state,
      root: { active: rootActive, output },
      tokens,
      fanOuts,
      ...(stopped.size + stoppedFanOuts.size > 0 && {
        stopped: { tokens: stopped, fanOuts: stoppedFanOuts },
      }),
      ...defined({
        error: head.error,
        time: head.time,
        recoveries: head.r,
        retried: head.n && { retries: head.n[0], from: head.n[1] },
        spent: spentIn(head),
        tainted: head.m,
        output: result as JsonObject | undefined,
      }),
    };
  }

  /** Writes a change made at `now` in the current transaction. */
  commit(before: RunState, change: RunChange, now: number): RunJournalRow {
    const { state, entries } = change;
    const row: RunJournalRow = { seq: before.seq + 1, at: now, entries };
    this.journal.append(row, headOf(state));
    this.#newestAt = Math.max(this.#newestAt, now);
    this.#tokens.put(before, change, row);
    this.#branches.put(before, change, row.seq);
    this.#putChanged("state", before.state, state.state);
    this.#putChanged("output", before.root.output, state.root.output);
    if (state.output !== before.output && state.output !== undefined) this.#putValue("result", state.output);
    return row;
  }

  /** Reports whether a state belongs to the newest commit. */
  isCurrent({ seq }: Pick<RunState, "seq">): boolean {
    const newest = this.journal.newest();
    return newest !== null && lastSeq(newest.row) === seq;
  }

  #putChanged(area: "state" | "output", before: Json, after: Json): void {
    if (before === after) return;
    const [old, members] = [Object(before) as JsonObject, Object(after) as JsonObject];
    for (const [name, value] of Object.entries(members))
      if (!Object.hasOwn(old, name) || old[name] !== value) this.#putValue(`${area}.${name}`, value);
  }

  #putValue(name: string, value: Json): void {
    this.database.run(PUT, name, this.#texts.pack(`run-value:${name}`, JSON.stringify(value)));
  }

  #values(): {
    workflow: Json;
    input: Json;
    result: Json | undefined;
    state: JsonObject;
    output: JsonObject;
  } {
    const values: [string, Json][] = [];
    for (const { name, body } of this.database.each<{ name: string; body: PackedText }>(ALL))
      values.push([name, JSON.parse(this.#texts.unpack(`run-value:${name}`, body))]);
    const area = (prefix: string) =>
      Object.fromEntries(
        values.flatMap(([name, value]) =>
          name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
        ),
      );
    const { workflow = null, input = null, result } = Object.fromEntries(values);
    return { workflow, input, result, state: area("state."), output: area("output.") };
  }
}
