/**
 * Conversations as turns of a user and a model, for providers that have no other speakers: which messages become
 * instructions, how speakers are named, and how turns come to alternate. Pure.
 */
import type { ModelContext } from "../../../model/context.ts";
import { type ContextMessage, type ContextPart, isNote } from "../../../model/messages.ts";
import type { ProviderId } from "../../../model/profile.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { isBlank, shownParts } from "./blank.ts";
import { continued, requireList, unsupported } from "./request.ts";

export interface SpeakerTurn {
  role: "user" | "assistant";
  blocks: JsonObject[];
}

const SYSTEM_LABEL = "[System instruction] ";
const NOTE_LABEL = "[Note of the platform] ";

/** The instructions of a context, and its messages behind them. */
export interface Instructed {
  /** The leading system messages, up to the first note. May be empty. */
  instructions: string;
  messages: readonly ContextMessage[];
  /** Number of messages that went into the instructions. */
  leading: number;
}

/** Separates the instructions of a context from its messages; throws `UNSUPPORTED` for media in the instructions. */
export function instructed(provider: ProviderId, context: ModelContext): Instructed {
  const later = context.messages.findIndex((message) => message.role !== "system" || isNote(message));
  const leading = later < 0 ? context.messages.length : later;
  const first = context.messages.slice(0, leading);
  if (first.some(({ parts = [] }) => parts.some(({ type }) => type !== "text")))
    throw unsupported(provider, "images or files among the system instructions");
  const texts = [
    ...context.systemInstructions,
    ...first.map(({ name, content }) => (isBlank(content) ? "" : attributed(name, content))),
  ];
  const instructions = joinedInstructions(texts);
  return { instructions, messages: context.messages.slice(leading), leading };
}

/** Joins instructions with blank lines. Drops blank instructions. */
export function joinedInstructions(texts: readonly string[]): string {
  return texts.filter((text) => !isBlank(text)).join("\n\n");
}

/** Writes the speaker before a text, as in `Ann: Hello`. A text without a speaker stays as it is. */
export function attributed(name: string | undefined, text: string): string {
  const speaker = name?.replace(/\s+/g, " ").trim();
  return speaker ? `${speaker}: ${text}` : text;
}

/**
 * Returns the shown parts of a message. They start with `name: ` if the message names its speaker, or with the label of a system message.
 * Empty for a message without parts and calls.
 */
export function spokenParts(message: ContextMessage): ContextPart[] {
  const { role, name, toolCalls = [] } = message;
  const spoken = shownParts(message);
  const [first, ...rest] = spoken;
  const label = role === "tool" ? "" : systemLabel(message) + attributed(name, "");
  if (label === "" || (first === undefined && toolCalls.length === 0)) return spoken;
  return first?.type === "text"
    ? [{ type: "text", text: label + first.text }, ...rest]
    : [{ type: "text", text: label.trimEnd() }, ...spoken];
}

/** Returns a note as a user's message with its label, for formats that have system messages between others; others as they are. */
export function withoutAuthority(message: ContextMessage): ContextMessage {
  if (!isNote(message) || isBlank(message.content)) return message;
  const { name, ...rest } = message;
  return { ...rest, role: "user", content: NOTE_LABEL + attributed(name, message.content) };
}

function systemLabel(message: ContextMessage): string {
  if (message.role !== "system") return "";
  return isNote(message) ? NOTE_LABEL : SYSTEM_LABEL;
}

export interface TurnFormat {
  key: string;
  /** The block of a user's turn that has no message. */
  opening: JsonObject;
  toMessages(turn: SpeakerTurn): JsonObject[];
}

/** Builds the messages of a request: alternating turns that end with a user's, or with calls that wait for results. */
export function firstTurns(
  format: TurnFormat,
  turns: readonly SpeakerTurn[],
  last?: ContextMessage,
): JsonObject[] {
  const all = alternating(turns, format.opening);
  const isWaiting = last?.toolCalls !== undefined && last.toolCalls.length > 0;
  if (!isWaiting && all.at(-1)?.role !== "user") all.push({ role: "user", blocks: [format.opening] });
  return all.flatMap(format.toMessages);
}

export function laterTurns(
  { key, opening, toMessages }: TurnFormat,
  request: JsonObject,
  turns: readonly SpeakerTurn[],
): JsonObject {
  const last = requireList(request, key).at(-1);
  const follows = isJsonObject(last) && (last.role === "user" || last.role === "tool");
  return continued(request, key, alternating(turns, opening, follows).flatMap(toMessages));
}

/**
 * Joins neighbours with the same role and drops empty turns. Inserts an opening turn of the user if a model's turn would come first, or
 * directly after a sent model's turn.
 */
function alternating(turns: readonly SpeakerTurn[], opening: JsonObject, followsUser = false): SpeakerTurn[] {
  const joined: SpeakerTurn[] = [];
  for (const { role, blocks } of turns) {
    if (blocks.length === 0) continue;
    const previous = joined.at(-1);
    if (previous?.role === role) previous.blocks.push(...blocks);
    else joined.push({ role, blocks: [...blocks] });
  }
  const needsOpening = joined[0]?.role === "assistant" && !followsUser;
  return needsOpening ? [{ role: "user", blocks: [opening] }, ...joined] : joined;
}
