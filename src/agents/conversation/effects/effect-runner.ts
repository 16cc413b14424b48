/**
 * Performs effects, each at most once at a time, and reports their outcome.
 *
 * EFFECT-2  An effect that runs is not started again; one that was lost may be.
 * EFFECT-3  A reply that calls only `pure` tools may be reported together with their results, at most `PURE_WINDOW_MS`
 *           later; a crash in between repeats the model call.
 */

import type { ContextMessage } from "../../../model/messages.ts";
import { withDeadline } from "../../../ports/deadline.ts";
import type { CallContext } from "../../../shared/call-context.ts";
import type { Json } from "../../../shared/json.ts";
import type { TaskExecutor } from "../../executor/types.ts";
import { operationId, turnId } from "../core/ids.ts";
import { PURE_WINDOW_MS } from "../core/limits.ts";
import type { EffectSignal } from "../core/signals.ts";
import {
  type ConversationIdentity,
  type ModelCall,
  type Operation,
  pendingOperations,
  type Turn,
} from "../core/state.ts";
import { type Effect, effectOfTurn } from "./effects.ts";
import { type ModelCallPorts, performModelCall } from "./model-call.ts";
import { performToolBatch, type ToolBatchInput } from "./tool-batch.ts";

/** What an effect needs of its conversation. */
export interface EffectReports {
  readonly record: ConversationIdentity;
  history(turn: Turn): ContextMessage[];
  /** The turn as it would be after a signal, without committing anything. */
  preview(signal: EffectSignal): Turn | undefined;
  /** Takes outcomes in. Never throws. */
  report(signals: readonly EffectSignal[]): void;
  /** A piece of the text that streams into the message `item`. */
  onText(turn: Turn, item: number, text: string): void;
  onProgress(turn: Turn, operationId: string, progress: Json): void;
}

export interface EffectPorts extends ModelCallPorts {
  executor: TaskExecutor;
}

type ToolSink = Pick<ToolBatchInput, "onResult" | "onProgress">;

/** What came of pure tools before the reply that called them was committed. */
interface Early {
  results: EffectSignal[];
  /** The newest of each operation that still runs. */
  progress: Map<string, Json>;
}

export class EffectRunner {
  readonly #running = new Map<string, AbortController>();

  constructor(
    private readonly ports: EffectPorts,
    private readonly host: EffectReports,
  ) {}

  start(effect: Effect): void {
    this.#run(effect.key, (signal) =>
      effect.kind === "model"
        ? this.#callModel(effect.turn, effect.call, signal)
        : this.#runTools(effect.turn, effect.operations, this.#sinkOf(effect.turn), signal),
    );
  }

  /** Runs `work` under `key`, unless that runs already. The promise resolves when it has ended, however it did. */
  #run(key: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#running.has(key)) return Promise.resolve();
    const controller = new AbortController();
    this.#running.set(key, controller);
    return work(controller.signal)
      .catch((error: unknown) => console.error(error))
      .finally(() => this.#running.delete(key));
  }

  async #callModel(turn: Turn, call: ModelCall, signal: AbortSignal): Promise<void> {
    const input = {
      record: this.host.record,
      turn,
      call,
      history: () => this.host.history(turn),
      context: this.#contextOf(turn),
      onText: (text: string) => this.host.onText(turn, call.item, text),
    };
    const outcome = await performModelCall(this.ports, input, signal);
    const { results, progress } = await this.#early(outcome);
    this.host.report([outcome, ...results]);
    for (const [operation, value] of progress) this.host.onProgress(turn, operation, value);
  }

  /** EFFECT-3: runs the tools of a reply that calls only pure ones; what comes in time, to be told once it is committed. */
  async #early(outcome: EffectSignal): Promise<Early> {
    const early: Early = { results: [], progress: new Map() };
    if (outcome.type !== "conversation.llm.completed" || outcome.reply.toolCalls.length === 0) return early;
    const turn = this.host.preview(outcome);
    const [effect] = turn === undefined ? [] : effectOfTurn(turn);
    if (turn === undefined || effect?.kind !== "tools") return early;
    if (pendingOperations(turn).some((operation) => operation.effect !== "pure")) return early;
    let isOver = false;
    const sink: ToolSink = {
      onResult: (result) => {
        if (isOver) return this.host.report([result]);
        early.results.push(result);
        early.progress.delete(operationId(effect.turn.stem, effect.turn.n, result.item));
      },
      onProgress: (operation, progress) => {
        if (isOver) this.host.onProgress(effect.turn, operation, progress);
        else early.progress.set(operation, progress);
      },
    };
    const batch = this.#run(effect.key, (signal) =>
      this.#runTools(effect.turn, effect.operations, sink, signal),
    );
    await withDeadline(this.ports.clock, PURE_WINDOW_MS, () => batch).catch(() => undefined);
    isOver = true;
    return early;
  }

  #runTools(turn: Turn, operations: Operation[], sink: ToolSink, signal: AbortSignal): Promise<void> {
    const { chain } = this.host.record;
    const input = { chain, turn, operations, context: this.#contextOf(turn), ...sink };
    return performToolBatch(this.ports.executor, input, signal);
  }

  /** Takes in what tools report as it comes. */
  #sinkOf(turn: Turn): ToolSink {
    return {
      onResult: (result) => this.host.report([result]),
      onProgress: (operationId, progress) => this.host.onProgress(turn, operationId, progress),
    };
  }

  #contextOf(turn: Turn): CallContext {
    const { tenant, projectId, id } = this.host.record;
    const { agentId } = turn;
    return { tenant, projectId, agentId, conversationId: id, turnId: turnId(turn.stem, turn.n) };
  }
}
