/**
 * Rules 7 and 15: requests to remember or forget, and questions that memories answer.
 *
 * OFFLINE-6  A question is answered only from the memories in the request, the most relevant first. They are quoted.
 */
import { keptWish } from "../../../library/built-in/rules/extract-by-rules.ts";
import { namesSecret } from "../../../library/memory/turn.ts";
import { shorten } from "../../../shared/text.ts";
import { call, labelled, type OfflineAnswer } from "./answer.ts";
import type { View } from "./view.ts";

/** Memories that an answer quotes, and characters of each. */
const MAX_QUOTED = 3;
const MAX_QUOTE = 300;
/** Characters of a wish that are kept. */
const MAX_WISH = 4_000;
/** Only the beginning of a message is searched for a question. */
const MAX_READ = 2_000;

const WISH = /^\s*(?:please )?remember(?: that)?:?\s+([\s\S]*\S)/i;
const UNWISH = /^\s*(?:please )?forget(?: that)?:?\s+([\s\S]*\S)/i;
const QUESTION =
  /^\s*(?:(?:and|but|so|hey|hi|hello|ok|okay|please|well)\b[\s,:]*){0,3}(?:(?:can|could|will|would) you )?(?:(?:please )?(?:tell|remind) me\b|what\b|who(?:m|se)?\b|when\b|where\b|which\b|why\b|how\b|(?:is|are|am|was|were|do|does|did|have|has|had)\b.{0,400}\?|remember\b.{0,400}\?)/i;

/** Rule 7. The words equal the words that the agent would learn from the message, so the memory after the turn is the same. */
export function remember({ text, memories, offers }: View): OfflineAnswer | undefined {
  if (!offers("remember") || text.trimEnd().endsWith("?")) return undefined;
  const [, wish] = WISH.exec(text) ?? [];
  if (wish === undefined || namesSecret(wish.slice(0, MAX_WISH))) return undefined;
  const content = keptWish(shorten(wish, MAX_WISH));
  if (memories.some((memory) => memory.content === content))
    return labelled(`I remember that already: "${shorten(content, MAX_QUOTE)}"`);
  return call("remember", { content });
}

/** The reverse of rule 7. The memory is the same that these words would create. */
export function forget({ text, memories, offers }: View): OfflineAnswer | undefined {
  if (!offers("forget") || text.trimEnd().endsWith("?")) return undefined;
  const [, wish] = UNWISH.exec(text) ?? [];
  if (wish === undefined) return undefined;
  const content = keptWish(shorten(wish, MAX_WISH));
  const memory = memories.find((one) => one.content === content);
  return memory === undefined
    ? labelled(`I do not remember this: "${shorten(content, MAX_QUOTE)}"`)
    : call("forget", { id: memory.id });
}

/** Rule 15. */
export function answerFromMemory({ text, memories }: View): OfflineAnswer | undefined {
  if (memories.length === 0 || !QUESTION.test(text.slice(0, MAX_READ))) return undefined;
  const quotes = memories.slice(0, MAX_QUOTED).map(({ content }) => `"${shorten(content, MAX_QUOTE)}"`);
  return labelled(`I remember: ${quotes.join(", ")}`);
}
