/**
 * Steps in TypeScript may contain definitions. Their form as data has references instead.
 */
import type { ModelProfile } from "../../model/profile.ts";
import type {
  EmbedAction,
  InlineAction,
  LlmAction,
  PromptDefinition,
  StepDefinition,
  StepSettings,
} from "../../protocol/task-definition.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { isJsonObject } from "../../shared/json.ts";
import type { Defined } from "../tools/tool.ts";
import { type Embedded, isLibraryAction, joined, type LibraryAction, madeAs, type Prompt } from "./built.ts";

/** An action in code. It may contain prompts and model profiles instead of references. */
export type Action =
  | Exclude<InlineAction, LlmAction | EmbedAction>
  | LlmAction<DefinitionReference | Prompt, DefinitionReference | Defined<ModelProfile>>
  | EmbedAction<DefinitionReference | Defined<ModelProfile>>;

/** The second argument of `step`. */
export interface StepOptions extends StepSettings {
  /** A result of `defineAction`, an inline action without code, or a reference to an action of a library. */
  action: LibraryAction | Action | DefinitionReference;
}

/** One step of a task. */
export interface Step extends StepOptions {
  /** The name of the step in its task. */
  readonly ref: string;
}

/**
 * Returns a step of a task. `defineTask` checks it.
 * @example step("load", { action: loadOrder, inputMapping: { id: "input.orderId" }, outputMapping: { "state.order": "result" } });
 */
export function step(ref: string, options: StepOptions): Step {
  return { ref, ...options };
}

/** Returns an action as data, and the definitions that it contains. */
export function actionData(action: Action): { action: InlineAction; embedded: Embedded } {
  const prompts: Prompt[] = [];
  const modelProfiles: Defined<ModelProfile>[] = [];
  const data: Record<string, unknown> = { ...action };
  if (isDefined<PromptDefinition>(data.prompt)) {
    prompts.push(data.prompt);
    data.prompt = data.prompt.id;
  }
  if (isDefined<ModelProfile>(data.profile)) {
    modelProfiles.push(data.profile);
    data.profile = data.profile.id;
  }
  // SAFETY: only definitions were replaced, by their ids. The schema of the kind checks the rest.
  return { action: data as unknown as InlineAction, embedded: { actions: [], prompts, modelProfiles } };
}

/**
 * Returns steps as data, and the definitions that they contain. Invalid values stay unchanged, because later checks report them. Throws
 * `INVALID_INPUT` if a step has a task or a workflow as its action.
 */
export function stepsData(steps: readonly Step[]): { steps: StepDefinition[]; embedded: Embedded } {
  // SAFETY: the checks of the definition reject a value that is not a list.
  if (!Array.isArray(steps)) return { steps: steps as unknown as StepDefinition[], embedded: joined([]) };
  const parts: Embedded[] = [];
  const data = steps.map((one: Step): StepDefinition => {
    const action: unknown = one?.action;
    if (isLibraryAction(action)) {
      parts.push({ ...action.embedded, actions: [action, ...action.embedded.actions] });
      return { ...one, action: action.id };
    }
    const made = madeAs(action);
    if (made !== undefined)
      throw new DramatisError(
        "INVALID_INPUT",
        `Step "${one.ref}" has a ${made} as its \`action\`. A step runs an action: make one with defineAction(…).`,
      );
    if (!isJsonObject(action)) return one as StepDefinition;
    // SAFETY: the checks of the definition reject an invalid action.
    const { action: own, embedded } = actionData(action as unknown as Action);
    parts.push(embedded);
    return { ...one, action: own };
  });
  return { steps: data, embedded: joined(parts) };
}

function isDefined<Definition>(value: unknown): value is Defined<Definition> {
  return isJsonObject(value) && typeof value.id === "string" && "definition" in value;
}
