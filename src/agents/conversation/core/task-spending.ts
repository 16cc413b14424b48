/**
 * The spending of tasks on models. Pure.
 *
 * LEDGER-5  The model use of a task counts once in its turn, when its attempt ends. The same holds for a context hook. An extraction counts
 *           in the conversation, because its turn is over. If the run was stopped, lost, given up, or interrupted by a crash, its use is
 *           unknown, and its reservation counts.
 * LEDGER-6  A call of a task reserves one request for each attempt of each step that calls a model. The request has the longest input and
 *           the longest answer of the step. A step that makes embeddings reserves all batches. A hook has the length of the agent's context
 *           as its input.
 * LEDGER-7  The use of a workflow's run, including all work below it, counts once in its turn, when the attempt ends. Failed runs count,
 *           and runs of stopped turns count too. A run reserves nothing.
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
import type { Turn } from "./turn.ts";
import { openOperations } from "./turn-operations.ts";

/** Returns the task steps of an operation; `undefined` without a task. */
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

export function spentByTask({ models }: Pick<TaskSummary, "models">): Amounts {
  return models === undefined ? NOTHING : amountsOfModels(models);
}

/** The reservations of inputs, for as long as these are in memory: a reservation is looked at again and again. */
const reserved = new WeakMap<PinnedTask, WeakMap<JsonObject, Amounts>>();

/** Returns the maximum model use of a task; `NOTHING` without models. */
function reservedByTask(task: PinnedTask, input: JsonObject): Amounts {
  const known = reserved.get(task) ?? new WeakMap<JsonObject, Amounts>();
  reserved.set(task, known);
  const amounts = known.get(input) ?? reservation(task, inputTokens(input));
  known.set(input, amounts);
  return amounts;
}

/** Returns the maximum model use of a hook; `NOTHING` without models. */
export function reservedByHook(
  chain: Pick<VersionChain, "persona" | "modelProfile">,
  { task }: Pick<PinnedHook, "task">,
): Amounts {
  return task === undefined ? NOTHING : reservation(task, contextTokens(chain));
}

/** Returns the maximum model use of an operation; `NOTHING` without models. */
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

/** Returns the reservations of a turn's task calls and of its context hook. */
export function reservedByTasks(turn: Turn): Amounts {
  const runs = [...openOperations(turn), ...(turn.assembly === undefined ? [] : [turn.assembly])];
  return runs.reduce((sum, { reserved: amounts = {} }) => addAmounts(sum, amounts), NOTHING);
}

/**
 * Returns a run of a task after a budget was set. A running run counts in full. A run that has not begun reserves again. Without models the
 * run is unchanged.
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

/** Returns the charge for a turn's tasks that a stop interrupts (LEDGER-5). */
export function chargedForStop(chain: VersionChain, turn: Turn, now: number): Amounts {
  const running = openOperations(turn).filter((operation) => isRunning(operation, now));
  return running.reduce(
    (sum, operation) => addAmounts(sum, reservedByOperation(chain, operation)),
    chargedForHook(chain, chain.contextAssembly, turn.assembly, now),
  );
}

/** Returns the charge for a hook's run with an unknown end; `NOTHING` if it does not run. */
export function chargedForHook(
  chain: Pick<VersionChain, "persona" | "modelProfile">,
  hook: PinnedHook | undefined,
  run: HookRun | undefined,
  now: number,
): Amounts {
  if (hook === undefined || run === undefined || !isHookRunning(run, now)) return NOTHING;
  return reservedByHook(chain, hook);
}
