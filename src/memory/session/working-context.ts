/**
 * Builds the messages of a model request from a session's events. Pure, so it runs in actors, Workflows and plain Workers, even on events
 * received by RPC.
 *
 * CTX-1  Each tool result directly follows its request, and each request has all its results. A request or a result without its counterpart
 *        (outside the window, or still running) is left out.
 * CTX-2  A compaction's summary replaces the events that it covers.
 * CTX-3  The input is not modified, and the context keeps copies.
 */
import type { ContextMessage } from "../../model/messages.ts";
import { defined } from "../../shared/defined.ts";
import { type MeasureOptions, measuring } from "./measure.ts";
import type { LoadEventsOptions, SessionEvent } from "./session-event.ts";
import { checkTokenBudget, type FrameOfContext, frameTokens } from "./tokens.ts";
import { type WindowOptions, windowMessages } from "./window.ts";

/**
 * The messages of one request, and those added since.
 *
 * @example
 * const context = agent.buildWorkingContext(sessionId);
 * context.addMessage({ role: "user", content: "Hello" });
 * agent.persistWorkingContext(sessionId, context);
 */
export class WorkingContext {
  readonly systemInstructions: readonly string[];
  private readonly all: ContextMessage[];
  private persisted: number;

  constructor(systemInstructions: readonly string[] = [], messages: readonly ContextMessage[] = []) {
    this.all = [...messages];
    this.persisted = this.all.length;
    this.systemInstructions = [...systemInstructions];
  }

  get messages(): readonly ContextMessage[] {
    return this.all;
  }

  addMessage(message: ContextMessage): void {
    this.all.push(message);
  }

  /** Returns the messages added since construction, or since `markPersisted`. */
  getNewMessages(): ContextMessage[] {
    return this.all.slice(this.persisted);
  }

  markPersisted(): void {
    this.persisted = this.all.length;
  }
}

/** Options of a context that is built from loaded events. */
export interface BuildContextOptions
  extends FrameOfContext,
    Omit<MeasureOptions, "known">,
    Pick<WindowOptions, "isCutOff"> {
  /**
   * Maximum tokens of the context: instructions, tools and messages together. Leave room for further messages and the
   * reply. Unlimited by default.
   */
  tokenBudget?: number;
}

/** Options of a context that an actor builds from a session. */
export interface ContextBuilderOptions extends LoadEventsOptions, Omit<BuildContextOptions, "isCutOff"> {}

/**
 * Builds the context of a request from events in the order of their session. Omits unknown events. With a `tokenBudget` the
 * context contains as many of the newest turns as fit beside instructions and tools (TOKEN-3 to TOKEN-5).
 *
 * @example buildWorkingContext(events, { systemInstructions: ["Be brief."], tokenBudget: 16_000 })
 */
export function buildWorkingContext(
  events: readonly SessionEvent[],
  options: BuildContextOptions = {},
): WorkingContext {
  const { systemInstructions, eventToMessage, tokenBudget, isCutOff = false } = options;
  if (tokenBudget === undefined) {
    const measure = measuring(defined({ eventToMessage }));
    const messages = windowMessages(events, measure, { tokenBudget: Number.POSITIVE_INFINITY });
    return new WorkingContext(systemInstructions, messages);
  }
  checkTokenBudget(tokenBudget);
  const left = tokenBudget - frameTokens(options, options.countTokens);
  const messages = windowMessages(events, measuring(options), { tokenBudget: left, isCutOff });
  return new WorkingContext(systemInstructions, messages);
}
