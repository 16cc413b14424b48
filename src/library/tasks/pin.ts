/**
 * Pins a task of steps: replaces references with the definitions that they name.
 *
 * PIN-1  A pinned task is complete: later versions of its actions, prompts and model profiles do not change it. Functions stay references and
 *        run in their deployed version.
 * PIN-2  A bare id in a task, or in an action of a library, means a definition of that library.
 * PIN-3  The error for unknown references lists each reference with its place.
 * PIN-4  The schemas of a task and of its actions and prompts share one compile budget. Schemas that passed before are not compiled again.
 */
import type { ModelProfile } from "../../model/profile.ts";
import type { Pin, ToolEffect } from "../../protocol/definition-parts.ts";
import type {
  ActionDefinition,
  HumanAction,
  InlineAction,
  PinnedAction,
  PinnedTask,
  PromptDefinition,
  StepDefinition,
  TaskDefinition,
} from "../../protocol/task-definition.ts";
import { defined } from "../../shared/defined.ts";
import { type DramatisError, type InputIssue, invalid } from "../../shared/errors.ts";
import { issuesText } from "../../shared/validation.ts";
import { isWrongReference } from "../definitions/placed.ts";
import { type LibraryReference, parseReference } from "../definitions/reference.ts";
import { effectOfAction } from "./actions-schema.ts";
import { asksPerson, refersTo } from "./kinds.ts";
import { missingVariables } from "./reads.ts";
import { type PlacedSchema, schemaIssues } from "./schema-check.ts";
import { ALONE, againIssues, effectOfSteps, isReference } from "./steps-schema.ts";

type Found<Definition> = Pin & { library: string; definition: Definition };

/** Resolves the references of steps. Each method throws `NOT_FOUND`. */
export interface TaskParts {
  action(reference: LibraryReference): Promise<Found<ActionDefinition>>;
  prompt(reference: LibraryReference): Promise<Found<PromptDefinition>>;
  modelProfile(reference: LibraryReference): Promise<Found<ModelProfile>>;
}

export type TaskSource = Pin & { library: string; definition: TaskDefinition };

/** Returns the pinned task, and the effect of running it twice. Throws `INVALID_INPUT` with the places of all problems. */
export async function pinTask(
  given: TaskParts,
  { library, id, version, hash, definition }: TaskSource,
): Promise<{ task: PinnedTask; effect: ToolEffect }> {
  const { steps = [], inputSchema, outputSchema, retry } = definition;
  const errors: InputIssue[] = [];
  const hashes: string[] = [];
  const parts = noting(given, hashes);
  const actions = new Map<StepDefinition, { action: PinnedAction; effect: ToolEffect }>();
  await Promise.all(
    steps.map(async (one, index) => {
      const path = `/steps/${index}/action`;
      const pinned = await placed(path, errors, () => pinAction(parts, one.action, library, path));
      if (pinned !== undefined) actions.set(one, pinned);
    }),
  );
  const effectOf = (action: StepDefinition["action"]) =>
    [...actions].find(([one]) => one.action === action)?.[1].effect;
  errors.push(...againIssues(steps, effectOf, retry !== undefined));
  errors.push(
    ...steps.flatMap((one, index) =>
      promptIssues(one, actions.get(one)?.action, `/steps/${index}/action/prompt`),
    ),
  );
  if (steps.length > 1)
    for (const [index, one] of steps.entries()) {
      const kind = actions.get(one)?.action.kind;
      if (kind !== undefined && asksPerson({ kind }))
        errors.push({ path: `/steps/${index}/action`, message: ALONE });
    }
  const own = [
    { path: "/inputSchema", schema: inputSchema },
    { path: "/outputSchema", schema: outputSchema },
  ];
  const referred = steps.flatMap((one, index) =>
    placedSchemas(actions.get(one)?.action, `/steps/${index}/action`),
  );
  const contents = [hash, ...hashes].toSorted().join();
  if (!good.has(contents)) {
    const issues = schemaIssues([...own, ...referred]);
    if (issues.length === 0) keep(contents);
    errors.push(...issues);
  }
  if (errors.length > 0) throw invalid(`The task is not valid: ${issuesText(errors)}`, { errors });
  const pinned = steps.flatMap((one) => {
    const { action } = actions.get(one) ?? {};
    return action === undefined ? [] : [{ ...one, action }];
  });
  const task = { library, id, version, hash, inputSchema, steps: pinned, ...defined({ outputSchema }) };
  return { task, effect: effectOfSteps(steps, effectOf) };
}

/** Tasks with valid schemas, most recent last. Each entry has the hashes of the task and of its actions and prompts. */
const good = new Set<string>();
const MAX_GOOD = 1_000;

function keep(contents: string): void {
  good.add(contents);
  const [oldest] = good;
  if (good.size > MAX_GOOD && oldest !== undefined) good.delete(oldest);
}

/** Wraps `parts` to record the hash of each resolved definition that may have schemas. */
function noting(parts: TaskParts, hashes: string[]): TaskParts {
  const note = <Part extends Pin>(part: Part): Part => {
    hashes.push(part.hash);
    return part;
  };
  return {
    action: async (reference) => note(await parts.action(reference)),
    prompt: async (reference) => note(await parts.prompt(reference)),
    modelProfile: (reference) => parts.modelProfile(reference),
  };
}

/** Returns a problem for each variable of a prompt that the step does not map (STEPREAD-3). */
function promptIssues(
  { inputMapping }: StepDefinition,
  action: PinnedAction | undefined,
  path: string,
): InputIssue[] {
  if (action?.kind !== "llm" || inputMapping === undefined) return [];
  const { prompt, systemPrompt = prompt?.systemPrompt, template = prompt?.template } = action;
  if (prompt === undefined) return [];
  return [systemPrompt, template].flatMap((source) =>
    missingVariables(
      source,
      (name) => Object.hasOwn(inputMapping, name),
      path,
      "`inputMapping` does not give",
    ),
  );
}

function placedSchemas(action: PinnedAction | undefined, path: string): PlacedSchema[] {
  if (action !== undefined && "schema" in action) return [{ path: `${path}/schema`, schema: action.schema }];
  if (action?.kind !== "llm") return [];
  return [
    { path: `${path}/outputSchema`, schema: action.outputSchema },
    { path: `${path}/prompt/requires`, schema: action.prompt?.requires },
    { path: `${path}/prompt/produces`, schema: action.prompt?.produces },
  ];
}

/** Completes the model profiles of a pinned task. `llm` actions without a profile get `fallback`. */
export function withModels(
  task: PinnedTask,
  fallback: ModelProfile,
  complete: (profile: ModelProfile) => ModelProfile,
): PinnedTask {
  const steps = task.steps.map((one) => {
    const { action } = one;
    if (action.kind === "llm")
      return { ...one, action: { ...action, profile: complete(action.profile ?? fallback) } };
    if (action.kind !== "llm.embed" || action.profile === undefined) return one;
    return { ...one, action: { ...action, profile: complete(action.profile) } };
  });
  return { ...task, steps };
}

export function questionOf(task: PinnedTask | undefined): HumanAction | undefined {
  const [first] = task?.steps ?? [];
  // SAFETY: `asksPerson` checks the kind.
  return first !== undefined && asksPerson(first.action) ? (first.action as HumanAction) : undefined;
}

/** Throws `INVALID_INPUT` for a task that asks a person. */
export function refuseQuestion(
  runnable: { library: string; id: string; task?: PinnedTask } | undefined,
): void {
  if (runnable === undefined || questionOf(runnable.task) === undefined) return;
  const { library, id } = runnable;
  throw invalid(`The task "${library}/${id}" asks a person. Only a node of a workflow runs such a task.`);
}

/** Returns the hosts that a pinned task reaches; `undefined` if it runs code, because code may reach any host. */
export function hostsOf({ steps }: PinnedTask): string[] | undefined {
  if (steps.some(({ action }) => action.kind === "code")) return undefined;
  return steps.flatMap(({ action }) => (action.kind === "http.request" ? action.hosts : []));
}

export function modelsOf({ steps }: PinnedTask): ModelProfile[] {
  return steps.flatMap(({ action }) =>
    (action.kind === "llm" || action.kind === "llm.embed") && action.profile !== undefined
      ? [action.profile]
      : [],
  );
}

async function pinAction(
  parts: TaskParts,
  given: StepDefinition["action"],
  home: string,
  path: string,
): Promise<{ action: PinnedAction; effect: ToolEffect }> {
  if (!isReference(given))
    return { action: await pinInline(parts, given, home, path), effect: effectOfAction(given) };
  const { library, id, definition } = await parts.action(parseReference(given, home));
  const effect = effectOfAction(definition);
  if (definition.kind === "code")
    return { action: { kind: "code", library, id, effect, timeoutMs: definition.timeoutMs }, effect };
  return { action: await pinInline(parts, definition, library, path), effect };
}

async function pinInline(
  parts: TaskParts,
  action: InlineAction,
  home: string,
  path: string,
): Promise<PinnedAction> {
  const { prompt, profile } = refersTo(action);
  const find = <Definition>(
    place: string,
    reference: typeof prompt,
    lookUp: (reference: LibraryReference) => Promise<Found<Definition>>,
  ) =>
    reference === undefined
      ? undefined
      : at(`${path}/${place}`, async () => (await lookUp(parseReference(reference, home))).definition);
  const found = defined({
    prompt: await find("prompt", prompt, parts.prompt),
    profile: await find("profile", profile, parts.modelProfile),
  });
  // SAFETY: each reference of the action is replaced by its definition.
  return { ...action, ...found } as PinnedAction;
}

/** Carries the place of a problem to `placed`. */
class Misplaced extends Error {
  constructor(
    readonly path: string,
    readonly problem: DramatisError,
  ) {
    super(problem.message);
  }
}

async function at<Value>(path: string, find: () => Promise<Value>): Promise<Value> {
  try {
    return await find();
  } catch (error) {
    throw isWrongReference(error) ? new Misplaced(path, error) : error;
  }
}

async function placed<Value>(
  path: string,
  errors: InputIssue[],
  find: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof Misplaced) errors.push({ path: error.path, message: error.message });
    else if (isWrongReference(error)) errors.push({ path, message: error.message });
    else throw error;
    return undefined;
  }
}
