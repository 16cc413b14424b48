/**
 * Performs effects, each at most once at a time, and reports their outcomes.
 *
 * EFFECT-3  A reply that calls only `pure` tools may be reported together with their results, at most `PURE_WINDOW_MS`
 *           later; a crash in between repeats the model call.
 */

import type { ContextMessage } from "../../../model/messages.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import type { TaskExecutor } from "../../../protocol/executor-api.ts";
import { operationId } from "../../../protocol/ids.ts";
import type { Json } from "../../../shared/json.ts";
import { RunningEffects } from "../../base/runtime/running.ts";
import { type Effect, effectOfTurn } from "../core/effects.ts";
import { PURE_WINDOW_MS } from "../core/limits.ts";
import type { EffectSignal } from "../core/signals.ts";
import { type ConversationIdentity, type Operation, pendingOperations, type Turn } from "../core/state.ts";
import { type ModelCallPorts, performModelCall } from "./model-call.ts";
import { performToolBatch, type ToolReports } from "./tool-batch.ts";

/** Outcomes of one turn that are committed together. */
export type Outcomes = [EffectSignal, ...EffectSignal[]];

export interface EffectPorts extends ModelCallPorts {
  executor: TaskExecutor;
  record(): ConversationIdentity;
  /** Returns the window of the session for a turn's model calls. */
  history(turn: Turn): ContextMessage[];
  /** Returns the turn as it would be after a signal, without a commit; `undefined` where that cannot be planned. */
  preview(signal: EffectSignal): Turn | undefined;
  /** Commits outcomes. Never throws. */
  report(...outcomes: Outcomes): void;
  /** Takes a piece of the text that streams into the message `item`. */
  onText(turn: Turn, item: number, text: string): void;
  onProgress(turn: Turn, operationId: string, progress: Json): void;
}

/** The reports of pure tools that arrived before the reply that called them was committed. */
interface EarlyReports {
  results: EffectSignal[];
  /** The newest progress of each operation that still runs. */
  progress: Map<string, Json>;
}

export class EffectRunner {
  readonly #running = new RunningEffects();

  constructor(private readonly ports: EffectPorts) {}

  start(effect: Effect): void {
    const { turn } = effect;
    if (effect.kind === "model") {
      void this.#running.run(effect.key, (signal) => this.#callModel(effect, signal));
      return;
    }
    void this.#runTools(turn, effect, {
      onResult: (result) => this.ports.report(result),
      onProgress: (id, progress) => this.ports.onProgress(turn, id, progress),
    });
  }

  async #callModel({ turn, call }: Extract<Effect, { kind: "model" }>, signal: AbortSignal): Promise<void> {
    const { ports } = this;
    const input = {
      record: ports.record(),
      turn,
      call,
      history: () => ports.history(turn),
      onText: (text: string) => ports.onText(turn, call.item, text),
    };
    const outcome = await performModelCall(ports, input, signal);
    const { results, progress } = await this.#runEarly(outcome);
    ports.report(outcome, ...results);
    for (const [id, value] of progress) ports.onProgress(turn, id, value);
  }

  /** Runs the tools of a reply that calls only pure ones, before the reply is committed (EFFECT-3). */
  async #runEarly(outcome: EffectSignal): Promise<EarlyReports> {
    const early: EarlyReports = { results: [], progress: new Map() };
    if (outcome.type !== "conversation.llm.completed" || outcome.reply.toolCalls.length === 0) return early;
    const turn = this.ports.preview(outcome);
    const effect = turn === undefined ? undefined : effectOfTurn(turn);
    if (turn === undefined || effect?.kind !== "tools") return early;
    if (pendingOperations(turn).some((operation) => operation.effect !== "pure")) return early;
    let isOver = false;
    const batch = this.#runTools(turn, effect, {
      onResult: (result) => {
        if (isOver) return this.ports.report(result);
        early.results.push(result);
        early.progress.delete(operationId(turn, result.item));
      },
      onProgress: (id, progress) => {
        if (isOver) this.ports.onProgress(turn, id, progress);
        else early.progress.set(id, progress);
      },
    });
    await withDeadline(this.ports.clock, PURE_WINDOW_MS, () => batch).catch(() => undefined);
    isOver = true;
    return early;
  }

  #runTools(
    turn: Turn,
    { key, operations }: { key: string; operations: Operation[] },
    reports: ToolReports,
  ): Promise<void> {
    return this.#running.run(key, (signal) => {
      const input = { record: this.ports.record(), turn, operations, ...reports };
      return performToolBatch(this.ports.executor, input, signal);
    });
  }
}
