/**
 * The upkeep of an agent's memory: retention, consolidation and rederivation. Runs on a durable wake-up.
 *
 * UPKEEP-1  Upkeep runs only if the agent has memories and its current persona asks for upkeep.
 * UPKEEP-2  An agent runs at most one consolidation at a time. It is stored before it begins and applied in the commit that ends it, so a
 *           crash neither loses it nor applies it twice.
 * UPKEEP-3  A consolidation that fails or crashes gets three attempts, or one attempt if it may not run twice. Then its memories stay
 *           unchanged until the next upkeep. A call that exceeds its timeout has failed.
 * UPKEEP-4  Consolidations start `everyHours` after the start of the previous consolidations. Missed times are made up once.
 * UPKEEP-5  The texts for a task are never stored, so erasing a memory erases all of its texts. The run of a workflow stores its input.
 * UPKEEP-6  Rederivation does not wait for the next upkeep: memories that lost a source come first. Memories without parts need no persona.
 *           A summary is consolidated again before other consolidations continue. If the persona does not resolve, the summary is erased.
 */
import type { Upkeep } from "../../library/registry/upkeep.ts";
import type { Corpus } from "../../memory/corpus/corpus.ts";
import type { StoredMemory } from "../../memory/corpus/stored-memory.ts";
import { applyConsolidation, type Member, prepareConsolidation } from "../../memory/upkeep/consolidation.ts";
import {
  eraseSummary,
  type PreparedTexts,
  rederiveSingle,
  rederiveSummary,
  remainingParts,
} from "../../memory/upkeep/rederivation.ts";
import { nextExpiry, retain } from "../../memory/upkeep/retention.ts";
import { type MemoryGroup, UpkeepRows } from "../../memory/upkeep/upkeep-rows.ts";
import type { Clock } from "../../ports/clock.ts";
import { unanswered, withDeadline } from "../../ports/deadline.ts";
import type { PinnedHook } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { placeOf } from "../../shared/error-place.ts";
import type { Json } from "../../shared/json.ts";
import { DAY_MS } from "../../shared/time.ts";
import type { Wakeup } from "../base/timers/wakeups.ts";
import { type ConsolidationCall, consolidationInput, operationsOf } from "./consolidation-call.ts";
import type { Run, UpkeepState } from "./upkeep-state.ts";

export interface UpkeepPorts {
  corpus: Corpus;
  /** Returns the upkeep of the agent's current persona. Rejects if the persona does not resolve. */
  upkeep(): Promise<Upkeep>;
  /** Returns the result of the task or the workflow, or `undefined` while a run continues. Rejects if it fails. */
  run(hook: PinnedHook, call: ConsolidationCall): Promise<Json | undefined>;
  newOperationId(): string;
  clock: Pick<Clock, "timer">;
  wakeup: Wakeup;
}

const STATE_KEY = "memory:upkeep";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** Longest time between two checks of the persona, because a deployment may change it. */
/** A memory is consolidated only if it has not changed for this many milliseconds. */
const SETTLED_MS = HOUR_MS;
/** Most memories of one consolidation, and most characters in total. */
const MAX_MEMBERS = 100;
const MAX_CHARACTERS = 40_000;
const MAX_ATTEMPTS = 3;
/** Timeout for resolving the persona, in milliseconds. */
const PERSONA_MS = 30_000;
/** Milliseconds that a call may take beyond its task's time, and timeout of a workflow call. */
const CALL_MS = 60_000;
/** Pauses before the second and the third attempt, in milliseconds. */
const BACKOFF_MS = [MINUTE_MS, 10 * MINUTE_MS];

export class MemoryUpkeep {
  readonly #rows: UpkeepRows;
  #running: Promise<void> | null = null;
  #deriving: Promise<void> | null = null;
  /** The persona asked for no upkeep. This instance checks again after this time. */
  #idleUntil = 0;

  constructor(private readonly ports: UpkeepPorts) {
    this.#rows = new UpkeepRows(ports.corpus.ports.database);
  }

  /** Arms the wake-up after a change of the memory, in its transaction. Resolves when the wake-up is armed. */
  noted(): Promise<void> {
    if (this.#rows.hasMarked()) return this.ports.wakeup.arm(SECOND_MS);
    return this.#now < this.#idleUntil ? Promise.resolve() : this.ports.wakeup.arm(HOUR_MS);
  }

  /** Reschedules the upkeep for a changed persona. Call it in the transaction. Resolves when the wake-up is armed. */
  personaChanged(): Promise<void> {
    if (!this.ports.corpus.exists) return Promise.resolve();
    this.#idleUntil = 0;
    const { nextAt, ...state } = this.#state;
    if (nextAt !== undefined) this.#put(state);
    return this.ports.wakeup.arm(MINUTE_MS);
  }

  /** Starts pending work. Returns the milliseconds until the next call, or `null`. */
  wake(): number | null {
    if (!this.ports.corpus.exists) return null;
    const isMarked = this.#rows.hasMarked();
    if (isMarked) void this.#rederiveSingles();
    if (this.#running !== null) return MINUTE_MS;
    if (!isMarked) {
      if (this.#now < this.#idleUntil) return null;
      const { nextAt = 0 } = this.#state;
      if (nextAt > this.#now) return nextAt - this.#now;
    }
    void this.settle();
    return MINUTE_MS;
  }

  /** Performs pending work. Never rejects. */
  settle(): Promise<void> {
    this.#running ??= this.#work().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  get #now(): number {
    return this.ports.corpus.ports.clock.now();
  }

  get #state(): UpkeepState {
    return this.ports.corpus.ports.keyValue.get<UpkeepState>(STATE_KEY) ?? {};
  }

  #put(state: UpkeepState): void {
    this.ports.corpus.ports.keyValue.put(STATE_KEY, state);
  }

  async #work(): Promise<void> {
    try {
      await this.#rederiveSingles();
      const upkeep = await this.#persona();
      let next: number | null = 0;
      while (next === 0) next = await this.#step(upkeep);
      if (next === null) this.#idleUntil = this.#now + DAY_MS;
      else this.#put({ ...this.#state, nextAt: this.#now + next });
    } catch (error) {
      console.error("The upkeep of an agent's memory failed; it will be retried:", placeOf(error));
      this.#put({ ...this.#state, nextAt: this.#now + 15 * MINUTE_MS });
    }
  }

  /** Returns the persona's upkeep. If the persona does not resolve, erases the summaries that wait for it, and rejects. */
  async #persona(): Promise<Upkeep> {
    try {
      return await withDeadline(this.ports.clock, PERSONA_MS, () => this.ports.upkeep(), {
        reason: unanswered("The persona", PERSONA_MS),
      });
    } catch (error) {
      for (const whole of this.#rows.marked()) {
        const { run } = this.#state;
        const parts = this.#partsOf(whole);
        // A memory without parts waits until its text can be read.
        if (parts.length === 0) continue;
        if (run?.whole !== undefined) this.#end();
        await this.#eraseSummary(
          whole,
          parts.map(({ n }) => n),
        );
      }
      throw error;
    }
  }

  /** Rederives the marked memories that need no call. Skips a memory if its text cannot be read. Never rejects. */
  #rederiveSingles(): Promise<void> {
    this.#deriving ??= this.#derive().finally(() => {
      this.#deriving = null;
    });
    return this.#deriving;
  }

  async #derive(): Promise<void> {
    const { corpus } = this.ports;
    for (const n of this.#rows.marked()) {
      if (this.#partsOf(n).length > 0) continue;
      try {
        const memory = corpus.rows.memories.find(n);
        const prepared = await this.#textsOf(memory === undefined ? [] : [memory]);
        await corpus.change(() => {
          const now = corpus.rows.memories.find(n);
          if (this.#partsOf(n).length > 0) return;
          this.#rows.unmark(n);
          if (now?.hidden) rederiveSingle(corpus, now, prepared);
        });
      } catch (error) {
        console.error(
          "A memory that lost a source could not be rederived. It will be retried:",
          placeOf(error),
        );
      }
    }
  }

  #partsOf(n: number): StoredMemory[] {
    const memory = this.ports.corpus.rows.memories.find(n);
    return memory === undefined
      ? []
      : remainingParts(this.ports.corpus, memory).filter(({ hidden }) => !hidden);
  }

  /** Performs one step. Returns the milliseconds until the next step (0 for at once), or `null`. */
  async #step(upkeep: Upkeep): Promise<number | null> {
    const { corpus } = this.ports;
    const { run } = this.#state;
    if (run?.whole === undefined) {
      await this.#rederiveSingles();
      const whole = this.#rows.marked().find((n) => this.#partsOf(n).length > 0);
      if (whole !== undefined) return this.#rederive(whole);
    }
    if (run !== undefined) return this.#continue(upkeep, run);
    if (await retain(corpus, this.#rows, upkeep.retention)) return 0;
    const { consolidation, retention } = upkeep;
    const expiry = nextExpiry(this.#rows, retention) - this.#now;
    if (consolidation === undefined)
      return Object.keys(retention).length === 0 ? null : within(Math.min(expiry, DAY_MS));
    const wait = this.#beginNext(upkeep.scope, consolidation);
    return wait === 0 ? 0 : within(Math.min(wait, expiry, DAY_MS));
  }

  /** Begins the consolidation of the next group and returns 0. If no group is left, returns the milliseconds until the next round. */
  #beginNext(scope: Upkeep["scope"], plan: NonNullable<Upkeep["consolidation"]>): number {
    const { last, round: open, ...state } = this.#state;
    const now = this.#now;
    const due = last === undefined ? now : last.startedAt + plan.everyMs;
    if (open === undefined && now < due) return due - now;
    const round = open ?? { startedAt: now, after: 0 };
    const query = {
      ...{ scope, types: plan.types, minimum: plan.minimum, after: round.after },
      until: round.startedAt - SETTLED_MS,
      // Skip groups that a round has already sent to the model unchanged. If that round failed, include them.
      changedSince: last === undefined || last.failed ? -1 : last.startedAt - SETTLED_MS,
    };
    const group = this.#rows.nextGroup(query);
    if (group === undefined) {
      this.#put({ ...state, last: { startedAt: round.startedAt, ...defined({ failed: round.failed }) } });
      return plan.everyMs;
    }
    const next = { ...round, after: group.first };
    this.#put({
      ...state,
      ...defined({ last }),
      round: next,
      run: this.#newRun(this.#membersOf(group, query)),
    });
    return 0;
  }

  #membersOf(group: MemoryGroup, query: { scope: Upkeep["scope"]; until: number }): Member[] {
    const members: Member[] = [];
    let characters = 0;
    for (const { n, length } of this.#rows.members(group, query, MAX_MEMBERS)) {
      characters += length;
      const memory = this.ports.corpus.rows.memories.find(n);
      if (memory === undefined || (characters > MAX_CHARACTERS && members.length > 1)) break;
      members.push([n, memory.version]);
    }
    return members;
  }

  #newRun(members: Member[], whole?: number): Run {
    const operationId = this.ports.newOperationId();
    return { operationId, attempt: 1, members, notBefore: 0, ...defined({ whole }) };
  }

  /** Begins to rederive a summary. A consolidation that has begun continues after it. */
  #rederive(n: number): 0 {
    const members = this.#partsOf(n).map((part): Member => [part.n, part.version]);
    const { run: paused, ...state } = this.#state;
    this.#put({ ...state, ...defined({ paused }), run: this.#newRun(members, n) });
    return 0;
  }

  async #continue({ hook }: Upkeep, run: Run): Promise<number> {
    const wait = run.notBefore - this.#now;
    if (wait > 0) return wait;
    const members = run.members.flatMap(([n]) => this.ports.corpus.rows.memories.find(n) ?? []);
    const isChanged =
      members.length < run.members.length ||
      members.some((memory, index) => memory.hidden || memory.version !== run.members[index]?.[1]);
    const [first] = members;
    if (isChanged || first === undefined) return this.#drop();
    // A crash during the call uses up the attempt.
    this.#put({ ...this.#state, run: { ...run, attempt: run.attempt + 1 } });
    if (run.attempt > (hook.effect === "once" ? 1 : MAX_ATTEMPTS)) return this.#giveUp(run);
    try {
      const texts = await Promise.all(members.map((memory) => this.ports.corpus.texts.of(memory)));
      const input = consolidationInput(members, texts);
      const attempt = hook.workflow === undefined ? run.attempt : 1;
      const result = await withDeadline(
        this.ports.clock,
        (hook.workflow === undefined ? hook.timeoutMs : 0) + CALL_MS,
        () => this.ports.run(hook, { operationId: run.operationId, attempt, input }),
      );
      if (result === undefined) {
        this.#put({ ...this.#state, run });
        return 10 * SECOND_MS;
      }
      return await this.#apply(run, first.userId, operationsOf(result));
    } catch (error) {
      console.warn(`A consolidation of memories failed in attempt ${run.attempt}:`, placeOf(error));
      const pause = BACKOFF_MS[run.attempt - 1] ?? 0;
      this.#put({ ...this.#state, run: { ...run, attempt: run.attempt + 1, notBefore: this.#now + pause } });
      return hook.effect === "once" || run.attempt >= MAX_ATTEMPTS ? 0 : pause;
    }
  }

  /** Applies the result of a consolidation and ends it, in one commit. */
  async #apply(run: Run, userId: string | null, operations: readonly Json[]): Promise<0> {
    const { corpus } = this.ports;
    const prepared = await prepareConsolidation(corpus, userId, operations);
    const { whole } = run;
    const texts = await this.#textsOf(this.#found(run));
    await corpus.change(() => {
      this.#end();
      if (whole === undefined) return applyConsolidation(corpus, run.members, prepared);
      const memory = corpus.rows.memories.find(whole);
      const isCurrent = this.#found(run).every(({ n, version }) =>
        run.members.some((one) => one[0] === n && one[1] === version),
      );
      // A part has changed since. The mark is still set, so the rederivation starts again.
      if (memory !== undefined && (!isCurrent || this.#found(run).length < run.members.length)) return [];
      this.#rows.unmark(whole);
      if (memory?.hidden) rederiveSummary(corpus, memory, run.members, prepared, texts);
      return [];
    });
    return 0;
  }

  /** Ends a consolidation after its last attempt. Erases a summary that cannot be rederived. */
  async #giveUp(run: Run): Promise<0> {
    const { corpus } = this.ports;
    const { whole } = run;
    if (whole === undefined) await corpus.change(() => this.#end({ failed: true }));
    else
      await this.#eraseSummary(
        whole,
        run.members.map(([n]) => n),
        () => this.#end(),
      );
    return 0;
  }

  /** Erases a summary that cannot be rederived, and removes its mark. */
  async #eraseSummary(whole: number, parts: readonly number[], end: () => void = () => undefined) {
    const { corpus } = this.ports;
    const found = () => parts.flatMap((n) => corpus.rows.memories.find(n) ?? []);
    const prepared = await this.#textsOf(found());
    await corpus.change(() => {
      end();
      const memory = corpus.rows.memories.find(whole);
      this.#rows.unmark(whole);
      if (memory?.hidden) eraseSummary(corpus, memory, found(), prepared);
    });
  }

  /** Ends a consolidation after a change of its memories. They are grouped again. */
  #drop(): 0 {
    this.#end();
    return 0;
  }

  #end({ failed }: { failed?: true } = {}): void {
    const { run, round, paused, ...state } = this.#state;
    const isOfRound = run !== undefined && run.whole === undefined;
    const next = round === undefined ? undefined : { ...round, ...(failed && isOfRound && { failed }) };
    this.#put({ ...state, ...defined({ round: next, run: run?.whole === undefined ? undefined : paused }) });
  }

  #found({ members }: Run): StoredMemory[] {
    return members.flatMap(([n]) => this.ports.corpus.rows.memories.find(n) ?? []);
  }

  async #textsOf(memories: readonly StoredMemory[]): Promise<PreparedTexts> {
    const { corpus } = this.ports;
    const texts = new Map<string, string>();
    for (const memory of memories) texts.set(memory.hash, await corpus.texts.of(memory));
    return { texts, vectors: await corpus.ports.index.prepare([...texts.values()]) };
  }
}

function within(wait: number): number {
  return Math.max(SECOND_MS, wait);
}
