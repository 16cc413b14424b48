/** Rules 8 to 14 and 19: sentences that the offline model understands, and its answer to all others. */
import { cut, shorten } from "../../../shared/text.ts";
import { call, labelled, type OfflineAnswer } from "./answer.ts";
import { computed, findExpression } from "./arithmetic.ts";
import type { View } from "./view.ts";

const MAX_QUOTE = 300;
const MAX_SUGGESTIONS = 8;
/** Only the beginning of a message is searched for a sentence. */
const MAX_READ = 2_000;

/** Rule 8. */
export function addNote({ text, offers }: View): OfflineAnswer | undefined {
  if (!offers("notes") || text.trimEnd().endsWith("?")) return undefined;
  const pattern = /^(?:please )?(?:remember|note|make a note|write down)(?: that)?:?\s+(\S[\s\S]*)/i;
  const [, note] = pattern.exec(text.trim()) ?? [];
  return note === undefined ? undefined : call("notes", { action: "add", text: note });
}

/** Rule 9. */
export function listNotes({ text, offers }: View): OfflineAnswer | undefined {
  const pattern = /\b(?:what are|show|list|read)(?: me)?(?: all)? my notes\b|^\s*recall\b/i;
  return offers("notes") && pattern.test(read(text)) ? call("notes", { action: "list" }) : undefined;
}

/** Rule 10. A name that only memories contain is left to rule 15. */
export function tellName({ text, earlier, memories }: View): OfflineAnswer | undefined {
  if (/\bwhat(?:'s|’s| is| was) my name\b|\b(?:know|remember) my name\b|\bwho am I\b/i.test(read(text))) {
    const name = earlier.map(nameIn).findLast((found) => found !== undefined);
    if (name === undefined && memories.length > 0) return undefined;
    return labelled(
      name === undefined
        ? "I do not know your name: it is not in the part of this conversation that I see."
        : `your name is ${name}. You told me so earlier in this conversation.`,
    );
  }
  const name = nameIn(text);
  return name === undefined ? undefined : labelled(`hello ${name}. Ask me later: "What is my name?"`);
}

/** Rule 11. */
export function tellHistory({ text, earlier }: View): OfflineAnswer | undefined {
  const pattern = /\bwhat (?:did|have) I (?:just )?(?:say|said|write|written|ask|asked|tell|told)\b/i;
  if (!pattern.test(read(text))) return undefined;
  const quotes = earlier.slice(-3).map((message) => `"${shorten(message, MAX_QUOTE)}"`);
  return labelled(
    quotes.length === 0 ? "this is your first message that I see." : `you said ${quotes.join(", then ")}.`,
  );
}

/** Rule 12. */
export function searchDocs({ text, offers }: View): OfflineAnswer | undefined {
  if (!offers("search_docs")) return undefined;
  const pattern =
    /\b(?:search (?:the )?(?:docs|documentation) for|how (?:do|can|would|could|should) (?:I|you|we|one))\s+(\S.*)/i;
  const [, found = ""] = pattern.exec(read(text)) ?? [];
  const query = cut(found.replace(/[\s?!.]+$/, ""), MAX_QUOTE);
  return query === "" ? undefined : call("search_docs", { query });
}

/** Rule 13. */
export function askCalendar({ text, offers }: View): OfflineAnswer | undefined {
  const question = offers("dates") ? readDateQuestion(read(text)) : undefined;
  return question && call("dates", question);
}

/** Rule 14. Without the calculator, only a message that is a question or the expression itself is a calculation. */
export function calculate({ text, offers, isCalled }: View): OfflineAnswer | undefined {
  const expression = findExpression(read(text));
  if (expression === undefined) return undefined;
  if (offers("calculator")) return call("calculator", { expression });
  const isAsked =
    /^\s*(?:what(?:'s|’s| is)|how much is|calculate|compute)\b/i.test(text) || text.trim() === expression;
  const value = isAsked && !isCalled ? computed(expression) : undefined;
  return value === undefined ? undefined : labelled(`${expression} is ${value}.`);
}

/** Messages that rule 19 suggests, with the tool that they need. */
const SUGGESTIONS: readonly [message: string, tool?: string][] = [
  ["What is 12 * 34?", "calculator"],
  ["What day is today?", "dates"],
  ["Remember that my cat is called Miso.", "remember"],
  ["Make a note: the key is under the mat.", "notes"],
  ["How do I add a tool?", "search_docs"],
  ["My name is Ada."],
  ["What did I say?"],
  ["!say hello"],
];

/** Rule 19. */
export function explain({ text, offers, colleagues, isCalled }: View): OfflineAnswer {
  const asks = isCalled ? [] : requestsFor(colleagues);
  const suggested = SUGGESTIONS.filter(([, tool]) => tool === undefined || offers(tool));
  const tries = [...asks, ...suggested.map(([message]) => message)]
    .slice(0, MAX_SUGGESTIONS)
    .map((message) => `"${message}"`)
    .join(", ");
  return labelled(
    `you wrote "${shorten(text, MAX_QUOTE)}". No language model is connected, so I follow fixed rules. ` +
      `Try ${tries}. To connect a real model, set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY.`,
  );
}

/** Messages that rule 16 understands. */
function requestsFor(colleagues: View["colleagues"]): string[] {
  const names = colleagues.map(({ name }) => `the ${name}`);
  const [first, second] = names;
  if (first === undefined) return [];
  return [
    ...(names.includes("the developer") ? ["Build me a login page"] : []),
    `Ask ${second === undefined ? first : `${first} and ${second}`} about a login page`,
    `Bring ${second ?? first} into this conversation`,
  ];
}

function read(text: string): string {
  return cut(text, MAX_READ);
}

/** The name in "my name is …": one word, and up to three capitalised words behind it, to the end of the sentence. */
function nameIn(text: string): string | undefined {
  const [, rest = ""] = /\bmy name is\s+(\S.*)/i.exec(read(text)) ?? [];
  const [name] = /^\p{L}[\p{L}\p{M}'’.-]*(?:(?<!\.)\s+\p{Lu}[\p{L}\p{M}'’.-]*){0,3}/u.exec(rest) ?? [];
  return name?.replace(/[.'’-]+(?=\s|$)/gu, "");
}

const DATE = /\b\d{4}-\d{2}-\d{2}\b/g;
const CALENDAR =
  /\b(?:today|tomorrow|yesterday|weekday|(?:what|which) (?:day|date)|(?:the|current) date|(?:in )?\d{1,5} (?:day|week|month|year)s? (?:ago|from now|from today|later)|in \d{1,5} (?:day|week|month|year)s?|days? (?:until|till|since|between))\b/i;
const SPAN = /\b(\d{1,5}) (day|week|month|year)s?\b( ago)?/i;

/** Returns `undefined` for a sentence without a question about dates. */
function readDateQuestion(sentence: string): Record<string, unknown> | undefined {
  const [date, until] = sentence.match(DATE) ?? [];
  const has = (words: RegExp) => words.test(sentence);
  if (date === undefined && !has(CALENDAR)) return undefined;
  if (date !== undefined) {
    if (until !== undefined) return { action: "difference", date, until };
    if (has(/\b(?:until|till)\b/i)) return { action: "difference", until: date };
    if (has(/\bsince\b/i)) return { action: "difference", date };
  }
  const from = date === undefined ? {} : { date };
  const [, amount, unit = "", isPast] = SPAN.exec(sentence) ?? [];
  if (amount !== undefined) {
    const signed = isPast === undefined ? Number(amount) : -Number(amount);
    return { action: "add", ...from, [`${unit.toLowerCase()}s`]: signed };
  }
  if (date !== undefined) return { action: "weekday", date };
  if (has(/\btomorrow\b/i)) return { action: "add", days: 1 };
  return has(/\byesterday\b/i) ? { action: "add", days: -1 } : { action: "today" };
}
