/**
 * A turn as the built-in extractors read it. Pure.
 *
 * LEARN-1  An extractor reads the user's message and the agent's answer. It ignores instructions, recalled memories, tool calls and their
 *          results.
 * LEARN-2  An extractor ignores code blocks and quoted lines of a message, because another author may have written them.
 */
import { z } from "zod";
import type { OfferedMemory } from "../../protocol/memory.ts";
import { foldText } from "../../shared/folding.ts";
import { cut } from "../../shared/text.ts";
import { knownZone } from "./local-time.ts";

/** Maximum characters that are read from the user's message and from the agent's answer. */
const MAX_USER_LENGTH = 16_000;
const MAX_ANSWER_LENGTH = 6_000;
/** Maximum number of memories that are read, and characters of each memory. */
const MAX_OFFERED = 30;
const MAX_OFFERED_LENGTH = 600;

const offered = z.looseObject({
  id: z.string(),
  type: z.string(),
  content: z.string(),
  readOnly: z.literal(true).optional(),
});

/** The fields of an extraction's input that the built-in extractors read. */
export const turnSchema = z.looseObject({
  user_text: z.string(),
  agent_message: z.string().nullable(),
  caller: z.looseObject({ type: z.string() }),
  completed_at: z.string(),
  /** The time of the message; `completed_at` when absent. */
  sent_at: z.string().optional(),
  /** The IANA zone of the user; UTC when absent. */
  time_zone: z.string().optional(),
  memories: z.array(offered).optional(),
});

export type TurnInput = z.output<typeof turnSchema>;

/** A memory that may be changed, unless it is `readOnly`. */
export type Offered = Pick<OfferedMemory, "id" | "type" | "content" | "readOnly">;

export interface LearnedTurn {
  /** The user's own words; empty if the author of the message is not a user. */
  message: string;
  answer: string;
  /** The time of the message, in milliseconds. */
  time: number;
  zone: string;
  memories: Offered[];
}

export function learnedTurn(input: TurnInput): LearnedTurn {
  const { user_text, agent_message, caller, completed_at, sent_at, time_zone, memories = [] } = input;
  const sent = Date.parse(sent_at ?? completed_at);
  return {
    message: caller.type === "user" ? ownWords(cut(user_text, MAX_USER_LENGTH)) : "",
    answer: cut(agent_message ?? "", MAX_ANSWER_LENGTH),
    time: Number.isNaN(sent) ? Date.parse(completed_at) : sent,
    zone: knownZone(time_zone),
    memories: memories.slice(0, MAX_OFFERED).map(({ id, type, content, readOnly }) => ({
      ...{ id, type, content: cut(content, MAX_OFFERED_LENGTH) },
      ...(readOnly && { readOnly }),
    })),
  };
}

/** Returns a message without its code blocks and quoted lines (LEARN-2). */
function ownWords(text: string): string {
  const lines: string[] = [];
  let fence: string | undefined;
  for (const line of text.split(/\r?\n/)) {
    const [, mark] = /^\s{0,3}(```|~~~)/.exec(line) ?? [];
    if (fence !== undefined) {
      if (mark === fence) fence = undefined;
      continue;
    }
    if (mark !== undefined) fence = mark;
    else if (!/^\s{0,3}>/.test(line)) lines.push(line);
  }
  return lines.join("\n");
}

/** Normalises a text, so that two texts with the same words are equal. */
export function foldedText(text: string): string {
  return foldText(text, "NFKC")
    .replace(/[\u2018\u2019]/g, "'")
    .replace(/[^\p{L}\p{N}']+/gu, " ")
    .trim();
}

/** Words that name secrets. Texts with such a word are not stored. */
const SECRET =
  /\b(?:passwords?|passphrases?|passcodes?|pin(?: code| number)?|api[- ]?keys?|secret keys?|private keys?|access tokens?|card numbers?|cvv|cvc|one-time codes?|recovery codes?|seed phrases?)\b/i;

export function namesSecret(text: string): boolean {
  return SECRET.test(text);
}
