/**
 * The spending of tasks on models. Pure.
 *
 * LEDGER-5  What the models of a task have used up counts in the turn that called it, once, when its attempt ends: of a context hook, too.
 *           An extraction, whose turn is over, counts in the conversation. Where
 *           nobody knows it, because the run was stopped, lost, given up, or interrupted by a crash, its reservation counts.
 * LEDGER-6  A call of a task reserves, for each of its steps that asks a model and each attempt of the step, one request with the longest
 *           input that the step may send and the longest answer; for a step that makes embeddings, all batches. A hook has the length of the
 *           agent's context as its input.
 * LEDGER-7  What the run of a workflow has used, with all below it, counts in the turn that called it, once, when the attempt ends: however the
 *           run ended, and also where the turn was stopped meanwhile. A run reserves nothing.
 */

import { contextTokens } from "../../../library/definitions/version-chain.ts";
import { MAX_EMBEDDED_TEXTS } from "../../../library/tasks/task-limits.ts";
import { inputLimit, inputTokens } from "../../../memory/session/prompt-tokens.ts";
import { MAX_TEXTS_OF_REQUEST } from "../../../model/embedding.ts";
import {
  type Allowance,
  type Amounts,
  addAmounts,
  amountsOf,
  maxOutputTokens,
  NOTHING,
} from "../../../model/spending.ts";
import type { PinnedHook, VersionChain } from "../../../protocol/definitions.ts";
import type { PinnedStep, PinnedTask } from "../../../protocol/task-definition.ts";
import { amountsOfModels, type TaskSummary } from "../../../protocol/task-summary.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { type HookRun, isHookRunning } from "./hooks.ts";
import { isOpen, isRunning, type Operation, reservedAs, type TaskReservation } from "./operation.ts";
import { openOperations, type Turn } from "./turn.ts";

/** Returns the steps of the task that an operation runs; `undefined` where it runs none. */
export function taskOf(
  { tools }: Pick<VersionChain, "tools">,
  { name, target }: Pick<Operation, "name" | "target">,
): PinnedTask | undefined {
  return target === "code" ? tools.find(({ definition }) => definition.name === name)?.task : undefined;
}

/** Returns the reservation of an attempt of a task that has not begun. */
export function dueFor(task: PinnedTask | undefined): TaskReservation {
  return task?.steps.some(asksModel) ? { reserving: "due" } : {};
}

/** Reports whether a step asks a model. Without a profile, embeddings are hashes. */
function asksModel({ action }: PinnedStep): boolean {
  if (action.kind === "llm.embed")
    return action.profile !== undefined && action.profile.provider !== "offline";
  return action.kind === "llm";
}

/** Returns what the models of a task have used up. */
export function spentByTask({ models }: Pick<TaskSummary, "models">): Amounts {
  return models === undefined ? NOTHING : amountsOfModels(models);
}

/** The reservations of inputs, for as long as these are in memory: a reservation is looked at again and again. */
const reserved = new WeakMap<PinnedTask, WeakMap<JsonObject, Amounts>>();

/** Returns what the models of a task may use up; `NOTHING` where it asks none. */
function reservedByTask(task: PinnedTask, input: JsonObject): Amounts {
  const known = reserved.get(task) ?? new WeakMap<JsonObject, Amounts>();
  reserved.set(task, known);
  const amounts = known.get(input) ?? reservation(task, inputTokens(input));
  known.set(input, amounts);
  return amounts;
}

/** Returns what the models of a hook may use up; `NOTHING` where it asks none. */
export function reservedByHook(
  chain: Pick<VersionChain, "persona" | "modelProfile">,
  { task }: Pick<PinnedHook, "task">,
): Amounts {
  return task === undefined ? NOTHING : reservation(task, contextTokens(chain));
}

/** Returns what the models of an operation may use up; `NOTHING` where it asks none. */
export function reservedByOperation(chain: Pick<VersionChain, "tools">, operation: Operation): Amounts {
  const task = taskOf(chain, operation);
  return task === undefined ? NOTHING : reservedByTask(task, operation.input);
}

function reservation({ steps }: PinnedTask, input: number): Amounts {
  return steps.filter(asksModel).reduce((sum, { action, retry }) => {
    const attempts = retry?.maxAttempts ?? 1;
    if (action.kind === "llm.embed") {
      const texts = amountsOf({ inputTokens: inputLimit({}, input) }, action.profile);
      const batches = Math.ceil(MAX_EMBEDDED_TEXTS / MAX_TEXTS_OF_REQUEST);
      return addAmounts(sum, times(attempts, { ...texts, modelCalls: batches }));
    }
    if (action.kind !== "llm") return sum;
    const { profile, maxOutputTokens: outputTokens = maxOutputTokens(profile ?? {}) } = action;
    const request = amountsOf({ inputTokens: inputLimit(action, input), outputTokens }, profile);
    return addAmounts(sum, times(attempts, { ...request, modelCalls: 1 }));
  }, NOTHING);
}

function times(count: number, { tokens, nanoDollars, modelCalls }: Omit<Amounts, "toolCalls">): Allowance {
  return { tokens: tokens * count, nanoDollars: nanoDollars * count, modelCalls: modelCalls * count };
}

/** Returns what the calls of tasks of a turn, and its context hook, have reserved. */
export function reservedByTasks(turn: Turn): Amounts {
  const runs = [...openOperations(turn), ...(turn.assembly === undefined ? [] : [turn.assembly])];
  return runs.reduce((sum, { reserved: amounts = {} }) => addAmounts(sum, amounts), NOTHING);
}

/**
 * Returns a run of a task after a budget was set: one that works counts in full, and goes on; one that has not begun reserves anew. The same
 * run if it asks no models.
 */
export function recounted<Run extends TaskReservation>(
  run: Run,
  task: PinnedTask | undefined,
  { most, isBegun }: { most: Amounts; isBegun: boolean },
): Run {
  const due = dueFor(task);
  if (due.reserving === undefined || run.reserving !== undefined) return run;
  const { toolCalls: _, ...reserved } = most;
  // SAFETY: only the reservation differs.
  return reservedAs(run, isBegun ? { reserved } : due) as Run;
}

/** Returns a turn after a budget was set, with its tasks and its context hook recounted. */
export function withTasksRecounted(turn: Turn, chain: VersionChain, now: number): Turn {
  const { contextAssembly: hook } = chain;
  const { assembly } = turn;
  const operations = turn.operations.map((operation) => {
    const isBegun = isRunning(operation, now);
    const isWaiting = operation.target === "code" && operation.status === "pending";
    if (!isOpen(operation) || !(isBegun || isWaiting)) return operation;
    const most = reservedByOperation(chain, operation);
    return recounted(operation, taskOf(chain, operation), { most, isBegun });
  });
  const run =
    assembly &&
    hook &&
    recounted(assembly, hook.task, {
      most: reservedByHook(chain, hook),
      isBegun: isHookRunning(assembly, now),
    });
  if (run === assembly && operations.every((operation, place) => operation === turn.operations[place]))
    return turn;
  return { ...turn, operations, ...(run && { assembly: run }) };
}

/** Returns what is charged for the tasks of a turn that are stopped while they run (LEDGER-5). */
export function chargedForStop(chain: VersionChain, turn: Turn, now: number): Amounts {
  const running = openOperations(turn).filter((operation) => isRunning(operation, now));
  return running.reduce(
    (sum, operation) => addAmounts(sum, reservedByOperation(chain, operation)),
    chargedForHook(chain, chain.contextAssembly, turn.assembly, now),
  );
}

/** Returns what is charged for a run of a hook whose end nobody knows; `NOTHING` where it does not run. */
export function chargedForHook(
  chain: Pick<VersionChain, "persona" | "modelProfile">,
  hook: PinnedHook | undefined,
  run: HookRun | undefined,
  now: number,
): Amounts {
  if (hook === undefined || run === undefined || !isHookRunning(run, now)) return NOTHING;
  return reservedByHook(chain, hook);
}
