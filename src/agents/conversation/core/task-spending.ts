/**
 * The spending of tasks on models. Pure.
 *
 * LEDGER-5  What the models of a task have used up counts in the turn that called it, once, when its attempt ends: of a hook, too. Where
 *           nobody knows it, because the run was stopped, lost, or interrupted by a crash, its reservation counts.
 * LEDGER-6  A call of a task reserves, for each of its steps that asks a model and each attempt of the step, the longest input that the step
 *           may send and the longest answer. A step whose texts are longer asks nobody.
 */
import { inputLimit } from "../../../memory/session/prompt-tokens.ts";
import { type Amounts, addAmounts, amountsOf, maxOutputTokens, NOTHING } from "../../../model/spending.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import type { PinnedTask } from "../../../protocol/task-definition.ts";
import type { TaskSummary } from "../../../protocol/task-summary.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { Operation } from "./operation.ts";

const NANO = 1_000_000_000;

/** Returns the steps of the task that an operation runs; `undefined` where it runs none. */
export function taskOf(
  { tools }: Pick<VersionChain, "tools">,
  { name, target }: Pick<Operation, "name" | "target">,
): PinnedTask | undefined {
  return target === "code" ? tools.find(({ definition }) => definition.name === name)?.task : undefined;
}

/** Returns what the models of a task have used up. */
export function spentByTask({ models }: Pick<TaskSummary, "models">): Amounts {
  if (models === undefined) return NOTHING;
  const { calls, inputTokens, outputTokens, costUsd = 0 } = models;
  return {
    ...NOTHING,
    tokens: inputTokens + outputTokens,
    nanoDollars: Math.round(costUsd * NANO),
    modelCalls: calls,
  };
}

/** The reservations of inputs, for as long as these are in memory: a reservation is looked at again and again. */
const reserved = new WeakMap<PinnedTask, WeakMap<JsonObject, Amounts>>();

/** Returns what the models of a task may use up; `NOTHING` where it asks none. */
export function reservedByTask(task: PinnedTask, input: JsonObject): Amounts {
  const known = reserved.get(task) ?? new WeakMap<JsonObject, Amounts>();
  reserved.set(task, known);
  const amounts = known.get(input) ?? reservation(task, input);
  known.set(input, amounts);
  return amounts;
}

function reservation({ steps }: PinnedTask, input: JsonObject): Amounts {
  return steps.reduce((sum, { action, retry }) => {
    if (action.kind !== "llm") return sum;
    const { profile, maxOutputTokens: outputTokens = maxOutputTokens(profile ?? {}) } = action;
    const request = amountsOf({ inputTokens: inputLimit(action, input), outputTokens }, profile);
    const attempts = retry?.maxAttempts ?? 1;
    return addAmounts(sum, {
      tokens: request.tokens * attempts,
      nanoDollars: request.nanoDollars * attempts,
      modelCalls: attempts,
    });
  }, NOTHING);
}

/** Returns what the operations of a turn that run tasks may use up. */
export function reservedByTasks(
  operations: readonly Operation[],
  chain: Pick<VersionChain, "tools">,
): Amounts {
  return operations.reduce((sum, operation) => {
    const task = taskOf(chain, operation);
    return task === undefined ? sum : addAmounts(sum, reservedByTask(task, operation.input));
  }, NOTHING);
}
