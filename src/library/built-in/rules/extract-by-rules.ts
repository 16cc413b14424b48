/**
 * The extractor for the offline model: fixed patterns of English. Pure.
 *
 * LEARN-13  Equal turns give equal operations.
 * LEARN-14  A statement updates an offered memory that it contradicts, unless the memory is read-only. Attributes with a single value have a key,
 *           so that the store finds contradictions among all memories of the user. A statement that equals an offered memory is written again. The
 *           store then only adds the source.
 * LEARN-15  The extractor reads only the user's words. It ignores the agent's claims about itself and about the user.
 */
import type { MemoryOperation } from "../../../protocol/memory.ts";
import { spaced } from "../../../shared/named-times.ts";
import { cut } from "../../../shared/text.ts";
import { toIso } from "../../../shared/time.ts";
import { dayIn } from "../../memory/local-time.ts";
import { foldedText, type LearnedTurn, namesSecret } from "../../memory/turn.ts";
import { clausesOf, sentencesOf, withoutOpening } from "./sentences.ts";
import { keptStatement, type Statement, statementOf } from "./statements.ts";

/** Maximum characters of a key. */
const MAX_KEY = 200;
/** Maximum number of memories of one turn. */
const MAX_OPERATIONS = 20;

/** "Remember that …". Such wishes are stored even if they contain negations. */
const REMEMBER =
  /^(?:(?:can|could|will|would) you )?(?:please )?(?:remember|do ?n['’]?t forget|never forget|keep in mind|make a note|take a note|note)(?: that|:| -)\s*(.{2,300})$/i;
const DECISION =
  /^(?:we(?:['’]ve| have)?|i(?:['’]ve| have)?)(?: finally| now| just)? (?:decided|agreed)(?: on)?:? (.{3,240})$/i;

/** A statement of a turn, with the time of its event. */
interface Found extends Statement {
  time?: number;
}

export function extractByRules(turn: LearnedTurn): MemoryOperation[] {
  const found = new Map<string, Found>();
  for (const statement of statementsIn(turn)) {
    if (namesSecret(statement.content)) continue;
    // If statements of one message contradict each other, keep the last statement.
    const name = statement.about ?? foldedText(statement.content);
    found.delete(name);
    found.set(name, statement);
  }
  return [...found.values()].slice(-MAX_OPERATIONS).map((statement) => operationOf(statement, turn));
}

function statementsIn(turn: LearnedTurn): Found[] {
  return [...wishes(turn), ...clausesOf(turn.message).flatMap((clause) => stated(clause, turn))];
}

/** Returns the stored sentence of a wish, without its time. `wish` is the text after "remember that". */
export function keptWish(wish: string): string {
  return statementsOfWish(wish, { time: 0, zone: "UTC" })
    .map(({ content }) => content)
    .join(" ");
}

function wishes(turn: LearnedTurn): Found[] {
  return sentencesOf(turn.message).flatMap((sentence) => {
    if (sentence.endsWith("?")) return [];
    const [, wish] = REMEMBER.exec(withoutOpening(sentence)) ?? [];
    return wish === undefined ? [] : statementsOfWish(wish, turn);
  });
}

type Moment = Pick<LearnedTurn, "time" | "zone">;

function statementsOfWish(wish: string, moment: Moment): Found[] {
  const whole = wish.replace(/[.!\s]+$/, "");
  // If the whole wish is a known statement, store it in the form of that statement.
  const [clause] = clausesOf(wish);
  const own = clause !== undefined && clause === withoutOpening(whole) ? stated(clause, moment) : [];
  if (own.length > 0) return own.map((each) => ({ ...each, significance: Math.max(each.significance, 0.8) }));
  const content = `The user asked to remember: ${whole}.`;
  return [{ content, type: "note", significance: 0.8 }];
}

function stated(text: string, { time: now, zone }: Moment): Found[] {
  const clause = spaced(text);
  const named = dayIn(clause, now, zone);
  const past = named !== undefined && named.time <= now ? named : undefined;
  const timeless = past === undefined ? clause : withoutWords(clause, past.words);
  const [, decision] = DECISION.exec(timeless) ?? [];
  const statement =
    decision === undefined
      ? statementOf(timeless)
      : { content: `It was decided ${decision}.`, type: "decision", significance: 0.7 };
  if (statement === undefined) return [];
  return [past === undefined ? statement : { ...statement, time: past.time }];
}

/** Returns a clause without the words that name a time, and the preposition before them. */
function withoutWords(clause: string, words: string): string {
  const at = clause.indexOf(words);
  const before = clause.slice(0, at).replace(/\b(?:on|in|at|since)\s*$/i, "");
  const rest = `${before} ${clause.slice(at + words.length)}`;
  return rest.replace(/\s+/g, " ").replace(/^[\s,]+|[\s,]+$/g, "");
}

function operationOf(
  { content, type, significance, about, time }: Found,
  turn: LearnedTurn,
): MemoryOperation {
  const at = toIso(time ?? turn.time);
  const fields = { content, type, significance, time: at, validFrom: at };
  const isSame = (kept: string) => foldedText(kept) === foldedText(content);
  if (about === undefined) return { op: "write", ...fields };
  // With the key, the store finds a contradicted memory even if the turn did not offer it.
  const keyed: MemoryOperation = { op: "write", ...fields, key: cut(`about ${about}`, MAX_KEY).trim() };
  if (turn.memories.some((memory) => isSame(memory.content))) return keyed;
  const contradicted = turn.memories
    .filter(({ readOnly }) => readOnly !== true)
    .find((memory) => keptStatement(memory.content)?.about === about);
  return contradicted === undefined ? keyed : { op: "update", memoryId: contradicted.id, ...fields };
}
