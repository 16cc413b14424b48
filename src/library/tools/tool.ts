/** The context of a library's functions, and the form of its definitions. */
import type { ToolArtifacts } from "../../protocol/artifacts.ts";
import type { Skill } from "../../protocol/definitions.ts";
import type { ToolState } from "../../protocol/executor-api.ts";
import type { ToolMemory } from "../../protocol/tool-memory.ts";
import type { ToolWorkspace } from "../../protocol/workspace.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import type { Json } from "../../shared/json.ts";
import type { DeferOptions, Deferred } from "./deferred.ts";

/** The second argument of a tool's `execute`. */
export interface ToolContext {
  /** Stays the same in all attempts of a call. Use it as the idempotency key in requests to other services. */
  operationId: string;
  /** Aborts when the call is cancelled or times out. */
  signal: AbortSignal;
  /** The origin of the call: a turn of a conversation, or a run of a workflow, which has no `conversationId`. */
  context: CallContext;
  /** Durable values of the conversation, or of the workflow's run. */
  state: ToolState;
  /** The memory of the calling agent, in the scope of its persona. */
  memory: ToolMemory;
  /** The files of the conversation or the run, on its branch of the repositories of its project. */
  workspace: ToolWorkspace;
  /** The artifacts of the project: text files that its agents and people share. */
  artifacts: ToolArtifacts;
  /** The skills of the calling agent. Empty in runs of workflows. */
  skills: readonly Skill[];
  /** Milliseconds since the epoch. */
  now(): number;
  /**
   * Defers the result of this call. Pass the `url` or `handle` to the system that will produce the result, then `return` the deferred
   * operation. `pure` tools cannot defer.
   *
   * @example
   * const deferred = await defer({ expiresInMs: 3_600_000 });
   * await startPayment(amount, { webhook: deferred.url });
   * return deferred;
   */
  defer(options?: DeferOptions): Promise<Deferred>;
  /** Publishes the call's progress to readers of the conversation or the run. Progress is not stored, and the model does not see it. */
  progress(value: Json): void;
}

/** A definition with its id in a library. */
export interface Defined<Definition> {
  readonly id: string;
  readonly definition: Definition;
}

/** Runs a function of the deployed code. Checks the input first. Throws `ToolError` with `INVALID_INPUT` for invalid input. */
export type Run = (input: unknown, context: ToolContext) => Promise<unknown>;
