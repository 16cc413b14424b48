/**
 * Tasks, actions and prompts as data: the same whether they were built in TypeScript or posted as JSON. A pinned task holds what it
 * refers to, so later versions of its parts do not reach it.
 */
import type { ModelProfile } from "../model/profile.ts";
import type { Mapping } from "../shared/expressions/mapping.ts";
import type { DefinitionReference } from "../shared/identifiers.ts";
import type { JsonObject } from "../shared/json.ts";
import type { ApprovalRule } from "./approval-schema.ts";
import type { ArtifactKind } from "./artifacts.ts";
import type { Pin, RetryPolicy, ToolEffect } from "./definition-parts.ts";
import type { WorkspaceActionKind } from "./workspace.ts";

/** A text for a model with places for values, in Liquid. */
export interface PromptDefinition {
  description?: string;
  /** Liquid. The instructions of the call. */
  systemPrompt?: string;
  /** Liquid. The message of the call. */
  template: string;
  /** JSON Schema of the values that the texts name; any values when absent. */
  requires?: JsonObject;
  /** JSON Schema of the answer; text when absent. */
  produces?: JsonObject;
  /** Pairs of values and answers, shown to the model before the message. */
  examples?: { input: JsonObject; output: unknown }[];
}

/** A function of the deployed code. The definition describes the function, and does not pin its code. */
export interface CodeActionDefinition {
  kind: "code";
  description?: string;
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  effect: ToolEffect;
  timeoutMs: number;
}

/** Computes the members of an object from the task's input, state and output. */
export interface UpdateContextAction {
  kind: "update_context";
  /** The members: expressions over `input`, `state` and `output`. */
  values: Mapping;
}

/** Requests over HTTP: the input is `{url, method?, headers?, body?}`, the result `{status, headers, body}`. */
export interface HttpRequestAction {
  kind: "http.request";
  /** The hosts that it may reach: `host` or `host:port`. */
  hosts: readonly string[];
  /** Effect of a request that is made twice: `once` when absent. */
  effect?: ToolEffect;
  /** Time of a request with its redirects, in milliseconds: 60 000 when absent, 900 000 at most. */
  timeoutMs?: number;
}

/** Calls a model once. The step's input gives the values of the texts; the result is `{response}`. */
export interface LlmAction<Prompt = DefinitionReference, Profile = DefinitionReference> {
  kind: "llm";
  /** The model. Default: the agent's model. */
  profile?: Profile;
  /** A prompt of a library. Without one, `template` is the message. */
  prompt?: Prompt;
  /** Liquid. The instructions of the call. */
  systemPrompt?: string;
  /** Liquid. The message of the call. */
  template?: string;
  /** JSON Schema of the answer; the prompt's when absent, and text without either. */
  outputSchema?: JsonObject;
  /** Tokens of the texts, as the platform estimates them; an estimate from their source and the task's input when absent. */
  maxInputTokens?: number;
  /** Tokens of the answer. Default: the profile's limit, or 4 096. */
  maxOutputTokens?: number;
  /** Milliseconds of one attempt: 120 000 when absent. */
  timeoutMs?: number;
}

/** Turns texts into vectors. The input is `{texts}`, the result `{vectors, model, dimensions}`. */
export interface EmbedAction<Profile = DefinitionReference> {
  kind: "llm.embed";
  /** The embedding model; a hash of the words, without a network, when absent. */
  profile?: Profile;
  timeoutMs?: number;
}

/** Records an event of the conversation: the step's input is its payload. The result is `{}`. */
export interface EmitEventAction {
  kind: "emit_event";
  /** Such as `order.billed`. */
  name: string;
}

/** Records a measurement: the input is `{value, attributes?}`. The result is `{}`. */
export interface MetricAction {
  kind: "metric.record";
  /** Such as `orders.total`. */
  name: string;
  unit?: string;
}

/** Queries an index of vectors, or adds to it. */
export interface VectorAction {
  kind: "vector";
  /** The name of an index of the deployment. */
  index: string;
  /**
   * `query`: the input is `{vector, topK?, filter?}`, the result `{matches: [{id, score, metadata?}]}`. `upsert`: the input is
   * `{vectors: [{id, values, metadata?}]}`, the result `{count}`.
   */
  operation: "query" | "upsert";
}

export const MEMORY_KINDS = [
  "memory.write",
  "memory.read",
  "memory.search",
  "memory.list",
  "memory.update",
  "memory.delete",
  "memory.archive",
] as const;

/**
 * Reads or changes the memory of the agent that the task works for. This is the agent of the turn, or of the turn
 * that started the run. The step's input equals the input of the method with the same name. An agent in the input is
 * ignored.
 */
export interface MemoryAction {
  kind: (typeof MEMORY_KINDS)[number];
}

/**
 * Reads or changes the files of the run or the conversation that the task works for. The step's input is the input of the operation, as in
 * `WORKSPACE_INPUTS`.
 */
export interface WorkspaceAction {
  kind: WorkspaceActionKind;
}

/**
 * Reads or changes the artifacts of the project that the task works for. The step's input is the input of the operation, as in
 * `ARTIFACT_INPUTS`.
 */
export interface ArtifactAction {
  kind: ArtifactKind;
}

/** Returns a value that fits a schema, in place of an action that is not there yet. */
export interface MockAction {
  kind: "mock.return";
  /** JSON Schema of the value. */
  schema: JsonObject;
  /** The same seed gives the same value; 1 when absent. */
  seed?: number;
  /** Texts are words when absent. */
  stringMode?: "words" | "letters" | "empty";
  /** The pause before the value, drawn between both. */
  delay?: { minMs: number; maxMs: number };
}

export const HUMAN_KINDS = ["human.input", "human.approve", "human.review"] as const;

/**
 * Asks a person, and waits for the answer. It is the only step of its task, which runs as a node of a workflow. The step's input is shown
 * beside the question.
 */
export interface HumanAction {
  /** The answer of `approve` is `{approved, comment?}`. The answer of `review` is `{approved, comment?, changes?}`. */
  kind: (typeof HUMAN_KINDS)[number];
  /** Liquid. The question; the step's input gives the values. */
  prompt: string;
  /** JSON Schema of the answer to `human.input`, and of `changes` of a review; any JSON when absent. */
  schema?: JsonObject;
  /** Time for the answer, in milliseconds: 30 days at most; no limit when absent. */
  timeoutMs?: number;
  /** Names the people who may answer. If absent, everyone who may read the run may answer. */
  approval?: ApprovalRule;
}

/** The actions that are the same in a definition and in a pinned task. */
type PlainAction =
  | UpdateContextAction
  | HttpRequestAction
  | EmitEventAction
  | MetricAction
  | VectorAction
  | MemoryAction
  | WorkspaceAction
  | ArtifactAction
  | MockAction
  | HumanAction;

/** The work of a step, without functions: those are named by reference. */
export type InlineAction = PlainAction | LlmAction | EmbedAction;

/** An action of a library. */
export type ActionDefinition = CodeActionDefinition | InlineAction;

/** The outcome of a condition: the action runs, the step is left out, or the task ends. */
export type StepOutcome = "continue" | "skip" | "succeed" | "fail";

/** The members of a step without its action. Expressions are CEL over `input`, `state` and `output`. */
export interface StepSettings {
  /** Decides what happens at the step. `then` is `continue` when absent, `else` is `skip`. */
  condition?: { if: string; then?: StepOutcome; else?: StepOutcome };
  /** The members of the action's input. The task's input when absent. */
  inputMapping?: Mapping;
  /**
   * Writes of the step, by path: expressions that may use `result`, too. When absent, the result becomes `state._lastOutput`.
   * @example { "state.order": "result", "output.total": "result.total" }
   */
  outputMapping?: Mapping;
  /** Attempts of the action while its error may pass; one when absent. Not for `once` actions. */
  retry?: RetryPolicy;
  /** An expression for the idempotency key of the action. Default: its operation id. */
  idempotencyKey?: string;
  /** `abort` when absent. `continue` adds the error to `state._errors`. */
  onFailure?: "abort" | "retry" | "continue";
}

/** A step as a definition holds it. */
export interface StepDefinition extends StepSettings {
  /** Names the step in its task. */
  ref: string;
  /** An action of a library, by reference, or one of a kind without code. */
  action: DefinitionReference | InlineAction;
}

/** Attempts of a whole task, each from its first step with a fresh state. */
export interface TaskRetry {
  /** The first included. */
  maxAttempts: number;
  /** `none` keeps the pause, `linear` adds the first pause each time, `exponential` doubles it. `exponential` when absent. */
  backoff?: "none" | "linear" | "exponential";
  /** Milliseconds before the second attempt; 1 000 when absent. */
  initialDelayMs?: number;
  /** The longest pause; a minute when absent. */
  maxDelayMs?: number;
}

/** A task as data. One of a function has an `effect`; one of steps has `steps`, and the weakest effect of their actions. */
export interface TaskDefinition {
  description?: string;
  /** JSON Schema of an object. */
  inputSchema: JsonObject;
  /** JSON Schema of the result; any JSON when absent. */
  outputSchema?: JsonObject;
  /** Time of one attempt, in milliseconds. */
  timeoutMs: number;
  retry?: TaskRetry;
  steps?: StepDefinition[];
  effect?: ToolEffect;
}

/** An action with its pinned references. The code of a function comes from the deployment. */
export type PinnedAction =
  | PlainAction
  | LlmAction<PromptDefinition, ModelProfile>
  | EmbedAction<ModelProfile>
  | { kind: "code"; library: string; id: string; effect: ToolEffect; timeoutMs: number };

export interface PinnedStep extends StepSettings {
  ref: string;
  action: PinnedAction;
}

/** A task of steps with all that it refers to, as conversations and runs keep it. */
export interface PinnedTask extends Pin {
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  steps: readonly PinnedStep[];
  /** An author of the tenant wrote it: its requests go to hosts that the deployer allows only. */
  authored?: true;
}
