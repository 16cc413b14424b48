/**
 * The rules of the offline model in the order of `docs/offline-model.md`; the first that has an answer gives it.
 *
 * OFFLINE-1  Equal requests get equal replies.
 * OFFLINE-2  Where tools may not be called, none is.
 * OFFLINE-3  Every text says that it comes from the offline model, except those of `!say` and `!slow`.
 */
import type { Answer } from "./answer.ts";
import { say, slow, toolCommands } from "./commands.ts";
import { quoteNotice, quoteResults } from "./results.ts";
import {
  addNote,
  askCalendar,
  calculate,
  explain,
  listNotes,
  searchDocs,
  tellHistory,
  tellName,
} from "./sentences.ts";
import type { View } from "./view.ts";

const RULES: readonly ((view: View) => Answer | undefined)[] = [
  toolCommands,
  say,
  slow,
  quoteNotice,
  quoteResults,
  addNote,
  listNotes,
  tellName,
  tellHistory,
  searchDocs,
  askCalendar,
  calculate,
];

export function answerTo(view: View): Answer {
  for (const rule of RULES) {
    const answer = rule(view);
    if (answer !== undefined) return answer;
  }
  return explain(view);
}
