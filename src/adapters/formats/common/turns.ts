/**
 * Conversations as turns of a user and a model, for providers that know no other speakers: which messages are
 * instructions, how speakers are named, and how turns come to alternate. Pure.
 */

import type { ModelContext } from "../../../model/context.ts";
import type { ContextMessage, ContextPart } from "../../../model/messages.ts";
import type { ProviderId } from "../../../model/profile.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { unsupported } from "./native.ts";
import { attributed } from "./speaker.ts";

export interface Exchange {
  role: "user" | "assistant";
  blocks: JsonObject[];
}

/** What a user's turn says where one must stand and there is none. */
export const NO_MESSAGE = "(no message)";

const SYSTEM_LABEL = "[System instruction] ";

/** A context's instructions as one text, with the system messages at its beginning; the other messages, and from where. */
export interface Instructed {
  /** Empty if there are none. */
  instructions: string;
  messages: readonly ContextMessage[];
  /** How many messages went into the instructions. */
  leading: number;
}

/** Takes the instructions out of a context; throws `UNSUPPORTED` for media among them. */
export function instructed(provider: ProviderId, context: ModelContext): Instructed {
  const later = context.messages.findIndex(({ role }) => role !== "system");
  const leading = later < 0 ? context.messages.length : later;
  const first = context.messages.slice(0, leading);
  if (first.some(({ parts = [] }) => parts.some(({ type }) => type !== "text"))) {
    throw unsupported(provider, "images or files among the system instructions");
  }
  const said = first.filter(({ content }) => content.trim() !== "");
  const texts = context.systemInstructions.filter((text) => text.trim() !== "");
  return {
    instructions: [...texts, ...said.map(({ name, content }) => attributed(name, content))].join("\n\n"),
    messages: context.messages.slice(leading),
    leading,
  };
}

/**
 * What a message says, without its calls: its parts, led by `name: ` where it names its speaker, or by
 * `[System instruction] `. Blank texts are left out, and a message that says and calls nothing is empty.
 */
export function spokenParts(message: ContextMessage): ContextPart[] {
  const { parts = [{ type: "text", text: message.content }], toolCalls = [] } = message;
  const spoken = parts.filter((part) => part.type !== "text" || part.text.trim() !== "");
  const [first, ...rest] = spoken;
  const label = labelOf(message);
  if (label === "" || (first === undefined && toolCalls.length === 0)) return spoken;
  return first?.type === "text"
    ? [{ type: "text", text: label + first.text }, ...rest]
    : [{ type: "text", text: label.trimEnd() }, ...spoken];
}

function labelOf({ role, name }: ContextMessage): string {
  if (role === "tool") return "";
  return `${role === "system" ? SYSTEM_LABEL : ""}${attributed(name, "")}`;
}

/**
 * Turns that alternate: neighbours of one role are joined, empty ones are left out, and a model's turn that would come
 * first, or behind another one in what was sent before, gets a user's `opening` before it.
 */
export function alternating(
  turns: readonly Exchange[],
  opening: JsonObject,
  last?: Exchange["role"],
): Exchange[] {
  const joined: Exchange[] = [];
  for (const { role, blocks } of turns) {
    if (blocks.length === 0) continue;
    const previous = joined.at(-1);
    if (previous?.role === role) previous.blocks.push(...blocks);
    else joined.push({ role, blocks: [...blocks] });
  }
  const needsOpening = joined[0]?.role === "assistant" && last !== "user";
  return needsOpening ? [{ role: "user", blocks: [opening] }, ...joined] : joined;
}

/** What a model is asked to answer ends with a user's turn, or with calls whose results are still to come. */
export function answerable(
  turns: readonly Exchange[],
  opening: JsonObject,
  last?: ContextMessage,
): Exchange[] {
  const isWaiting = last?.toolCalls !== undefined && last.toolCalls.length > 0;
  const isAsked = isWaiting || turns.at(-1)?.role === "user";
  return isAsked ? [...turns] : [...turns, { role: "user", blocks: [opening] }];
}
