/** A batch of operations of one turn that run in one call of the Executor. Their ends become signals. */
import { parseReference } from "../../../library/definitions/reference.ts";
import { skillsOf } from "../../../library/definitions/version-chain.ts";
import { taskTarget } from "../../../library/tools/agent-tool.ts";
import { a2aTarget } from "../../../library/tools/remote-agent.ts";
import type { Taint } from "../../../model/taint.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { PinnedHook, VersionChain } from "../../../protocol/definitions.ts";
import { answerTo, type ElicitedAnswer } from "../../../protocol/elicitation.ts";
import type { TaskExecutor, ToolInvocation } from "../../../protocol/executor-api.ts";
import { operationId } from "../../../protocol/ids.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { checkBudget } from "../../../shared/json-schema/violations.ts";
import { type BatchCall, CallBatch, type CallEnd } from "../../base/calls/call-batch.ts";
import { calledMemory } from "../core/called-memory.ts";
import type { Operation } from "../core/operation.ts";
import { targetInput } from "../core/shown-call.ts";
import type { ToolEnded } from "../core/signals.ts";
import { agentOf, type ConversationIdentity, callContext, chainOf } from "../core/state.ts";
import { taintOfCall } from "../core/taints.ts";
import { operationTraceparent, turnTraceparent } from "../core/trace.ts";
import type { Turn } from "../core/turn.ts";

/** Time limit of one attempt of a call of a remote agent, in milliseconds. The deadline of the operation limits all attempts together. */
const REMOTE_ATTEMPT_MS = 150_000;

export interface ToolReports {
  /** Takes results that arrived together. Returns `false` if they are not stored and the Executor must send them by name. */
  onResults: (signals: [ToolEnded, ...ToolEnded[]]) => boolean;
  onProgress: (operationId: string, progress: Json) => void;
}

export interface ToolBatchInput extends ToolReports {
  record: ConversationIdentity;
  turn: Turn;
  /** The taint of the input of a hook. An operation has the taint of its reply's request. */
  taint?: Taint;
  /** Maximum bytes of JSON of a call's result in the turn (LARGE-1); absent for hooks. */
  inlineBytes?: number;
}

export class ToolBatch {
  readonly #batch: CallBatch;
  readonly #items = new Map<string, number>();
  readonly #hooks = new Map<Operation, PinnedHook>();
  /** The signals so far. A repeated end gives the same signal object, so the shell finds the stored signal (RUN-4). */
  readonly #signals = new WeakMap<CallEnd, ToolEnded>();

  constructor(private readonly input: ToolBatchInput) {
    this.#batch = new CallBatch({
      onEnds: ([first, ...others]) =>
        input.onResults([this.#signalOf(first), ...others.map((end) => this.#signalOf(end))]),
      onProgress: (id, progress) => input.onProgress(id, progress),
    });
  }

  /** Adds an operation, before `run`. Resolves when it has a result or is aborted. */
  follow(operation: Operation, signal: AbortSignal): Promise<void> {
    const call = this.#callOf(operation);
    this.#items.set(call.operationId, operation.item);
    return this.#batch.follow(call, signal);
  }

  /** As `follow`, for a run of a hook. */
  followHook(hook: PinnedHook, operation: Operation, signal: AbortSignal): Promise<void> {
    this.#hooks.set(operation, hook);
    return this.follow(operation, signal);
  }

  /** As `run` of `CallBatch`. */
  run(executor: TaskExecutor, clock: Clock, startAt: number): Promise<void> {
    return this.#batch.run(executor, clock, startAt);
  }

  #callOf(operation: Operation): BatchCall {
    const { record, turn, inlineBytes, taint = taintOfCall(turn, operation.reply) } = this.input;
    const { item, attempt, toolCallId, name, effect, timeoutMs, reserved: allowance } = operation;
    const hook = this.#hooks.get(operation);
    return {
      operationId: operationId(turn, item),
      ...{ attempt, toolCallId, name, effect },
      invocation: () => ({
        ...(hook === undefined
          ? { ...invocationOf(chainOf(record, turn.agentId), operation), ...defined({ inlineBytes }) }
          : hookInvocation(hook, operation)),
        ...defined({ allowance, answer: answerOf(operation) }),
        ...calledMemory(record, turn, taint),
        ...defined({
          projectIds: agentOf(record, turn.agentId).projectIds,
          skills: skillsOf(chainOf(record, turn.agentId)),
        }),
        timeoutMs: operation.remote === undefined ? timeoutMs : REMOTE_ATTEMPT_MS,
        context: {
          ...callContext(record, turn),
          // A hook has no span.
          traceparent: hook === undefined ? operationTraceparent(turn, item) : turnTraceparent(turn),
        },
      }),
    };
  }

  #signalOf(ended: CallEnd): ToolEnded {
    const signal = this.#signals.get(ended) ?? this.#newSignal(ended);
    this.#signals.set(ended, signal);
    return signal;
  }

  #newSignal({ operationId: id, attempt, end, lost }: CallEnd): ToolEnded {
    const item = this.#items.get(id);
    if (item === undefined) throw new Error(`The batch has no operation "${id}".`);
    const { n: turn } = this.input.turn;
    const address = { turn, item, attempt };
    if ("deferred" in end) return { type: "conversation.tool.deferred", ...address, ...end.deferred };
    const { result, transient, continuesAt, elicited, task, tainted } = end;
    return {
      type: "conversation.tool.completed",
      ...address,
      result,
      ...defined({ transient, continuesAt, elicited, task, tainted, lost }),
    };
  }
}

/** Returns the answer of a person that an attempt brings to its server. */
function answerOf({ elicited }: Operation): ElicitedAnswer | undefined {
  return elicited?.values === undefined ? undefined : answerTo(elicited, elicited.values);
}

const NOWHERE: ToolInvocation["tool"] = { library: "", id: "", version: 0 };

function hookInvocation(
  { task }: PinnedHook,
  { tool, input }: Pick<Operation, "tool" | "input">,
): Pick<ToolInvocation, "tool" | "input" | "task"> {
  return { tool: tool ?? NOWHERE, input, ...defined({ task }) };
}

/**
 * Returns the deployed code of a call, the tool itself or the task that its pinned definition names, and the code's input.
 * Planning mapped the input before, so it can be mapped.
 */
export function invocationOf(
  { tools }: Pick<VersionChain, "tools">,
  { tool, input, remote: phase }: Pick<Operation, "tool" | "input" | "remote">,
): Pick<ToolInvocation, "tool" | "input" | "task" | "remote"> {
  if (tool === null) return { tool: NOWHERE, input };
  const pinned = tools.find(
    ({ library, id, version }) => library === tool.library && id === tool.id && version === tool.version,
  );
  if (pinned === undefined) return { tool, input };
  const { definition } = pinned;
  const target = taskTarget(definition.target);
  const url = a2aTarget(definition.target)?.a2a;
  const remote =
    url === undefined ? undefined : { url, ...(phase === "following" && { following: true as const }) };
  return {
    tool: target === undefined ? tool : { ...parseReference(target.task, pinned.library), version: 0 },
    input: targetInput(definition, input, checkBudget()),
    ...defined({ task: pinned.task, remote }),
  };
}
