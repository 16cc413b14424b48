/**
 * Random runs of workflows in a world that fails. The reference interpreter judges each run. Further properties hold
 * under any failures.
 */

import { z } from "zod";
import type { RunState } from "../../../src/agents/coordinator/core/state.ts";
import type { RunRuntime } from "../../../src/agents/coordinator/run-runtime.ts";
import { defineLibrary } from "../../../src/library/define/define.ts";
import { defineTask } from "../../../src/library/define/define-task.ts";
import { ToolError } from "../../../src/library/tools/tool-error.ts";
import { soundnessIssues } from "../../../src/library/workflows/soundness/check.ts";
import type { CallAddress } from "../../../src/protocol/call-address.ts";
import type { NewEnvelope } from "../../../src/protocol/envelope.ts";
import { operationId } from "../../../src/protocol/ids.ts";
import type { PinnedWorkflow } from "../../../src/protocol/pinned-workflow.ts";
import type { WorkflowDefinition } from "../../../src/protocol/workflow-definition.ts";
import type { RunEntry } from "../../../src/protocol/workflow-run.ts";
import { DramatisError } from "../../../src/shared/errors.ts";
import type { Json } from "../../../src/shared/json.ts";
import { fingerprint } from "../../../src/shared/text.ts";
import { Random } from "../../../src/testing/random.ts";
import { Crossings, Fault } from "../../support/crossings.ts";
import { differences } from "../../support/workflows/agreement.ts";
import { generate } from "../../support/workflows/generate.ts";
import { lateAnswers, limitsOf, retriesOf } from "./judge.ts";
import { GATE_MS, pinned } from "./workflow.ts";
import { RunWorld } from "./world.ts";

/** The findings of one seed; `null` if its workflow is not sound. */
export interface FaultyRun {
  violations: string[];
  status: string;
  lives: number;
  /** Entries of the journal by their type. */
  entries: ReadonlyMap<string, number>;
  envelopes: number;
}

const LAST_POINT = 900;
/** Maximum number of steps of a run. A run with more steps is stuck. */
const MAX_STEPS = 20_000;
/** Tolerance of time limits without faults, and for a time after a fault, in milliseconds. */
const SLACK_MS = 100;
const DISTURBED_MS = 5_000;
const OTHERS_MS = 4_000;

interface Started {
  isOver: boolean;
  /** The run received the end, or the report that the work never began. */
  isReported: boolean;
  isCancelled: boolean;
}

export async function simulateFaultyRun(seed: number): Promise<FaultyRun | null> {
  const shape = generate(new Random(seed));
  if (soundnessIssues(shape, () => null).length > 0) return null;
  return new Simulated(seed, shape).run();
}

class Simulated {
  readonly #random: Random;
  readonly #crossings: Crossings;
  readonly #world: RunWorld;
  readonly #workflow: PinnedWorkflow;
  readonly #started = new Map<string, Started>();
  readonly #ran = new Map<string, number>();
  readonly #effect;
  /** Gates with a person or a handler, by operation. */
  readonly #asked = new Set<string>();
  readonly #violations: string[] = [];
  /** Faults that were seen. */
  #failed = 0;

  constructor(seed: number, shape: WorkflowDefinition) {
    const random = new Random(seed).fork("faults");
    this.#random = random;
    const points = (most: number) =>
      random.list(random.int(0, most), () => random.int(0, LAST_POINT)).sort((one, other) => one - other);
    const isCalm = random.chance(0.25);
    this.#crossings = new Crossings(isCalm ? [] : points(3), isCalm ? [] : points(4));
    this.#effect = random.pick(["pure", "idempotent", "once"] as const);
    const isRetried = this.#effect !== "once";
    const task = defineTask({
      ...{ id: "task", input: z.looseObject({}), effect: this.#effect, timeoutMs: 20_000 },
      ...(isRetried && { retry: { maxAttempts: 4, initialDelayMs: 700 } }),
      execute: (_, context) => this.#work(seed, context.operationId),
    });
    this.#workflow = pinned(shape, random, {
      ...{ library: "lib", id: "task", effect: this.#effect, timeoutMs: 20_000 },
      ...(isRetried && { retry: { maxAttempts: 4, backoffMs: 700 } }),
    });
    this.#world = new RunWorld(defineLibrary("lib", { tasks: [task] }), this.#crossings, (envelope) =>
      this.#deliver(envelope),
    );
    if (!isCalm) this.#disturb();
  }

  async run(): Promise<FaultyRun> {
    const world = this.#world;
    this.#crossings.arm();
    const ids = { id: "run_01", tenant: "local", projectId: "default", stem: "01ARZ3NDEKTSV4RRFFQ" };
    await world.start({
      ...{ ...ids, workflow: this.#workflow, input: { a: "a" }, startedBy: "ada", request: "" },
    });
    for (let step = 0; !world.isOver; step++) {
      await breathe();
      this.#look();
      if (world.isOver) break;
      const isStuck = step > MAX_STEPS || this.#violations.length + world.violations.length > 0;
      if (isStuck || !(await world.clock.runNext())) {
        this.#violations.push(isStuck ? "It does not end." : "It sleeps without a wake-up.");
        break;
      }
    }
    this.#crossings.disarm();
    world.kill();
    // Other actors continue after the end of the run. Late arrivals must not change the run.
    const before = await world.call(({ state }) => state.seq);
    for (let step = 0; step < 200 && (await world.clock.runNext()); step++) await breathe();
    const { state, entries, times } = await world.call(read);
    if (state.seq !== before) this.#violations.push("Something has changed behind its end.");
    this.#violations.push(...world.violations, ...this.#judge(state, entries, times));
    const counts = new Map<string, number>();
    for (const { type } of entries) counts.set(type, (counts.get(type) ?? 0) + 1);
    return {
      ...{ violations: this.#violations, status: state.status, lives: world.lives },
      ...{ entries: counts, envelopes: world.sent.length },
    };
  }

  async #work(seed: number, operation: string): Promise<Json> {
    const times = (this.#ran.get(operation) ?? 0) + 1;
    this.#ran.set(operation, times);
    const own = new Random(Number.parseInt(fingerprint(`${seed} ${operation}`), 16));
    await this.#world.clock.sleep(own.pick([0, 1, 300, 2_500]));
    // It never answers, so its time limit ends it.
    if (own.chance(0.02)) await new Promise(() => undefined);
    if (own.chance(0.05)) throw new ToolError("It fails.");
    if (own.chance(0.2) && times === 1) throw new Error("It breaks, once.");
    return outputOf(own);
  }

  /** Kills the actor now and then, and sets the clock. */
  #disturb(): void {
    const random = this.#random;
    const { clock } = this.#world;
    for (let left = random.int(0, 2); left > 0; left--)
      clock.timer(random.int(1, 8_000), () => this.#world.kill());
    if (random.chance(0.3))
      clock.timer(random.int(1, 4_000), () => this.#world.setClock(random.pick([-9_000, -300, 1_000])));
  }

  /** Takes an envelope as the actor that it is for. */
  #deliver({ type, to, body }: NewEnvelope): void {
    const address = body as unknown as CallAddress;
    const known = this.#started.get(to.id);
    if (type.endsWith(".cancel")) {
      this.#started.set(to.id, { isOver: true, isReported: known?.isReported ?? false, isCancelled: true });
      return;
    }
    if (known !== undefined) {
      if (!known.isCancelled) this.#violations.push(`${to.id} is started twice.`);
      return;
    }
    const started: Started = { isOver: false, isReported: false, isCancelled: false };
    this.#started.set(to.id, started);
    const own = this.#random.fork(to.id);
    const error = own.chance(0.08)
      ? { code: own.pick(["OUTCOME_UNKNOWN", "UNAVAILABLE"]), message: "It was not delivered." }
      : own.chance(0.08)
        ? { code: "FAILED", message: "It failed." }
        : undefined;
    const outcome = error === undefined ? { output: outputOf(own) } : { error };
    const isDelivered = error === undefined || error.code === "FAILED";
    this.#world.clock.timer(own.int(1, OTHERS_MS), () => {
      if (started.isOver) return;
      // If the outcome is unknown, the work may or may not have begun.
      started.isOver = error?.code !== "OUTCOME_UNKNOWN";
      const stale = { ...address, attempt: address.attempt + 1 };
      if (isDelivered && own.chance(0.3)) this.#tell(({ end }) => end(stale, outcome));
      this.#tell(
        ({ end }) => end(address, outcome),
        () => {
          started.isReported = true;
          if (own.chance(0.3)) this.#tell(({ end }) => end(address, { output: "again" }));
        },
      );
    });
  }

  /** Repeats a message until the run has taken it, and then calls `onTaken`. */
  #tell(message: (run: Pick<RunRuntime, "end">) => Promise<void>, onTaken = () => {}): void {
    const attempt = async () => {
      try {
        await this.#world.call((runtime) =>
          message({ end: (address, outcome) => runtime.end(address, outcome) }),
        );
        onTaken();
      } catch (error) {
        if (error instanceof Fault) this.#world.clock.timer(500, () => void attempt());
        else this.#violations.push(String(error));
      }
    };
    this.#world.clock.timer(0, () => void attempt());
  }

  /** Looks for gates without a timer or handler, and for missed limits. */
  #look(): void {
    const world = this.#world;
    if (this.#crossings.failed > this.#failed) world.disturbedAt = world.clock.elapsed;
    this.#failed = this.#crossings.failed;
    const { runtime } = world;
    if (runtime === null) return;
    let state: RunState;
    try {
      state = runtime.state;
    } catch {
      return;
    }
    for (const { id, node, phase } of state.tokens.values())
      if (phase.kind === "working" && this.#workflow.tasks[node]?.task !== undefined)
        this.#answer(id, phase.deadline);
    if (state.time?.isAsked) this.#answerOvertime(4_000_000 + state.time.asked);
    if (world.clock.elapsed - world.disturbedAt < DISTURBED_MS) return;
    const now = Math.max(world.clock.now(), runtime.store.newestAt);
    for (const [what, at] of limitsOf(state))
      if (at + SLACK_MS < now) this.#violations.push(`${what} is over since ${now - at} ms.`);
  }

  /** Lets a person answer: rightly or wrongly, again, or too late. */
  #answer(token: number, deadline: number | undefined): void {
    const operationId = operationOf(token);
    if (this.#asked.has(operationId)) return;
    this.#asked.add(operationId);
    const own = this.#random.fork(operationId);
    const { clock } = this.#world;
    if (own.chance(0.3)) this.#say(own.int(0, 500), operationId, "wrong", ["INVALID_INPUT"]);
    if (deadline !== undefined && own.chance(0.4)) {
      // If the clock is set back, the answer is in time. The journal decides.
      const late = Math.max(0, deadline - clock.now()) + own.pick([0, 1, 50]);
      this.#say(late, operationId, { ok: 1 }, []);
      return;
    }
    const answer = outputOf(own);
    this.#say(own.int(0, GATE_MS - 500), operationId, answer, [], () => {
      if (own.chance(0.5)) this.#say(20, operationId, answer, []);
      if (own.chance(0.5)) this.#say(40, operationId, { other: 1 }, ["CONFLICT"]);
    });
  }

  #answerOvertime(gate: number): void {
    const operationId = operationOf(gate);
    if (this.#asked.has(operationId)) return;
    this.#asked.add(operationId);
    const own = this.#random.fork(operationId);
    if (own.chance(0.3)) this.#say(1, operationId, { approved: "yes" }, ["INVALID_INPUT"]);
    this.#say(own.int(2, 3_000), operationId, { approved: own.chance(0.7) }, []);
  }

  /**
   * Answers a gate after a time, repeats the answer until it arrives, and then calls `onTaken`. `refusals`: the errors
   * that it must get; empty if it must succeed.
   */
  #say(
    after: number,
    operation: string,
    answer: Json,
    refusals: readonly string[],
    onTaken = () => {},
  ): void {
    const attempt = async () => {
      try {
        await this.#world.call((runtime) => runtime.answer(operation, answer, "ben"));
        if (refusals.length > 0) this.#violations.push(`${operation} takes ${JSON.stringify(answer)}.`);
        onTaken();
      } catch (error) {
        if (!(error instanceof DramatisError)) this.#world.clock.timer(300, () => void attempt());
        else if (error.code !== "CONFLICT" && !refusals.includes(error.code))
          this.#violations.push(`${operation} refuses ${JSON.stringify(answer)}: ${error.code}`);
      }
    };
    this.#world.clock.timer(after, () => void attempt());
  }

  #judge(state: RunState, entries: readonly RunEntry[], times: readonly number[]): string[] {
    const found = differences(state, entries);
    // A failed run keeps only the state that a retry needs.
    const { tokens, fanOuts } = state.stopped ?? { tokens: new Map(), fanOuts: new Map() };
    if (this.#rows("run_tokens") !== tokens.size) found.push("It left rows in run_tokens.");
    if (this.#rows("run_fan_outs") !== fanOuts.size) found.push("It left rows in run_fan_outs.");
    if (fanOuts.size === 0 && this.#rows("run_branches") > 0) found.push("It left rows in run_branches.");
    if (times.some((at, index) => at < (times[index - 1] ?? 0))) found.push("Its time went back.");
    if (this.#effect === "once")
      for (const [id, count] of this.#ran) if (count > 1) found.push(`${id} ran ${count} times.`);
    const known = new Set(
      entries.flatMap(({ type, token, data }) =>
        type === "task.completed" ||
        (type === "task.failed" && !JSON.stringify(data).includes("OUTCOME_UNKNOWN"))
          ? [operationOf(token ?? -1)]
          : [],
      ),
    );
    for (const { type, to, body } of this.#world.sent) {
      const { operationId } = body as unknown as CallAddress;
      if (type.endsWith(".cancel") && known.has(operationId))
        found.push(`${to.id} is cancelled after its end.`);
    }
    for (const [id, { isOver, isReported, isCancelled }] of this.#started)
      if (!isCancelled && !isOver) found.push(`${id} continues${isReported ? ", of unknown outcome" : ""}.`);
    return [...found, ...retriesOf(entries), ...lateAnswers(entries, times, this.#workflow)];
  }

  #rows(table: string): number {
    const exists = this.#world.database.all(`SELECT 1 AS one FROM sqlite_master WHERE name = '${table}'`);
    return exists.length === 0 ? 0 : this.#world.database.all(`SELECT 1 AS one FROM ${table}`).length;
  }
}

/** Returns the state of a run, its entries, and the time of each. */
function read({ store, state }: RunRuntime): { state: RunState; entries: RunEntry[]; times: number[] } {
  const entries: RunEntry[] = [];
  const times: number[] = [];
  for (
    let row = store.journal.holding(1);
    row !== undefined;
    row = store.journal.holding(entries.length + 1)
  ) {
    if (row.seq !== entries.length + 1) break;
    entries.push(...row.entries);
    times.push(...row.entries.map(() => row?.at ?? 0));
  }
  return { state, entries, times };
}

function operationOf(token: number): string {
  return operationId({ stem: "01ARZ3NDEKTSV4RRFFQ", n: token }, 0);
}

function outputOf(random: Random) {
  const flags = random.list(6, (at) => [`c${at}`, random.chance(0.5)] as const);
  const items = random.list(random.int(0, 3), (at) => at);
  return { ...Object.fromEntries(flags), items, v: random.pick<Json>([1, [1, 2], {}]) };
}

/** Runs all promise reactions that are ready. */
function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
