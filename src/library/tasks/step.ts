/** Steps in TypeScript may contain definitions. Their form as data has references instead. */
import type { z } from "zod";
import type { ModelProfile } from "../../model/profile.ts";
import type {
  EmbedAction,
  HumanAction,
  InlineAction,
  LlmAction,
  PromptDefinition,
  StepDefinition,
  StepSettings,
} from "../../protocol/task-definition.ts";
import { invalid } from "../../shared/errors.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import { isJsonObject, type JsonObject } from "../../shared/json.ts";
import { dataSchemaOf, isZodSchema } from "../definitions/json-schema-of.ts";
import type { Defined } from "../tools/tool.ts";
import { type Embedded, isLibraryAction, joined, type LibraryAction, madeAs, type Prompt } from "./built.ts";

/** An action in code. It may contain prompts and model profiles instead of references. */
export type Action =
  | Exclude<InlineAction, LlmAction | EmbedAction | HumanAction>
  | HumanQuestion
  | LlmAction<DefinitionReference | Prompt, DefinitionReference | Defined<ModelProfile>>
  | EmbedAction<DefinitionReference | Defined<ModelProfile>>;

/** A question to a person. Its `schema` may be a schema of zod, so that the answer has a type. */
type HumanQuestion = Omit<HumanAction, "schema"> & { schema?: z.ZodType | JsonObject };

/** The action of a step in code: a result of `defineAction`, an inline action without code, or a reference to an action of a library. */
type StepAction = LibraryAction | Action | DefinitionReference;

/** The answer of a person to the question of an action; unknown for other actions. */
export type AnswerTo<Work> = Work extends { kind: "human.input" }
  ? AnswerOf<Work>
  : Work extends { kind: "human.approve" }
    ? { approved: boolean; comment?: string }
    : Work extends { kind: "human.review" }
      ? { approved: boolean; comment?: string; changes?: AnswerOf<Work> }
      : unknown;

type AnswerOf<Work> = Work extends { schema: infer Schema extends z.ZodType } ? z.output<Schema> : unknown;

/** The second argument of `step`. */
export interface StepOptions<Work extends StepAction = StepAction> extends StepSettings {
  /** A result of `defineAction`, an inline action without code, or a reference to an action of a library. */
  action: Work;
}

/** One step of a task. */
export interface Step<Work extends StepAction = StepAction> extends StepOptions<Work> {
  /** The name of the step in its task. */
  readonly ref: string;
}

/**
 * Returns a step of a task. `defineTask` checks it.
 * @example step("load", { action: loadOrder, inputMapping: { id: "input.orderId" }, outputMapping: { "state.order": "result" } });
 */
export function step<const Work extends StepAction>(ref: string, options: StepOptions<Work>): Step<Work> {
  return { ref, ...options };
}

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
  if (isZodSchema(data.schema)) data.schema = dataSchemaOf("The schema of an answer", data.schema);
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
      throw invalid(
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
