/**
 * What a model is sent: messages built from a window of a session's events. Pure, so it runs in actors, Workflows
 * and plain Workers, on events that came by RPC.
 *
 * CTX-1  Every tool result follows its request directly and every request has all of its results; what has lost its
 *        other half (cut off by the window, or still running) is left out.
 * CTX-2  Events that a compaction covers are left out, and its summary stands in their place.
 * CTX-3  Nothing given in is changed or kept by reference.
 */
import { eventToMessage } from "./events.ts";
import { type ContextBuilderOptions, type ContextMessage, EventAction, type SessionEvent } from "./types.ts";

/** The messages of one request, and what was added to them since. Made for one request, then thrown away. */
export class WorkingContext {
  readonly systemInstructions: readonly string[];
  private readonly all: ContextMessage[];
  private known: number;

  constructor(messages: readonly ContextMessage[] = [], systemInstructions: readonly string[] = []) {
    this.all = [...messages];
    this.known = this.all.length;
    this.systemInstructions = [...systemInstructions];
  }

  get messages(): readonly ContextMessage[] {
    return this.all;
  }

  addMessage(message: ContextMessage): void {
    this.all.push(message);
  }

  /** The messages added since construction, or since they were last marked as persisted. */
  getNewMessages(): ContextMessage[] {
    return this.all.slice(this.known);
  }

  /** From now on, none of the present messages counts as new. */
  markPersisted(): void {
    this.known = this.all.length;
  }
}

/** The events a context is built from, as `loadEvents` gives them, and how they are shown. */
export type BuildContextOptions = Pick<ContextBuilderOptions, "systemInstructions" | "eventToMessage">;

/** Builds the context of a request from events in the order of their session. Unknown events never enter it. */
export function buildWorkingContext(
  events: readonly SessionEvent[],
  options: BuildContextOptions = {},
): WorkingContext {
  const toMessage = options.eventToMessage ?? eventToMessage;
  const messages = uncompacted(events)
    .filter((event) => event.action !== "unknown")
    .map(toMessage)
    .filter((message) => message !== null);
  return new WorkingContext(pairedMessages(messages), options.systemInstructions);
}

/** The events without those that a compaction among them covers; its summary takes their place (CTX-2). */
function uncompacted(events: readonly SessionEvent[]): SessionEvent[] {
  const position = positions(events);
  const covered = events.reduce((most, event, index) => {
    if (event.action !== EventAction.COMPACTION) return most;
    return Math.max(most, Math.min(event.compactedEventCount, position(index)));
  }, 0);
  if (covered === 0) return [...events];
  const left = events.filter((_, index) => position(index) >= covered);
  const summaries = left.filter((event) => event.action === EventAction.COMPACTION);
  return [...summaries, ...left.filter((event) => event.action !== EventAction.COMPACTION)];
}

/**
 * Position of an event in its session: its sequence number, which also counts what lies before the window. Events that
 * were never stored share a placeholder, so there the index has to do.
 */
function positions(events: readonly SessionEvent[]): (index: number) => number {
  const ascending = events.every((event, index) => index === 0 || event.seq > (events[index - 1]?.seq ?? 0));
  return (index) => (ascending ? (events[index]?.seq ?? index) : index);
}

/** The messages in an order every provider accepts: each request directly with its results, or neither (CTX-1). */
export function pairedMessages(messages: readonly ContextMessage[]): ContextMessage[] {
  const answers = new Map<ContextMessage, ContextMessage[]>();
  const open = new Map<string, ContextMessage[]>();
  for (const message of messages) {
    if (message.role === "tool") {
      const request = open.get(message.toolCallId ?? "")?.pop();
      if (request !== undefined) answers.get(request)?.push(message);
    } else if (isRequest(message)) {
      answers.set(message, []);
      // Ids are unique within a message only: a later request takes an id over from one that was never answered.
      for (const call of message.toolCalls) open.set(call.id, []);
      for (const call of message.toolCalls) open.get(call.id)?.push(message);
    }
  }
  return messages.flatMap((message) => {
    if (message.role === "tool") return [];
    if (!isRequest(message)) return [message];
    const results = answers.get(message) ?? [];
    return results.length === message.toolCalls.length ? [message, ...results] : [];
  });
}

type Request = ContextMessage & Required<Pick<ContextMessage, "toolCalls">>;

function isRequest(message: ContextMessage): message is Request {
  return message.role === "assistant" && message.toolCalls !== undefined && message.toolCalls.length > 0;
}
