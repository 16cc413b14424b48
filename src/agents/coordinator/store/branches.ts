/**
 * The tables `run_fan_outs` and `run_branches`: fan-outs that are open or stopped until a retry, and the progress of their branches.
 *
 * RUNSTORE-4  A row of branches has the members of their outputs that its commit changed, and the tokens that arrived with it. For an
 *             extended list it has the added elements. For an extended text it has the added text. So a branch of many nodes stores each of
 *             their outputs once, also if its nodes collect them in a list. A list that changes elsewhere is stored from its first changed
 *             element on, and a text whole.
 */
import type { LongText, PackedText } from "../../../memory/session/long-text.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { defined } from "../../../shared/defined.ts";
import type { RunChange } from "../core/draft.ts";
import type { Branch, FanOut, RunState, ScopeKey, Token } from "../core/state.ts";
import { CREATE_BRANCHES, CREATE_FAN_OUTS } from "./run-tables.ts";
import { type Assignment, patched, patchOf } from "./value-patch.ts";

const PUT =
  "INSERT INTO run_fan_outs (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body";
const DELETE = "DELETE FROM run_fan_outs WHERE id = ?";
const ALL = "SELECT id, body FROM run_fan_outs ORDER BY id";
const EXISTS = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'run_fan_outs'";
const ADD = "INSERT INTO run_branches (fan_out, seq, body) VALUES (?, ?, ?)";
const BRANCHES = "SELECT fan_out, seq, body FROM run_branches ORDER BY fan_out, seq";
const ROWS = "SELECT seq FROM run_branches WHERE fan_out = ? AND typeof(body) <> 'text'";
const DELETE_BRANCHES = "DELETE FROM run_branches WHERE fan_out = ?";

/** A stored fan-out. The progress of its branches is counted again when it is read. */
type StoredFanOut = Omit<FanOut, "id" | "branches" | "finished" | "failed"> & {
  total: number;
  /** The fan-out is stopped until a retry; absent if it is open. */
  stopped?: true;
};

/** The part of a branch that a commit changed; absent members stay. */
type BranchChange = readonly [
  index: number,
  change: {
    output?: readonly Assignment[];
    /** The number of earlier arrivals that stay, and the tokens that arrived with this commit. */
    arrived?: readonly [kept: number, ...added: number[]];
    /** `null` if a retry has taken the failure back. */
    failure?: Branch["failure"] | null;
    tally?: Branch["tally"];
  },
];

/** All fan-outs by number, and how many tokens and fan-outs are active in no branch. */
export interface StoredFanOuts {
  readonly fanOuts: Map<number, FanOut>;
  readonly stopped: Map<number, FanOut>;
  readonly rootActive: number;
}

const NEW_BRANCH: Branch = { active: 0, output: {}, arrived: [] };

export class BranchTable {
  constructor(
    private readonly database: SqlDatabase,
    private readonly texts: LongText,
  ) {}

  /** Writes the fan-outs and branches that a change touched. `seq` is the first number of its row in the journal. */
  put(before: RunState, { state, fanOuts, branches }: RunChange, seq: number): void {
    if (fanOuts.size > 0 && before.made.fanOuts === 0) {
      this.database.run(CREATE_FAN_OUTS);
      this.database.run(CREATE_BRANCHES);
    }
    for (const id of fanOuts) {
      const live = state.fanOuts.get(id);
      const fanOut = live ?? state.stopped?.fanOuts.get(id);
      const flag = live === undefined && { stopped: true };
      if (fanOut !== undefined) this.database.run(PUT, id, JSON.stringify({ ...stored(fanOut), ...flag }));
      else if (before.fanOuts.has(id) || before.stopped?.fanOuts.has(id)) this.#delete(id);
    }
    for (const [id, touched] of branches) {
      const fanOut = state.fanOuts.get(id) ?? state.stopped?.fanOuts.get(id);
      if (fanOut === undefined) continue;
      const known = (before.fanOuts.get(id) ?? before.stopped?.fanOuts.get(id))?.branches ?? [];
      const changes = [...touched].flatMap((index) => changeOf(index, known[index], fanOut.branches[index]));
      if (changes.length === 0) continue;
      this.database.run(ADD, id, seq, this.texts.pack(keyOf(id, seq), JSON.stringify(changes)));
    }
  }

  /** Returns all fan-outs. `tokens` has the open tokens. */
  all(tokens: ReadonlyMap<number, Token>): StoredFanOuts {
    const heads = this.#exists() ? this.database.all<{ id: number; body: string }>(ALL) : [];
    const branches = new Map<number, Branch[]>();
    const stoppedIds = new Set<number>();
    const found = heads.map(({ id, body }) => {
      // SAFETY: only `put` writes this column.
      const { total, stopped, ...fanOut } = JSON.parse(body) as StoredFanOut;
      if (stopped === true) stoppedIds.add(id);
      branches.set(
        id,
        Array.from({ length: total }, () => NEW_BRANCH),
      );
      return { ...fanOut, id };
    });
    // Reads one row at a time, because all rows may not fit into memory.
    for (const { fan_out, seq, body } of heads.length === 0 ? [] : this.#rows()) {
      const own = branches.get(fan_out) ?? [];
      // SAFETY: only `put` writes this column.
      for (const [index, change] of JSON.parse(
        this.texts.unpack(keyOf(fan_out, seq), body),
      ) as BranchChange[])
        own[index] = changed(own[index] ?? NEW_BRANCH, change);
    }
    let rootActive = 0;
    const count = (scope: ScopeKey) => {
      const branch = scope && branches.get(scope.fanOut)?.[scope.branch];
      if (scope === null) rootActive += 1;
      else if (branch)
        branches.get(scope.fanOut)?.splice(scope.branch, 1, { ...branch, active: branch.active + 1 });
    };
    for (const { scope } of tokens.values()) count(scope);
    for (const { id, outer } of found) if (!stoppedIds.has(id)) count(outer);
    const fanOuts = found.map((fanOut): [number, FanOut] => {
      const own = branches.get(fanOut.id) ?? [];
      const failed = own.filter(({ failure }) => failure !== undefined).length;
      const finished = own.filter(({ active, failure }) => active === 0 || failure !== undefined).length;
      return [fanOut.id, { ...fanOut, branches: own, finished, failed }];
    });
    return {
      fanOuts: new Map(fanOuts.filter(([id]) => !stoppedIds.has(id))),
      stopped: new Map(fanOuts.filter(([id]) => stoppedIds.has(id))),
      rootActive,
    };
  }

  #delete(id: number): void {
    this.database.run(DELETE, id);
    for (const { seq } of this.database.all<{ seq: number }>(ROWS, id)) this.texts.discard(keyOf(id, seq));
    this.database.run(DELETE_BRANCHES, id);
  }

  #exists(): boolean {
    return this.database.all(EXISTS).length > 0;
  }

  #rows(): Iterable<{ fan_out: number; seq: number; body: PackedText }> {
    return this.database.each(BRANCHES);
  }
}

function stored({
  id: _id,
  branches,
  finished: _finished,
  failed: _failed,
  ...fanOut
}: FanOut): StoredFanOut {
  return { ...fanOut, total: branches.length };
}

function changeOf(index: number, before: Branch = NEW_BRANCH, after: Branch = NEW_BRANCH): BranchChange[] {
  const output = patchOf(before.output, after.output);
  const change = defined({
    output: output.length === 0 ? undefined : output,
    arrived: arrivalsOf(before.arrived, after.arrived),
    failure: after.failure === before.failure ? undefined : (after.failure ?? null),
    tally: after.tally === before.tally ? undefined : after.tally,
  });
  return Object.keys(change).length === 0 ? [] : [[index, change]];
}

function arrivalsOf(
  before: Branch["arrived"],
  after: Branch["arrived"],
): BranchChange[1]["arrived"] | undefined {
  const first = before === after ? -1 : before.findIndex((token, index) => after[index] !== token);
  const kept = first < 0 ? before.length : first;
  return kept === before.length && kept === after.length ? undefined : [kept, ...after.slice(kept)];
}

function changed(
  { failure: known, ...before }: Branch,
  { output, arrived, failure = known, tally }: BranchChange[1],
): Branch {
  const [kept = 0, ...added] = arrived ?? [];
  return {
    ...before,
    ...defined({
      output: output && patched(before.output, output),
      arrived: arrived && [...before.arrived.slice(0, kept), ...added],
      failure: failure ?? undefined,
      tally,
    }),
  };
}

function keyOf(fanOut: number, seq: number): string {
  return `run-branches:${fanOut}:${seq}`;
}
