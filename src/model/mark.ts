/**
 * The origins of content, and its mark: the untrusted origins. Pure.
 *
 * MARK-1  The mark of a request is the union of the marks of its messages. It does not depend on the operations of a turn.
 * MARK-2  A reply inherits the mark of each source in its request, because it may repeat the source. It does not inherit what an
 *         earlier reply of the agent has inherited. So the mark ends when the source, its summaries and the replies that it has led to
 *         have left the request.
 * MARK-3  A message has the mark that is stored with it. Without one, its role and its origin decide. A result, a summary or a note of the
 *         platform without a mark counts as the result of a tool.
 */
import type { ContextMessage } from "./messages.ts";

/**
 * The kinds of origins. `user` and `agent` (its own words) are trusted. Untrusted are results of `tool` and `client`, the words of other
 * agents and of runs (`colleague`), attachments (`document`), a history or a text from elsewhere (`import`), and tainted memories
 * (`memory`).
 */
export const ORIGINS = [
  "user",
  "agent",
  "tool",
  "client",
  "colleague",
  "document",
  "import",
  "memory",
] as const;

export type Origin = (typeof ORIGINS)[number];

/** Untrusted origins, each once, in the order of `ORIGINS`. The mark of trusted content is empty. */
export type Mark = readonly Origin[];

/** The mark of a request. Absent members are empty. */
export interface RequestMark {
  /** The origins of its sources: all messages but the replies of its agent. */
  readonly mark?: Mark;
  /** The other origins, which only replies of its agent have (MARK-2). */
  readonly echoes?: Mark;
}

export interface MarkedText {
  readonly text: string;
  readonly mark: Mark;
}

export function joinedMarks(...marks: readonly (Mark | undefined)[]): Mark {
  const all = new Set(marks.flatMap((mark) => mark ?? []));
  return ORIGINS.filter((origin) => all.has(origin));
}

/** Returns a mark as a member for storage, or `{}` for trusted content. */
export function markMember(mark: Mark): { mark?: Mark } {
  return mark.length === 0 ? {} : { mark };
}

/** Returns the mark of a request (MARK-1). */
export function markOfRequest(messages: readonly ContextMessage[], more: Mark = []): RequestMark {
  const isReply = ({ role, metadata }: ContextMessage) =>
    role === "assistant" && typeOf(metadata) === "agent";
  const mark = joinedMarks(more, ...messages.map((message) => (isReply(message) ? [] : markOf(message))));
  const own = joinedMarks(...messages.filter(isReply).map(markOf));
  const echoes = own.filter((origin) => !mark.includes(origin));
  return { ...markMember(mark), ...(echoes.length === 0 ? {} : { echoes }) };
}

/** Returns the whole mark of a request. It taints all content that is made from the request. */
export function wholeMark({ mark, echoes }: RequestMark): Mark {
  return joinedMarks(mark, echoes);
}

/** Returns the mark of a message (MARK-3). */
export function markOf(message: ContextMessage): Mark {
  const { role, metadata = {} } = message;
  const origin = typeOf(metadata);
  // A history from elsewhere brings metadata of its own.
  if (origin === "client") return ["import"];
  const stored = storedMark(metadata.mark);
  if (stored !== undefined) return stored;
  switch (role) {
    case "tool":
      return ["tool"];
    case "user": {
      const speakerMark = SPEAKERS.get(origin ?? "") ?? ["import"];
      return hasMedia(message.parts) ? joinedMarks(speakerMark, ["document"]) : speakerMark;
    }
    case "assistant":
      return [];
    case "system": {
      const { operation, compactedEventCount } = metadata;
      const isForeign = operation !== undefined || compactedEventCount !== undefined || origin === "platform";
      return isForeign ? ["tool"] : [];
    }
    default:
      return role satisfies never;
  }
}

/** The marks of users' messages, by the kinds of their authors. */
const SPEAKERS: ReadonlyMap<string, Mark> = new Map([
  ["user", []],
  ["platform", []],
  ["agent", ["colleague"]],
  ["workflow", ["colleague"]],
]);

/** Reports whether a message has an image or a file. */
export function hasMedia(parts: readonly { type: string }[] = []): boolean {
  return parts.some(({ type }) => type !== "text");
}

/** Returns the kind in the origin of an event, such as `user` of `user:ada`. */
function typeOf(metadata: ContextMessage["metadata"]): string | undefined {
  const origin = metadata?.origin;
  return typeof origin === "string" ? origin.split(":", 1)[0] : undefined;
}

/** Returns a mark as it was stored; `undefined` for another value. */
export function storedMark(value: unknown): Mark | undefined {
  return Array.isArray(value) ? ORIGINS.filter((origin) => value.includes(origin)) : undefined;
}
