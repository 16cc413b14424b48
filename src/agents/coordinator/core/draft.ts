/** A mutable copy of a run during the planning of a commit, with a record of the changes. The state before stays unchanged. */
import { type Amounts, NOTHING, subtractAmounts } from "../../../model/spending.ts";
import type { RunEntry, RunError, RunStatus } from "../../../protocol/workflow-run.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { type Graph, graphOf } from "./graph.ts";
import { OutboxReservation, type OutboxRoom, UNLIMITED_ROOM } from "./outbox-reservation.ts";
import { MAX_TOKENS } from "./run-limits.ts";
import {
  type Branch,
  branchPlace,
  definitionOf,
  type FanOut,
  type RunState,
  type RunTime,
  type Scope,
  type ScopeKey,
  type StoppedWork,
  type Token,
  type WorkingToken,
} from "./state.ts";
import { WorkCounts } from "./tree-share.ts";
import { isNothing } from "./usage.ts";

/** The change of one commit, and the state after it. */
export interface RunChange {
  readonly state: RunState;
  readonly entries: readonly RunEntry[];
  /** The numbers of the tokens that were made, changed or removed. */
  readonly tokens: ReadonlySet<number>;
  /** The numbers of the fan-outs that were opened, closed, restored, stopped, or changed. Changes of branches do not count. */
  readonly fanOuts: ReadonlySet<number>;
  /** Branches with a change, by the number of their fan-out. */
  readonly branches: ReadonlyMap<number, ReadonlySet<number>>;
}

/** The run has more tokens than it may have. */
export class TooLong extends Error {}

type NewFanOut = Pick<FanOut, "group" | "origin" | "outer" | "path" | "counts" | "spread" | "part">;

export class Draft {
  readonly graph: Graph;
  readonly entries: RunEntry[] = [];
  readonly tokens: Map<number, Token>;
  readonly fanOuts: Map<number, FanOut>;
  status: RunStatus;
  state: JsonObject;
  root: Scope;
  error: RunError | undefined;
  output: JsonObject | undefined;
  time: RunTime | undefined;
  spent: Amounts;
  recoveries: number;
  retried: RunState["retried"];
  tainted: true | undefined;
  /** The work of all tokens. */
  readonly work: WorkCounts;
  steps = 0;
  /** Outbox room for the envelopes of this commit. */
  readonly outbox: OutboxReservation;
  #made: { tokens: number; fanOuts: number };
  /** Fan-outs with a list of branches that this draft has copied. */
  readonly #copies = new Map<number, Branch[]>();
  readonly #touched = {
    tokens: new Set<number>(),
    fanOuts: new Set<number>(),
    branches: new Map<number, Set<number>>(),
  };
  /** Copied before the first change. Most commits do not change these maps. */
  #stopped: { tokens: Map<number, Token>; fanOuts: Map<number, FanOut> } | undefined;
  /** Tokens that can take a step, in order. */
  readonly #pending: number[];
  #next = 0;

  constructor(
    readonly before: RunState,
    readonly now: number,
    outboxRoom: () => OutboxRoom = () => UNLIMITED_ROOM,
  ) {
    this.outbox = new OutboxReservation(outboxRoom);
    this.graph = graphOf(definitionOf(before));
    this.tokens = new Map(before.tokens);
    this.fanOuts = new Map(before.fanOuts);
    this.status = before.status;
    this.state = before.state;
    this.root = before.root;
    this.error = before.error;
    this.output = before.output;
    this.time = before.time;
    this.spent = before.spent ?? NOTHING;
    this.recoveries = before.recoveries ?? 0;
    this.retried = before.retried;
    this.tainted = before.tainted;
    this.#made = before.made;
    this.work = new WorkCounts(before.record, this.graph, before.tokens.values());
    this.#pending = [...before.tokens.values()]
      .filter(({ phase }) => phase.kind !== "working")
      .map(({ id }) => id);
  }

  /** Returns the next token that can take a step, if any. */
  nextPending(): Token | undefined {
    while (this.#next < this.#pending.length) {
      const token = this.tokens.get(this.#pending[this.#next++] ?? -1);
      if (token !== undefined && token.phase.kind !== "working") return token;
    }
    return undefined;
  }

  note(entry: RunEntry): void {
    this.entries.push(entry);
  }

  noteOf({ id, node }: Pick<Token, "id" | "node">, type: RunEntry["type"], data?: Json): void {
    this.note(data === undefined ? { type, token: id, node } : { type, token: id, node, data });
  }

  /** Returns a token that works on an attempt; `undefined` if the token has ended or works on another attempt. */
  working(id: number, attempt: number): WorkingToken | undefined {
    const token = this.tokens.get(id);
    const phase = token?.phase;
    if (token === undefined || phase?.kind !== "working" || phase.attempt !== attempt) return undefined;
    return { ...token, phase };
  }

  /** Makes a token, which counts as active in its scope. Throws `TooLong`. */
  create(token: Omit<Token, "id" | "phase" | "createdAt">): Token {
    const made = { ...token, id: this.#take(), phase: { kind: "ready" }, createdAt: this.now } as const;
    this.work.add(made);
    this.tokens.set(made.id, made);
    this.#touched.tokens.add(made.id);
    this.#pending.push(made.id);
    this.count(token.scope, 1);
    const { group, branch, path } = this.placeOf(made.scope);
    this.noteOf(made, "token.created", group === null ? undefined : { group, branch, path });
    return made;
  }

  /** Counts a token that arrives at a fan-in at once. Returns its number. Throws `TooLong`. */
  arrive({ fanOut, branch }: NonNullable<ScopeKey>): number {
    const id = this.#take();
    const { arrived } = this.branch(fanOut, branch);
    this.setBranch(fanOut, branch, { arrived: [...arrived, id] });
    if (this.fanOut(fanOut).firstArrivalAt === undefined)
      this.changeFanOut(fanOut, { firstArrivalAt: this.now });
    return id;
  }

  /** Changes a fan-out itself, beside its branches. */
  changeFanOut(id: number, change: Partial<Pick<FanOut, "firstArrivalAt" | "spread">>): void {
    this.#setFanOut(id, change);
    this.#touched.fanOuts.add(id);
  }

  #take(): number {
    const id = this.#made.tokens;
    if (id >= MAX_TOKENS) throw new TooLong();
    this.#made = { ...this.#made, tokens: id + 1 };
    return id;
  }

  change(id: number, change: Pick<Token, "phase">): void {
    const token = this.tokens.get(id);
    if (token === undefined) return;
    const after = { ...token, ...change };
    this.tokens.set(id, after);
    this.work.remove(token);
    this.work.add(after);
    this.#touched.tokens.add(id);
    if (change.phase.kind !== "working") this.#pending.push(id);
  }

  end({ id, scope }: Token): void {
    if (!this.remove(id)) return;
    this.count(scope, -1);
  }

  /** Removes a token without counting it, and keeps it for a retry. */
  stop(token: Token): void {
    if (this.remove(token.id)) this.addStopped(token);
  }

  /** Adds a removed token to the stopped work. Its output is dropped because the retry makes a new output. */
  addStopped(token: Token): void {
    const { phase } = token;
    const isDone = phase.kind === "resolved" && "output" in phase.outcome;
    const stopped = isDone ? { ...token, phase: { ...phase, outcome: { output: null } } } : token;
    this.#stoppedCopy().tokens.set(token.id, stopped);
  }

  /** Tokens and fan-outs stopped by failures. */
  get stopped(): StoppedWork {
    return this.#stopped ?? this.before.stopped ?? NOTHING_STOPPED;
  }

  /** Makes stopped tokens pending, opens stopped fan-outs again, and clears their failures. Returns the numbers of the fan-outs. */
  restore(tokens: readonly Token[]): number[] {
    const fanOuts = [...this.stopped.fanOuts.values()];
    this.#stopped = { tokens: new Map(), fanOuts: new Map() };
    for (const { firstArrivalAt, ...fanOut } of fanOuts) {
      const { id } = fanOut;
      const branches = fanOut.branches.map(({ failure: _, ...branch }): Branch => branch);
      const failed = fanOut.branches.flatMap(({ failure }, index) => (failure === undefined ? [] : [index]));
      const arrival = firstArrivalAt === undefined ? {} : { firstArrivalAt: this.now };
      this.fanOuts.set(id, { ...fanOut, ...arrival, branches, failed: 0 });
      this.#copies.set(id, branches);
      this.#touched.fanOuts.add(id);
      if (failed.length > 0) this.#touched.branches.set(id, new Set(failed));
    }
    for (const { outer } of fanOuts) this.count(outer, 1);
    for (const token of tokens) {
      this.tokens.set(token.id, token);
      this.work.add(token);
      this.#touched.tokens.add(token.id);
      this.#pending.push(token.id);
      this.count(token.scope, 1);
    }
    return fanOuts.map(({ id }) => id);
  }

  /** Drops stopped tokens and fan-outs: all, or only those inside a fan-out. */
  dropStopped(fanOut?: number): void {
    const { tokens, fanOuts } = this.stopped;
    if (tokens.size === 0 && fanOuts.size === 0) return;
    const isInside = (key: ScopeKey) => fanOut === undefined || this.isWithin(key, fanOut);
    const tokensInside = [...tokens.values()].filter(({ scope }) => isInside(scope));
    const fanOutsInside = [...fanOuts.values()].filter(({ outer }) => isInside(outer));
    const stopped = this.#stoppedCopy();
    for (const { id } of tokensInside) {
      stopped.tokens.delete(id);
      this.#touched.tokens.add(id);
    }
    for (const { id } of fanOutsInside) {
      stopped.fanOuts.delete(id);
      this.#touched.fanOuts.add(id);
      this.#touched.branches.delete(id);
    }
  }

  /** Removes a token without counting it. */
  remove(id: number): boolean {
    const token = this.tokens.get(id);
    if (token === undefined) return false;
    this.tokens.delete(id);
    this.work.remove(token);
    this.#touched.tokens.add(id);
    return true;
  }

  fanOut(id: number): FanOut {
    const found = this.fanOuts.get(id);
    if (found === undefined) throw new Error(`Fan-out ${id} is not open.`);
    return found;
  }

  branch(fanOut: number, index: number): Branch {
    const found = this.fanOut(fanOut).branches[index];
    if (found === undefined) throw new Error(`Fan-out ${fanOut} has no branch ${index}.`);
    return found;
  }

  /** Opens a fan-out without branches, which counts as active in the scope around it. */
  open(fanOut: NewFanOut, total: number): number {
    const id = this.#made.fanOuts;
    this.#made = { ...this.#made, fanOuts: id + 1 };
    const branches = Array.from({ length: total }, (): Branch => ({ active: 0, output: {}, arrived: [] }));
    // A branch without a token is not yet finished.
    this.fanOuts.set(id, { ...fanOut, id, branches, finished: total, failed: 0 });
    this.#copies.set(id, branches);
    this.#touched.fanOuts.add(id);
    this.count(fanOut.outer, 1);
    return id;
  }

  /** Closes a fan-out that has ended. A retry no longer repeats its failures. */
  close(id: number): void {
    const { outer } = this.fanOut(id);
    this.dropStopped(id);
    this.#touched.branches.delete(id);
    this.#removeFanOut(id);
    this.count(outer, -1);
  }

  /** Closes a fan-out without counting it, and keeps it for a retry. */
  stopFanOut(id: number): void {
    const fanOut = this.fanOut(id);
    const branches = fanOut.branches.map((branch) =>
      branch.active === 0 ? branch : { ...branch, active: 0 },
    );
    this.#removeFanOut(id);
    this.#stoppedCopy().fanOuts.set(id, { ...fanOut, branches, finished: branches.length });
  }

  #removeFanOut(id: number): void {
    this.fanOuts.delete(id);
    this.#copies.delete(id);
    this.#touched.fanOuts.add(id);
  }

  scope(key: ScopeKey): Scope {
    return key === null ? this.root : this.branch(key.fanOut, key.branch);
  }

  setOutput(key: ScopeKey, output: Json): void {
    if (key === null) this.root = { ...this.root, output };
    else this.setBranch(key.fanOut, key.branch, { output });
  }

  setBranch(fanOut: number, index: number, change: Partial<Branch>): void {
    const before = this.branch(fanOut, index);
    const after = { ...before, ...change };
    const { finished, failed } = this.fanOut(fanOut);
    const branches = this.#branchesCopy(fanOut);
    branches[index] = after;
    this.#setFanOut(fanOut, {
      branches,
      finished: finished + Number(isFinished(after)) - Number(isFinished(before)),
      failed: failed + Number(after.failure !== undefined) - Number(before.failure !== undefined),
    });
    const touched = this.#touched.branches.get(fanOut) ?? new Set();
    this.#touched.branches.set(fanOut, touched.add(index));
  }

  /** Returns a scope and those around it, the innermost first. */
  *around(key: ScopeKey): Generator<ScopeKey> {
    const outerOf = (id: number) => (this.fanOuts.get(id) ?? this.stopped.fanOuts.get(id))?.outer ?? null;
    for (let one = key; one !== null; one = outerOf(one.fanOut)) yield one;
    yield null;
  }

  isWithin(key: ScopeKey, fanOut: number, branch?: number): boolean {
    for (const one of this.around(key))
      if (one?.fanOut === fanOut && (branch === undefined || one.branch === branch)) return true;
    return false;
  }

  placeOf(key: ScopeKey): { path: string; group: string | null; branch: number } {
    if (key === null) return { path: "root", group: null, branch: 0 };
    return branchPlace(this.fanOut(key.fanOut), key.branch);
  }

  /** Returns the change since the draft was made; `null` if the run is unchanged. */
  finish(): RunChange | null {
    const { tokens, fanOuts, branches } = this.#touched;
    const { before, entries, status, stopped, spent, recoveries } = this;
    const { error, output, time, retried, tainted } = this;
    // Each row of the journal begins with an entry of its own.
    if (entries.length === 0 && !isNothing(subtractAmounts(spent, before.spent ?? NOTHING)))
      this.note({ type: "usage.counted" });
    if (entries.length === 0 && tokens.size === 0 && fanOuts.size === 0 && status === before.status)
      return null;
    const state: RunState = {
      record: before.record,
      status,
      seq: before.seq + entries.length,
      made: this.#made,
      state: this.state,
      root: this.root,
      tokens: this.tokens,
      fanOuts: this.fanOuts,
      ...defined({ error, output, time, retried, tainted }),
      ...(isNothing(spent) ? {} : { spent }),
      ...(recoveries > 0 && { recoveries }),
      ...(stopped.tokens.size + stopped.fanOuts.size > 0 && { stopped }),
    };
    return { state, entries, tokens, fanOuts, branches };
  }

  #stoppedCopy(): { tokens: Map<number, Token>; fanOuts: Map<number, FanOut> } {
    this.#stopped ??= { tokens: new Map(this.stopped.tokens), fanOuts: new Map(this.stopped.fanOuts) };
    return this.#stopped;
  }

  /** Adds to the active tokens and fan-outs of a scope. A negative `by` subtracts. */
  count(key: ScopeKey, by: number): void {
    if (key === null) this.root = { ...this.root, active: this.root.active + by };
    else this.setBranch(key.fanOut, key.branch, { active: this.branch(key.fanOut, key.branch).active + by });
  }

  #setFanOut(id: number, change: Partial<FanOut>): void {
    this.fanOuts.set(id, { ...this.fanOut(id), ...change });
  }

  #branchesCopy(id: number): Branch[] {
    const own = this.#copies.get(id) ?? [...this.fanOut(id).branches];
    this.#copies.set(id, own);
    return own;
  }
}

const NOTHING_STOPPED: StoppedWork = { tokens: new Map(), fanOuts: new Map() };

function isFinished({ active, failure }: Branch): boolean {
  return active === 0 || failure !== undefined;
}
