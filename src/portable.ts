/** The exports of the package `dramatis` that work on Workers and in Node: the builders of agents and libraries, and their types. */

export type { Authorize } from "./http/auth/authorize.ts";
export type { CorsOptions } from "./http/auth/cors.ts";
export type { Limits } from "./http/base/http-limits.ts";
export {
  type Defined,
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
  type Library,
  type PersonaOptions,
  type Tool,
  type ToolContext,
  type ToolOptions,
} from "./library/define/define.ts";
export { type AgentInCode, type AgentOptions, defineAgent } from "./library/define/define-agent.ts";
export {
  defineAction,
  definePrompt,
  defineTask,
  type FunctionTaskOptions,
  type NamedActionOptions,
  type StepsTaskOptions,
  type TaskOptions,
} from "./library/define/define-task.ts";
export {
  defineWorkflow,
  type Embedded,
  type NodeInCode,
  type NodeOptions,
  node,
  type TransitionInCode,
  type TransitionOptions,
  transition,
  type Workflow,
  type WorkflowOptions,
} from "./library/define/define-workflow.ts";
export type {
  CodeAction,
  DefinedPersona,
  LibraryAction,
  NamedAction,
  Prompt,
  Task,
} from "./library/tasks/built.ts";
export { type Action, type Step, type StepOptions, step } from "./library/tasks/step.ts";
export type { DeferOptions, Deferred } from "./library/tools/deferred.ts";
export { ToolError } from "./library/tools/tool-error.ts";
export type { ModelFormatAdapter } from "./model/format-adapter.ts";
export type { ModelGateway } from "./model/gateway.ts";
export type { ContextMessage, ToolCall } from "./model/messages.ts";
export type { ModelProfile } from "./model/profile.ts";
export type { Span, SpanAttributes, SpanExporter } from "./model/span.ts";
export type { DramatisEnv, DramatisOptions } from "./options.ts";
export type { Gate, GateContext, Verdict } from "./policy/gate.ts";
export type { PolicyRule } from "./policy/policy.ts";
export type { ApprovalNeed, ApprovalRule } from "./protocol/approval-schema.ts";
export type { Persona, PersonaSource, Skill, ToolDefinition, ToolEffect } from "./protocol/definitions.ts";
export type { LocationPolicy } from "./protocol/location-policy.ts";
export type {
  ActionDefinition,
  PinnedTask,
  PromptDefinition,
  StepDefinition,
  StepOutcome,
  StepSettings,
  TaskDefinition,
  TaskRetry,
} from "./protocol/task-definition.ts";
export type {
  WorkflowDefinition,
  WorkflowMerge,
  WorkflowNode,
  WorkflowSynchronization,
  WorkflowTransition,
} from "./protocol/workflow-definition.ts";
export {
  DramatisError,
  type ErrorCode,
  type ErrorData,
  type InputIssue,
  type Result,
} from "./shared/errors.ts";
export type { DefinitionReference } from "./shared/identifiers.ts";
export type { Json, JsonObject } from "./shared/json.ts";
export type { Principal } from "./shared/principal.ts";
export type { Role } from "./shared/roles.ts";
export type { RateLimit } from "./shared/token-bucket.ts";
