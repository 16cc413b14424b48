/** The tables `run_fan_outs` and `run_branches`: fan-outs that are open, and what their branches have done. */
import type { LongText, PackedText } from "../../../memory/session/long-text.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { defined } from "../../../shared/defined.ts";
import type { RunChange } from "../core/draft.ts";
import type { Branch, FanOut, RunState, ScopeKey, Token } from "../core/state.ts";
import { CREATE_BRANCHES, CREATE_FAN_OUTS } from "./schema.ts";

const PUT =
  "INSERT INTO run_fan_outs (id, body) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET body = excluded.body";
const DELETE = "DELETE FROM run_fan_outs WHERE id = ?";
const ALL = "SELECT id, body FROM run_fan_outs ORDER BY id";
const EXISTS = "SELECT 1 AS found FROM sqlite_master WHERE type = 'table' AND name = 'run_fan_outs'";
const ADD = "INSERT INTO run_branches (fan_out, seq, body) VALUES (?, ?, ?)";
const BRANCHES = "SELECT fan_out, seq, body FROM run_branches ORDER BY fan_out, seq";
const ROWS = "SELECT seq FROM run_branches WHERE fan_out = ? AND typeof(body) <> 'text'";
const DELETE_BRANCHES = "DELETE FROM run_branches WHERE fan_out = ?";

/** A fan-out as stored: what its branches do is counted anew. */
type StoredFanOut = Omit<FanOut, "id" | "branches" | "finished" | "failed"> & { total: number };

/** The members of a branch that a commit changed; absent ones stay. */
type BranchChange = [
  index: number,
  change: Partial<Pick<Branch, "output" | "arrived" | "failure" | "tally">>,
];

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
      const fanOut = state.fanOuts.get(id);
      if (fanOut !== undefined) this.database.run(PUT, id, JSON.stringify(stored(fanOut)));
      else if (before.fanOuts.has(id)) this.#delete(id);
    }
    for (const [id, touched] of branches) {
      const fanOut = state.fanOuts.get(id);
      if (fanOut === undefined) continue;
      const known = before.fanOuts.get(id)?.branches ?? [];
      const changes = [...touched].flatMap((index) => changeOf(index, known[index], fanOut.branches[index]));
      if (changes.length === 0) continue;
      this.database.run(ADD, id, seq, this.texts.pack(keyOf(id, seq), JSON.stringify(changes)));
    }
  }

  /** Returns the fan-outs by number, and the tokens and fan-outs that are active in no branch. */
  all(tokens: ReadonlyMap<number, Token>): { fanOuts: Map<number, FanOut>; rootActive: number } {
    const heads = this.#exists() ? this.database.all<{ id: number; body: string }>(ALL) : [];
    const branches = new Map<number, Branch[]>();
    const found = heads.map(({ id, body }) => {
      // SAFETY: only `put` writes this column.
      const { total, ...fanOut } = JSON.parse(body) as StoredFanOut;
      branches.set(
        id,
        Array.from({ length: total }, () => NEW_BRANCH),
      );
      return { ...fanOut, id };
    });
    for (const { fan_out, seq, body } of heads.length === 0 ? [] : this.#rows()) {
      const own = branches.get(fan_out) ?? [];
      // SAFETY: only `put` writes this column.
      for (const [index, change] of JSON.parse(
        this.texts.unpack(keyOf(fan_out, seq), body),
      ) as BranchChange[])
        own[index] = { ...(own[index] ?? NEW_BRANCH), ...change };
    }
    let rootActive = 0;
    const count = (scope: ScopeKey) => {
      const branch = scope && branches.get(scope.fanOut)?.[scope.branch];
      if (scope === null) rootActive += 1;
      else if (branch)
        branches.get(scope.fanOut)?.splice(scope.branch, 1, { ...branch, active: branch.active + 1 });
    };
    for (const { scope } of tokens.values()) count(scope);
    for (const { outer } of found) count(outer);
    const fanOuts = found.map((fanOut): [number, FanOut] => {
      const own = branches.get(fanOut.id) ?? [];
      const failed = own.filter(({ failure }) => failure !== undefined).length;
      const finished = own.filter(({ active, failure }) => active === 0 || failure !== undefined).length;
      return [fanOut.id, { ...fanOut, branches: own, finished, failed }];
    });
    return { fanOuts: new Map(fanOuts), rootActive };
  }

  #delete(id: number): void {
    this.database.run(DELETE, id);
    for (const { seq } of this.database.all<{ seq: number }>(ROWS, id)) this.texts.discard(keyOf(id, seq));
    this.database.run(DELETE_BRANCHES, id);
  }

  #exists(): boolean {
    return this.database.all(EXISTS).length > 0;
  }

  #rows(): { fan_out: number; seq: number; body: PackedText }[] {
    return this.database.all(BRANCHES);
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
  const { output, arrived, failure, tally } = after;
  const change = defined({
    output: output === before.output || (before === NEW_BRANCH && isEmpty(output)) ? undefined : output,
    arrived:
      arrived === before.arrived || (arrived.length === 0 && before.arrived.length === 0)
        ? undefined
        : arrived,
    failure: failure === before.failure ? undefined : failure,
    tally: tally === before.tally ? undefined : tally,
  });
  return Object.keys(change).length === 0 ? [] : [[index, change]];
}

function isEmpty(output: Branch["output"]): boolean {
  return typeof output === "object" && output !== null && Object.keys(output).length === 0;
}

function keyOf(fanOut: number, seq: number): string {
  return `run-branches:${fanOut}:${seq}`;
}
