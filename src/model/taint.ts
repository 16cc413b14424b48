/**
 * The origins of content, and its taint: the untrusted origins. Pure.
 *
 * TAINT-1  The taint of a request is the union of the taints of its messages. It does not depend on the operations of a turn.
 * TAINT-2  A reply inherits the taint of each source in its request, because it may repeat the source. It does not inherit what an
 *          earlier reply of the agent has inherited. So the taint ends when the source, its summaries and the replies that it has led to
 *          have left the request.
 * TAINT-3  A message has the taint that is stored with it. Without one, its role and its origin decide. A result, a summary or a note of the
 *          platform without a taint counts as the result of a tool.
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

/** Untrusted origins, each once, in the order of `ORIGINS`. The taint of trusted content is empty. */
export type Taint = readonly Origin[];

/** The taint of a request. Absent members are empty. */
export interface RequestTaint {
  /** The origins of its sources: all messages but the replies of its agent. */
  readonly taint?: Taint;
  /** The other origins, which only replies of its agent have (TAINT-2). */
  readonly echoes?: Taint;
}

export interface TaintedText {
  readonly text: string;
  readonly taint: Taint;
}

export function joinTaints(...taints: readonly (Taint | undefined)[]): Taint {
  const all = new Set(taints.flatMap((taint) => taint ?? []));
  return ORIGINS.filter((origin) => all.has(origin));
}

/** Returns a taint as a member for storage, or `{}` for trusted content. */
export function taintMember(taint: Taint): { taint?: Taint } {
  return taint.length === 0 ? {} : { taint };
}

/** Returns the taint of a request (TAINT-1). */
export function taintOfRequest(messages: readonly ContextMessage[], more: Taint = []): RequestTaint {
  const isReply = ({ role, metadata }: ContextMessage) =>
    role === "assistant" && typeOf(metadata) === "agent";
  const taint = joinTaints(more, ...messages.map((message) => (isReply(message) ? [] : taintOf(message))));
  const own = joinTaints(...messages.filter(isReply).map(taintOf));
  const echoes = own.filter((origin) => !taint.includes(origin));
  return { ...taintMember(taint), ...(echoes.length === 0 ? {} : { echoes }) };
}

/** Returns the whole taint of a request. It taints all content that is made from the request. */
export function wholeTaint({ taint, echoes }: RequestTaint): Taint {
  return joinTaints(taint, echoes);
}

/** Returns the taint of a message (TAINT-3). */
export function taintOf(message: ContextMessage): Taint {
  const { role, metadata = {} } = message;
  const origin = typeOf(metadata);
  // A history from elsewhere brings metadata of its own.
  if (origin === "client") return ["import"];
  const stored = storedTaint(metadata.taint);
  if (stored !== undefined) return stored;
  switch (role) {
    case "tool":
      return ["tool"];
    case "user": {
      const speakerTaint = SPEAKERS.get(origin ?? "") ?? ["import"];
      return hasMedia(message.parts) ? joinTaints(speakerTaint, ["document"]) : speakerTaint;
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

/** The taints of users' messages, by the kinds of their authors. */
const SPEAKERS: ReadonlyMap<string, Taint> = new Map([
  ["user", []],
  ["platform", []],
  ["agent", ["colleague"]],
  ["workflow", ["colleague"]],
]);

export function hasMedia(parts: readonly { type: string }[] = []): boolean {
  return parts.some(({ type }) => type !== "text");
}

/** Returns the kind in the origin of an event, such as `user` of `user:ada`. */
function typeOf(metadata: ContextMessage["metadata"]): string | undefined {
  const origin = metadata?.origin;
  return typeof origin === "string" ? origin.split(":", 1)[0] : undefined;
}

/** Returns a taint as it was stored; `undefined` for another value. */
export function storedTaint(value: unknown): Taint | undefined {
  return Array.isArray(value) ? ORIGINS.filter((origin) => value.includes(origin)) : undefined;
}
