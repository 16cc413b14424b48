/**
 * Titles of conversations. Pure.
 *
 * TITLE-3  The title of a fork is "Fork of", and the title of its original.
 * TITLE-4  The first message gives a title to a listed conversation without a title: its beginning on one line, at most
 *          `MAX_AUTOMATIC_TITLE` characters, without control characters. The title is in the commit of the message, so it delays no answer.
 *          A later message changes nothing, and a title of a person stays. A person may decide for no title, also before the first message.
 *          Conversations of `/v1` and of calls get no title.
 * TITLE-5  A policy that returns `none` or throws gives no titles. A policy may decide for each tenant and project.
 */
import { MAX_MODEL_TITLE } from "../../../model/title-request.ts";
import { isBlank, plainText } from "../../../shared/content.ts";
import { cut, shorten } from "../../../shared/text.ts";
import type { AgentDecision, PlanInput } from "./decisions.ts";
import type { UserMessage } from "./signals.ts";
import type { ConversationState } from "./state.ts";

/** Maximum length of a title, in UTF-16 units. */
const MAX_TITLE_LENGTH = 200;
/** Maximum length of an automatic title, in UTF-16 units. */
export const MAX_AUTOMATIC_TITLE = 80;
const FORK = "Fork of ";
/** The part of a reply that may have a title, in UTF-16 units. It bounds the time of `AROUND`. */
const MAX_READ = 1_000;
/** The thoughts of a model before its reply. Some templates of models have the opening mark, so the reply has only the closing mark. */
const THOUGHTS = /^(?:\s*<(think|thinking)>.*?(?:<\/\1>|$))+|^.*?<\/think(?:ing)?>(?=\s*\n)/su;
/** A link or an image with its text. */
const LINK = /(?<![\p{L}\p{N}_])!?\[([^[\]]*)\]\((?:[^()]|\([^()]*\))*\)/gu;
/** Words in marks of emphasis. Marks within words and between numbers stay. */
const EMPHASIS = [
  /(?<![\p{L}\p{N}])\*(?=\S)([^*]+)(?<=\S)\*(?![\p{L}\p{N}])/gu,
  /(?<![\p{L}\p{N}])_(?=\S)([^_]+)(?<=\S)_(?![\p{L}\p{N}])/gu,
];
/** Markdown and quotes around a title. The time of a match grows with the square of the text. */
const AROUND = /^[\s#>*_~•"“”„«»‘’'「」『』-]+|(?:[\s*_~"“”„«»‘’'「」『』]|(?<!\.)\.(?!\.))+$/gu;

/** A letter, digit or symbol that is no filler and no empty braille pattern. */
const VISIBLE = /(?![\p{Default_Ignorable_Code_Point}\u2800])[\p{L}\p{N}\p{S}]/u;

export function forkTitle(title: string | null): string | null {
  return title === null ? null : shorten(FORK + title, MAX_TITLE_LENGTH);
}

/** Returns the beginning of a text as a title, cut between words; `null` for a text without visible characters. */
export function titleOf(text: string): string | null {
  const line = oneLine(text);
  return isBlank(line) ? null : beginningOf(line, MAX_AUTOMATIC_TITLE);
}

/** Returns the title in the reply of a model (TITLE-8); `null` for a reply without a title. */
export function modelTitle(reply: string): string | null {
  const lines = cut(reply.replace(THOUGHTS, ""), MAX_READ).split(/[\n\r\u2028\u2029]/u);
  const titles = lines.map((line) => beginningOf(plainLine(line), MAX_MODEL_TITLE));
  return titles.find((title) => VISIBLE.test(title)) ?? null;
}

/** Returns a line without its Markdown, and without the label and the quotes around a title. */
function plainLine(line: string): string {
  const marked = oneLine(line)
    .replaceAll(LINK, "$1")
    .replaceAll(/[*_`~]{2,}|`/gu, "");
  return EMPHASIS.reduce((text, marks) => text.replaceAll(marks, "$1"), marked)
    .replaceAll(AROUND, "")
    .replace(/^title\s*:/iu, "")
    .replaceAll(AROUND, "")
    .replace(/(?<!\.)\.$/u, "");
}

/** Returns a line with at most `limit` units, cut between words. */
function beginningOf(line: string, limit: number): string {
  if (line.length <= limit) return line;
  const begun = shorten(line, limit).slice(0, -1);
  const space = begun.lastIndexOf(" ");
  return `${(space > limit / 2 ? begun.slice(0, space) : begun).trimEnd()}…`;
}

/** Returns the decision that a message gives a title to its conversation (TITLE-4). */
export function planTitle(
  { record, turns }: ConversationState,
  { caller, data }: UserMessage,
  input: PlanInput,
): AgentDecision[] {
  const { title: given, automaticTitle = true, listed } = record;
  if (turns > 0 || given !== null || !automaticTitle || listed === false) return [];
  if (input.isTitled?.(record) !== true) return [];
  const title = titleOf(plainText(data.content));
  return title === null ? [] : [{ type: "SET_TITLE", title, by: caller, automatic: true }];
}

/** Reports whether a title, or the title of its original, is the beginning of a text, or a part of it. */
export function isFrom(title: string, text: string): boolean {
  const plain = (value: string) => oneLine(value).replace(/…$/, "").trim().toLowerCase().replaceAll("ς", "σ");
  let own = title;
  while (own.startsWith(FORK)) own = own.slice(FORK.length);
  return [title, own].some((one) => plain(one) !== "" && plain(text).includes(plain(one)));
}

/** Returns a text on one line. Control characters and characters that change the direction of text count as spaces. */
function oneLine(text: string): string {
  return text.replaceAll(/[\s\p{Cc}\u202a-\u202e\u2066-\u2069]+/gu, " ").trim();
}
