/**
 * What the models of tasks use up. Pure.
 *
 * LEDGER-5  What the models of a task have used up counts in the turn that called it, once, when its attempt ends. An attempt that a crash
 *           repeats is charged with what it had reserved.
 * LEDGER-6  A call of a task reserves, for each of its steps that asks a model, the estimated input and the longest answer.
 */
import { DEFAULT_ANSWER_TOKENS } from "../../../library/tasks/limits.ts";
import { estimateTokens } from "../../../memory/session/tokens.ts";
import { type Amounts, addAmounts, amountsOf, NOTHING } from "../../../model/spending.ts";
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

/** Returns what the models of a task may use up; `NOTHING` where it asks none. */
export function reservedByTask({ steps }: PinnedTask, input: JsonObject): Amounts {
  return steps.reduce((sum, { action }) => {
    if (action.kind !== "llm") return sum;
    const { prompt, systemPrompt = prompt?.systemPrompt, template = prompt?.template, profile } = action;
    const texts = `${systemPrompt ?? ""}${template ?? ""}${JSON.stringify(input)}`;
    const outputTokens = action.maxOutputTokens ?? DEFAULT_ANSWER_TOKENS;
    const request = amountsOf({ inputTokens: estimateTokens(texts), outputTokens }, profile);
    return addAmounts(sum, { ...request, modelCalls: 1 });
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
