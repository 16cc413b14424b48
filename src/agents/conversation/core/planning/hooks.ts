/**
 * Planning after the result of a hook: call the model with the request, note the memory operations, retry, or fail. Pure.
 *
 * HOOK-2  A cycle of an agent with a context hook calls no model before the hook has given the request, which is sent verbatim.
 *         Later calls of the cycle append their moves to it. TOOLCHOICE-1 and the output limit of a message hold in it.
 * HOOK-3  A failed attempt is repeated after 100 and 200 ms, if the task may run twice. A context hook that fails for good fails
 *         its turn with `CONTEXT_ASSEMBLY_FAILED`, and no model is called.
 * HOOK-4  Extraction follows the completion of its turn. The turn stays completed if the extraction fails. The third failure of an
 *         agent in a row is reported.
 * HOOK-5  A crash repeats a hook that may run twice, under the same operation id. The run of a `once` task is never repeated: its
 *         result is still taken for `LATE_RESULT_MS`.
 * HOOK-6  A stop aborts the hook of its turn; a stop of the conversation also its extractions.
 * HOOK-7  An extraction that failed begins once more, after another extraction of its agent in the conversation has succeeded. The run of a
 *         `once` task does not.
 * MEMFORM-1  `write` and `update` with a `value` write the text under the `key`, and `store` is the type. A value that is no text is
 *            written as JSON. `delete` and `archive` take the memory of the `key`, whatever its `store`.
 */
import { z } from "zod";
import { joinTaints } from "../../../../model/taint.ts";
import type { PinnedHook } from "../../../../protocol/definitions.ts";
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import { defined } from "../../../../shared/defined.ts";
import { isJsonObject, type Json } from "../../../../shared/json.ts";
import { inputIssues, issuesText, plainly } from "../../../../shared/validation.ts";
import { activeLength, lengthOf } from "../content-size.ts";
import {
  HOOK_ATTEMPTS,
  HOOK_BACKOFF_MS,
  LATE_RESULT_MS,
  MAX_ACTIVE_CONTENT,
  MAX_MEMORY_OPERATIONS,
  MAX_MEMORY_OPERATIONS_LENGTH,
  MAX_RECOVERIES,
} from "../conversation-limits.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { FailureText } from "../facts/fact.ts";
import { type Extraction, extractionOf, type HookRun, isHookRunning, runningExtractions } from "../hooks.ts";
import type { ToolCompleted } from "../signals.ts";
import { type ConversationState, chainOf } from "../state.ts";
import { chargedForHook, spentByTask } from "../task-spending.ts";
import type { Turn } from "../turn.ts";
import { failTurn } from "./cancel.ts";
import { chargeTask } from "./results.ts";

const id = z.string().min(1).max(200);
const time = z.iso.datetime({ offset: true }).optional();
const facts = {
  type: z.string().min(1).max(200).optional(),
  speaker: id.optional(),
  session: id.optional(),
  sequence: z.number().optional(),
  ...{ time, validFrom: time, validTo: time },
  key: z.string().min(1).max(200).optional(),
  significance: z.number().min(0).max(1).optional(),
  metadata: z.record(z.string(), z.json()).optional(),
};

const named = { memoryId: id.optional(), key: facts.key };
const isNamed = ({ memoryId, key }: { memoryId?: string | undefined; key?: string | undefined }) =>
  (memoryId === undefined) !== (key === undefined);
const NAMED = "Must have either a `memoryId` or a `key`.";

/** An operation requested by an extraction. */
const memoryOperation = z.discriminatedUnion("op", [
  z.strictObject({
    op: z.literal("write"),
    content: z.string().min(1),
    derivedFrom: z.array(id).max(MAX_MEMORY_OPERATIONS).optional(),
    subjectName: id.optional(),
    ...facts,
  }),
  z.strictObject({ op: z.literal("update"), memoryId: id, content: z.string().min(1).optional(), ...facts }),
  z.strictObject({ op: z.literal("delete"), ...named }).refine(isNamed, NAMED),
  z.strictObject({ op: z.literal("archive"), ...named }).refine(isNamed, NAMED),
]);
const memoryOperations = z.array(memoryOperation).max(MAX_MEMORY_OPERATIONS);

/** Plans after the result of a turn's context hook. */
export function planAssembly(
  state: ConversationState,
  turn: Turn,
  ended: ToolCompleted,
  input: PlanInput,
): AgentDecision[] {
  const { item, attempt, result, recalled, taint } = ended;
  const { n, assembly, agentId } = turn;
  if (assembly?.item !== item || assembly.attempt !== attempt) return [];
  const charge = chargeEnd(state, "contextAssembly", { ...assembly, turn: n, agentId }, ended, input);
  const error = failureOf(result) ?? requestProblem(state, result.result);
  if (error === null && isJsonObject(result.result))
    return [
      ...charge,
      {
        ...{ type: "ASSEMBLED", turn: n, request: result.result },
        // Like a tool, a hook may bring content from anywhere.
        taint: joinTaints(taint, ["tool"]),
        ...defined({ recalled }),
      },
    ];
  const failed = afterFailure(state, turn, error ?? { code: "EXECUTION_FAILED", message: "" }, input);
  return [...charge, ...failed];
}

/** A run of a hook, and where it belongs. */
type PlacedRun = HookRun & { turn: number; agentId: string };

/** Records the steps of a hook's task, and charges its turn with their use (LEDGER-5), also for a workflow (LEDGER-7). */
function chargeEnd(
  state: ConversationState,
  kind: "contextAssembly" | "memoryExtraction",
  run: PlacedRun,
  { task: summary, result, lost, spent }: Pick<ToolCompleted, "task" | "result" | "lost" | "spent">,
  input: Pick<PlanInput, "now">,
): AgentDecision[] {
  if (lost !== undefined) return chargeHook(state, kind, run, input);
  const { turn, item, agentId } = run;
  if (summary === undefined) return spent === undefined ? [] : chargeTask({ n: turn, agentId }, item, spent);
  const charge = { turn, item, agentId, spent: spentByTask(summary), ...defined({ models: summary.models }) };
  return [{ type: "CHARGE_TASK", ...charge, hook: { summary, isSuccess: result.success } }];
}

/** Charges a run of a hook with an unknown end (LEDGER-5). */
function chargeHook(
  { record }: ConversationState,
  kind: "contextAssembly" | "memoryExtraction",
  { turn, agentId, ...run }: PlacedRun,
  { now }: Pick<PlanInput, "now">,
): AgentDecision[] {
  const chain = chainOf(record, agentId);
  return chargeTask({ n: turn, agentId }, run.item, chargedForHook(chain, chain[kind], run, now));
}

function requestProblem(state: ConversationState, request: Json | undefined): FailureText | null {
  if (request === undefined || !isJsonObject(request))
    return {
      code: "EXECUTION_FAILED",
      message: "The context hook must return the provider's request, an object.",
    };
  if (activeLength(state) + lengthOf(request) <= MAX_ACTIVE_CONTENT) return null;
  return { code: "TOO_LARGE", message: "The active turns of the conversation hold too much content." };
}

function afterFailure(
  { record }: ConversationState,
  turn: Turn,
  error: FailureText,
  input: PlanInput,
): AgentDecision[] {
  const { n, agentId, assembly } = turn;
  const notBefore = assembly && nextAttempt(chainOf(record, agentId).contextAssembly, assembly, input.now);
  if (notBefore !== undefined) return [{ type: "RETRY_ASSEMBLY", turn: n, notBefore, error }];
  const attempts = assembly?.attempt === 1 ? "" : ` after ${assembly?.attempt} attempts`;
  const message = `The context of the turn could not be assembled${attempts}: ${error.message}`;
  const fail = failTurn(turn, { code: "CONTEXT_ASSEMBLY_FAILED", message, retriable: true }, input);
  return [{ ...fail, isCharged: true }];
}

/** Plans after the result of an extraction. */
export function planExtraction(
  state: ConversationState,
  ended: Omit<ToolCompleted, "type">,
  input: Pick<PlanInput, "now">,
): AgentDecision[] {
  const { turn: of, item, attempt, result, tainted } = ended;
  const { now } = input;
  const run = extractionOf(state, of);
  if (run?.item !== item || run.attempt !== attempt) return [];
  const charge = chargeEnd(state, "memoryExtraction", { ...run, turn: of }, ended, input);
  const read = readOperations(result);
  if ("operations" in read)
    return [...charge, { type: "EXTRACTED", of, ...read, ...defined({ tainted }), now }];
  const { error } = read;
  const notBefore = nextAttempt(chainOf(state.record, run.agentId).memoryExtraction, run, now);
  if (notBefore === undefined) return [...charge, { type: "GIVE_UP_EXTRACTION", of, error }];
  return [...charge, { type: "RETRY_EXTRACTION", of, notBefore, error }];
}

function readOperations(result: ToolResult): { operations: Json } | { error: FailureText } {
  const error = failureOf(result);
  if (error !== null) return { error };
  const invalid = (message: string) => ({ error: { code: "EXECUTION_FAILED", message } });
  // The output of a task of steps is an object.
  const whole = result.result;
  const output = isJsonObject(whole) && Object.hasOwn(whole, "operations") ? whole.operations : whole;
  const given = Array.isArray(output) ? output.map(operationOf) : output;
  const parsed = memoryOperations.safeParse(given ?? [], { error: plainly });
  if (!parsed.success)
    return invalid(`The memory operations are not valid: ${issuesText(inputIssues(parsed.error))}`);
  // SAFETY: the result of a task is JSON, and was checked.
  const operations = (given ?? []) as Json;
  if (JSON.stringify(operations).length <= MAX_MEMORY_OPERATIONS_LENGTH) return { operations };
  return invalid(`The memory operations may have ${MAX_MEMORY_OPERATIONS_LENGTH} characters together.`);
}

function failureOf({ success, error }: ToolResult): FailureText | null {
  if (success) return null;
  return { code: error?.code ?? "EXECUTION_FAILED", message: error?.message ?? "" };
}

/** Returns the earliest start of the next attempt; `undefined` if no attempt is left (HOOK-3). */
function nextAttempt(hook: PinnedHook | undefined, { attempt }: HookRun, now: number): number | undefined {
  if (hook === undefined || hook.effect === "once" || attempt >= HOOK_ATTEMPTS) return undefined;
  return now + (HOOK_BACKOFF_MS[attempt - 1] ?? 0);
}

/** Interrupts the context hook of a turn after a crash, if its task must not run again (HOOK-5). */
export function interruptAssembly(
  { record }: ConversationState,
  turn: Turn,
  due: number,
  { now }: PlanInput,
): AgentDecision[] {
  const { n, agentId } = turn;
  if (!isAssembling(turn, due) || chainOf(record, agentId).contextAssembly?.effect !== "once") return [];
  return [{ type: "INTERRUPT_ASSEMBLY", turn: n, deadline: now + LATE_RESULT_MS }];
}

/** Reports whether the context hook of a turn runs. */
export function isAssembling({ assembly }: Turn, now: number): boolean {
  return assembly !== undefined && assembly.deadline === undefined && isHookRunning(assembly, now);
}

/** Resumes the extractions after a crash. */
export function planExtractionRecovery(
  state: ConversationState,
  due: number,
  { now }: PlanInput,
): AgentDecision[] {
  return runningExtractions(state).flatMap(([of, run]): AgentDecision[] => {
    const { recoveries = 0, deadline, agentId } = run;
    if (deadline !== undefined || !isHookRunning(run, due)) return [];
    const charge = chargeHook(state, "memoryExtraction", { ...run, turn: of }, { now: due });
    if (recoveries >= MAX_RECOVERIES) {
      const message = `The actor was interrupted ${recoveries + 1} times during the extraction.`;
      const error = { code: "RECOVERY_EXHAUSTED", message };
      return [...charge, { type: "GIVE_UP_EXTRACTION", of, error }];
    }
    if (chainOf(state.record, agentId).memoryExtraction?.effect === "once")
      return [{ type: "RESUME_EXTRACTION", of, deadline: now + LATE_RESULT_MS }];
    const anew: AgentDecision[] =
      charge.length === 0 ? [] : [{ type: "RESERVE_TASK", turn: of, item: run.item, reserving: "due" }];
    return [...charge, { type: "RESUME_EXTRACTION", of }, ...anew];
  });
}

const UNKNOWN: FailureText = {
  code: "EXECUTION_FAILED",
  message:
    "Outcome unknown: the run of the hook was interrupted and it may have taken effect. It was not run again.",
};

/** Fails the hooks without a result at their deadline. */
export function planHookExpiry(state: ConversationState, input: PlanInput): AgentDecision[] {
  const isLate = ({ deadline = Number.POSITIVE_INFINITY }: HookRun) => deadline <= input.now;
  return [
    ...[...state.active.values()].flatMap((turn) => {
      const { n, assembly, agentId } = turn;
      if (assembly === undefined || !isLate(assembly)) return [];
      const charge = chargeHook(state, "contextAssembly", { ...assembly, turn: n, agentId }, input);
      return [...charge, ...afterFailure(state, turn, UNKNOWN, input)];
    }),
    ...giveUpExtractions(state, UNKNOWN, isLate, input),
  ];
}

/** Ends the extractions of a conversation that is stopped (HOOK-6). */
export function stopExtractions(state: ConversationState, input: Pick<PlanInput, "now">): AgentDecision[] {
  return giveUpExtractions(
    state,
    { code: "CANCELLED", message: "The conversation was stopped." },
    () => true,
    input,
  );
}

/** Ends the given extractions, and charges the running ones (LEDGER-5). */
export function giveUpExtractions(
  state: ConversationState,
  error: FailureText,
  isMeant: (run: Extraction) => boolean,
  input: Pick<PlanInput, "now">,
): AgentDecision[] {
  return runningExtractions(state).flatMap(([of, run]): AgentDecision[] => {
    if (!isMeant(run)) return [];
    const charge = chargeHook(state, "memoryExtraction", { ...run, turn: of }, input);
    return [...charge, { type: "GIVE_UP_EXTRACTION", of, error }];
  });
}

/** Converts an operation of the form `{op, store, key, value}` (MEMFORM-1). Returns all other content as it is. */
function operationOf(given: Json): Json {
  if (!isJsonObject(given)) return given;
  const { op, store, value, ...rest } = given;
  if ((op === "delete" || op === "archive") && "key" in rest && value === undefined) return { ...rest, op };
  if ((op !== "write" && op !== "update") || value === undefined) return given;
  const content = typeof value === "string" ? value : JSON.stringify(value);
  return { ...rest, op: "write", content, ...(store === undefined ? {} : { type: store }) };
}
