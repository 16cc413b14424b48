/**
 * Performs effects, each at most once at a time, and reports their outcomes. Operations of one turn that start together
 * go to the Executor in one call.
 *
 * EFFECT-3  A reply that calls only `pure` tools may be reported together with their results, at most `PURE_WINDOW_MS`
 *           later. A crash before the report repeats the model call.
 * EFFECT-7  At most `toolCalls` foreground calls of tools run at a time, and one call of each turn. Further calls wait. When a call has ended,
 *           a call of the turn with the fewest calls begins. Calls in the background and attempts after a pause do not count.
 */
import type { ContextMessage } from "../../../model/messages.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import { operationId } from "../../../protocol/ids.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { RunningEffects } from "../../base/runtime/running.ts";
import type { RuntimeContext } from "../context.ts";
import { hookRunOf } from "../core/called-run.ts";
import { HOOK_TIMEOUT_MS, MAX_RUNNING_CALLS, PURE_WINDOW_MS } from "../core/conversation-limits.ts";
import {
  type AssemblyEffect,
  type Effect,
  type ExtractionEffect,
  effectsOfTurn,
  type ModelCallEffect,
  type OperationEffect,
  type SideCallEffect,
} from "../core/effects.ts";
import { hookOperation } from "../core/hooks.ts";
import type { Operation } from "../core/operation.ts";
import { hookRunRefusal } from "../core/planning/call-guards.ts";
import { failure } from "../core/planning/tool-call.ts";
import type { SummaryCall } from "../core/side-calls.ts";
import type { AttemptFacts, EffectSignal, SideCallSignal } from "../core/signals.ts";
import { type ConversationIdentity, chainOf } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";
import { openOperations } from "../core/turn-operations.ts";
import { assemblyInput, extractionInput } from "./hook-input.ts";
import { HookRuns } from "./hook-runs.ts";
import { askToJoin } from "./join.ts";
import type { ModelCallContext } from "./model-attempt.ts";
import {
  type CompactedTurn,
  performModelCall,
  performSideCall,
  summaryAsked,
  titleAsked,
} from "./model-call.ts";
import { offered } from "./offer.ts";
import { recallFor } from "./recall.ts";
import { ToolBatch, type ToolReports } from "./tool-batch.ts";

/** Outcomes of one turn that are committed together. */
export type Outcomes = [EffectSignal, ...EffectSignal[]];

export interface EffectContext
  extends ModelCallContext,
    Pick<RuntimeContext, "agent" | "knowledge" | "invite" | "run" | "waitUntil" | "executor" | "toolCalls"> {
  record(): ConversationIdentity;
  /** Returns the window of the session for a turn's model calls. */
  history(turn: Turn): ContextMessage[];
  /** Returns the finished turns of other agents that a turn's cycle shows. */
  shownTurns(turn: Turn): Turn[];
  /** Returns the turn that began a compaction when it ended, and a reader of the history that the summary covers. */
  compacted(call: SummaryCall): { turn: CompactedTurn; history: () => ContextMessage[] };
  /** As `report`. */
  reportSideCall(outcome: SideCallSignal): boolean;
  finished(n: number): Turn;
  /** Returns the turn as it would be after a signal, without a commit; `undefined` if the signal cannot be planned. */
  preview(signal: EffectSignal): Turn | undefined;
  /** Commits outcomes. Returns `false` if they are not stored and wait for another attempt. Never throws. */
  report(...outcomes: Outcomes): boolean;
  /** Returns the bytes of JSON that each open call of a turn may have as its result (LARGE-1). */
  inlineBytes(turn: Turn): number;
  /** Starts the effects that the state calls for and that do not run. */
  startMore(): void;
  /** Receives a piece of the text that streams into the message `item`. */
  onText(turn: Turn, item: number, text: string): void;
  onProgress(turn: Turn, operationId: string, progress: Json): void;
}

/** The reports of pure tools that arrived before the reply that called them was committed. */
interface EarlyReports {
  results: EffectSignal[];
  /** The newest progress of each running operation. */
  progress: Map<string, Json>;
}

export class EffectRunner {
  readonly #running = new RunningEffects();
  /** The measurements so far of running model calls, by key. */
  readonly #attempts = new Map<string, () => AttemptFacts>();

  /** The turns of the running calls that count, by the keys of the calls (EFFECT-7). */
  readonly #counted = new Map<string, number>();
  /** Calls wait until a counted call has ended. */
  #areWaiting = false;

  readonly hookRuns: HookRuns;

  constructor(private readonly context: EffectContext) {
    this.hookRuns = new HookRuns(context);
  }

  /** Starts the effects that do not run. */
  start(effects: readonly Effect[]): void {
    for (const effect of effects) {
      if (effect.kind === "model")
        void this.#running.run(effect.key, (signal) => this.#callModel(effect, signal));
      if (effect.kind === "assembly" || effect.kind === "extraction")
        void this.#running.run(effect.key, (signal) => this.#runHook(effect, signal));
      if (effect.kind === "side-call")
        void this.#running.run(effect.key, (signal) => this.#callBeside(effect, signal));
      if (effect.kind === "join")
        void this.#running.run(effect.key, async (signal) => {
          const outcome = await askToJoin(this.context, this.context.record(), effect, signal);
          if (outcome !== undefined) this.context.report(outcome);
        });
    }
    const beginning = this.#beginning(operationEffects(effects));
    for (const [turn, ofTurn] of Map.groupBy(beginning, (effect) => effect.turn)) {
      void this.#runTools(turn, ofTurn, {
        onResults: (results) => this.context.report(...results),
        onProgress: (id, progress) => this.context.onProgress(turn, id, progress),
      });
    }
  }

  /** Returns the measurements of a model call's running attempt, by its key; `undefined` if it does not run. */
  factsOf(key: string): AttemptFacts | undefined {
    return this.#attempts.get(key)?.();
  }

  /** Aborts the effects of these keys that run. */
  abort(keys: Iterable<string>): void {
    for (const key of keys) this.#running.abort(key);
  }

  async #callModel({ key, turn, call }: ModelCallEffect, signal: AbortSignal): Promise<void> {
    const { context } = this;
    const input = {
      record: context.record(),
      turn,
      call,
      history: () => context.history(turn),
      shownTurns: () => context.shownTurns(turn),
      recall: async () => (await recallFor(context, context.record(), turn, signal))?.recalled,
      onBegin: (facts: () => AttemptFacts) => this.#attempts.set(key, facts),
      onText: (text: string) => context.onText(turn, call.item, text),
    };
    try {
      const outcome = await performModelCall(context, input, signal);
      const { results, progress } = await this.#runEarly(outcome, signal);
      context.report(outcome, ...results);
      for (const [id, value] of progress) context.onProgress(turn, id, value);
    } finally {
      // A stop before this point counts the attempt, although its outcome is not committed.
      this.#attempts.delete(key);
    }
  }

  async #callBeside({ key, running }: SideCallEffect, signal: AbortSignal): Promise<void> {
    const { context } = this;
    const record = context.record();
    const onBegin = (facts: () => AttemptFacts) => this.#attempts.set(key, facts);
    try {
      const asked = running.title
        ? titleAsked(context.finished(running.turn))
        : summaryAsked(record, running, context.compacted(running));
      context.reportSideCall(await performSideCall(context, { record, running, ...asked, onBegin }, signal));
    } finally {
      this.#attempts.delete(key);
    }
  }

  /** Runs a hook in the Executor. If its input cannot be read, it fails as retriable. */
  async #runHook(effect: AssemblyEffect | ExtractionEffect, signal: AbortSignal): Promise<void> {
    const { clock, executor, report } = this.context;
    const { run } = effect;
    const wait = run.notBefore - clock.now();
    if (wait > 0) await clock.sleep(wait, signal).catch(() => undefined);
    if (signal.aborted) return;
    const record = this.context.record();
    const n = effect.kind === "assembly" ? effect.turn.n : effect.n;
    const ended = (result: ToolResult): EffectSignal => {
      const { item, attempt } = run;
      return { type: "conversation.tool.completed", turn: n, item, attempt, result };
    };
    try {
      const read = effect.kind === "assembly" ? effect.turn : this.context.finished(effect.n);
      const found =
        effect.kind === "assembly" ? await recallFor(this.context, record, read, signal) : undefined;
      const recalled = defined({ recalled: found?.recalled });
      const turn: Turn = { ...read, ...recalled };
      const { contextAssembly, memoryExtraction } = chainOf(record, turn.agentId);
      const hook = effect.kind === "assembly" ? contextAssembly : memoryExtraction;
      if (hook === undefined) throw new Error("The agent has no such hook.");
      const refusal = hookRunRefusal(record, turn, hook);
      if (refusal !== null) {
        report(ended(refusal));
        return;
      }
      const { input, taint } =
        effect.kind === "assembly"
          ? assemblyInput(record, turn, this.context.history(turn), found?.memories)
          : extractionInput(
              record,
              turn,
              await offered(this.context, record, turn, { operationId: operationId(turn, run.item), signal }),
            );
      const given = { ...recalled, taint };
      const { workflow } = hook;
      if (workflow !== undefined) {
        const called = hookRunOf(record, turn, run, { workflow, input, taint });
        const timeoutMs = Math.min(hook.timeoutMs, HOOK_TIMEOUT_MS);
        const started = { called, timeoutMs, given, tenant: record.tenant, pinned: workflow };
        const failed = await this.hookRuns.start(started, signal);
        if (failed !== undefined) report({ ...ended(failed), ...given });
        return;
      }
      const batch = new ToolBatch({
        record,
        turn,
        taint,
        onResults: ([first, ...others]) => report({ ...first, ...given }, ...others),
        onProgress: () => undefined,
      });
      const followed = batch.followHook(hook, hookOperation(turn, hook, run, input), signal);
      void batch.run(executor, clock, clock.now());
      await followed;
    } catch (error) {
      if (signal.aborted) return;
      console.error(error);
      const result = failure("", "INTERNAL_ERROR", "The input of the hook could not be read.", true);
      report(ended(result));
    }
  }

  /** Runs the tools of a reply with only pure calls, before the reply is committed (EFFECT-3). */
  async #runEarly(outcome: EffectSignal, signal: AbortSignal): Promise<EarlyReports> {
    const early: EarlyReports = { results: [], progress: new Map() };
    if (outcome.type !== "conversation.llm.completed" || outcome.reply.toolCalls.length === 0) return early;
    const turn = this.context.preview(outcome);
    if (turn === undefined || openOperations(turn).some(mayNotRunEarly)) return early;
    const effects = operationEffects(effectsOfTurn(turn));
    if (effects.length === 0) return early;
    let isOver = false;
    const batch = this.#runTools(turn, this.#beginning(effects), {
      onResults: (results) => {
        if (isOver) return this.context.report(...results);
        early.results.push(...results);
        for (const { item } of results) early.progress.delete(operationId(turn, item));
        // A crash repeats the model call and its pure tools.
        return true;
      },
      onProgress: (id, progress) => {
        if (isOver) this.context.onProgress(turn, id, progress);
        else early.progress.set(id, progress);
      },
    });
    const onAbort = () => this.abort(effects.map(({ key }) => key));
    signal.addEventListener("abort", onAbort, { once: true });
    await this.#within(PURE_WINDOW_MS, batch);
    signal.removeEventListener("abort", onAbort);
    isOver = true;
    return early;
  }

  /** Resolves with `work`, or after `milliseconds`. */
  async #within(milliseconds: number, work: Promise<void>): Promise<void> {
    let stop = () => {};
    const late = new Promise<void>((resolve) => {
      stop = this.context.clock.timer(milliseconds, resolve);
    });
    await Promise.race([work, late]);
    stop();
  }

  /** Runs operations. Operations with the same start time go into one call. */
  async #runTools(turn: Turn, effects: readonly OperationEffect[], reports: ToolReports): Promise<void> {
    const { clock, executor } = this.context;
    const now = clock.now();
    const byStart = Map.groupBy(effects, ({ operation: { notBefore = now } }) => Math.max(now, notBefore));
    const runs = [...byStart].map(([startAt, together]) => {
      const batch = new ToolBatch({
        record: this.context.record(),
        turn,
        inlineBytes: this.context.inlineBytes(turn),
        ...reports,
      });
      const followed = together.map(({ key, operation }) =>
        this.#running
          .run(key, (signal) => batch.follow(operation, signal))
          .finally(() => this.#makeRoom(key)),
      );
      void batch.run(executor, clock, startAt);
      return Promise.all(followed);
    });
    await Promise.all(runs);
  }

  /** Returns the calls that begin now, and counts them (EFFECT-7). */
  #beginning(effects: readonly OperationEffect[]): OperationEffect[] {
    const now = this.context.clock.now();
    const idle = effects.filter(({ key }) => !this.#running.has(key));
    const isFree = ({ operation: { mode, notBefore = 0 } }: OperationEffect) =>
      mode === "async" || notBefore > now;
    const places = Map.groupBy(this.#counted.values(), (n) => n);
    const running = new Map([...places].map(([n, { length }]) => [n, length]));
    // The number of calls of its turn before each call.
    const ranked = idle
      .filter((effect) => !isFree(effect))
      .map((effect) => {
        const rank = running.get(effect.turn.n) ?? 0;
        running.set(effect.turn.n, rank + 1);
        return { effect, rank };
      });
    const most = this.context.toolCalls ?? MAX_RUNNING_CALLS;
    const chosen = ranked
      .toSorted((one, other) => one.rank - other.rank)
      .filter(({ effect: { key, turn }, rank }) => {
        if (rank > 0 && this.#counted.size >= most) return false;
        this.#counted.set(key, turn.n);
        return true;
      });
    this.#areWaiting ||= chosen.length < ranked.length;
    return [...idle.filter(isFree), ...chosen.map(({ effect }) => effect)];
  }

  #makeRoom(key: string): void {
    if (!this.#counted.delete(key) || !this.#areWaiting) return;
    this.#areWaiting = false;
    this.context.startMore();
  }
}

/** Reports whether an operation must wait for the commit of its reply. Only early results that the next model call needs save time. */
function mayNotRunEarly({ effect, mode }: Operation): boolean {
  return effect !== "pure" || mode === "async";
}

function operationEffects(effects: readonly Effect[]): OperationEffect[] {
  return effects.filter((effect) => effect.kind === "tool");
}
