/**
 * The rules of the offline model in the order of `docs/offline-model.md`. The first rule with an answer gives it.
 *
 * OFFLINE-1  Equal requests get equal replies.
 * OFFLINE-2  If tools are disallowed, the model calls no tool.
 * OFFLINE-3  Every text is labelled `Offline model:`, except the texts of `!say` and `!slow`, titles, and data.
 * OFFLINE-4  Equal schemas give equal values. A value fits its schema if such a value is found. Otherwise the
 *            answer is the first value that was made, or `{}`.
 */
import { TITLE_INSTRUCTION, titledMessage } from "../../../model/title-request.ts";
import { call, type OfflineAnswer } from "./answer.ts";
import { say, slow, toolCommands } from "./commands.ts";
import { delegate, putTogether } from "./delegation.ts";
import { exampleOf } from "./example.ts";
import { introduce } from "./introduction.ts";
import { answerFromMemory, forget, remember } from "./memories.ts";
import { repairFunction } from "./repair.ts";
import { quoteNotice, quoteResults } from "./results.ts";
import { answerInRole, listFindings } from "./roles.ts";
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

type Rule = (view: View) => OfflineAnswer | undefined;

/** The orders of the platform and the user's commands are followed to the letter. */
const COMMANDS: readonly Rule[] = [writeTitle, toolCommands, say, slow];

const RULES: readonly Rule[] = [
  putTogether,
  quoteNotice,
  listFindings,
  repairFunction,
  quoteResults,
  remember,
  forget,
  addNote,
  listNotes,
  tellName,
  tellHistory,
  searchDocs,
  askCalendar,
  calculate,
  answerFromMemory,
  delegate,
  answerInRole,
  introduce,
];

export function answerTo(view: View): OfflineAnswer {
  return first(COMMANDS, view) ?? demanded(first(RULES, view) ?? explain(view), view);
}

function first(rules: readonly Rule[], view: View): OfflineAnswer | undefined {
  for (const rule of rules) {
    const answer = rule(view);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** Converts an answer to the requested form: a call if a call is required, data if data is requested. */
function demanded(answer: OfflineAnswer, { forced, output }: View): OfflineAnswer {
  const called = answer.kind === "calls" ? answer.calls.map(({ tool }) => tool) : [];
  if (forced !== undefined && !called.includes(forced.tool))
    return call(forced.tool, exampleOf(forced.schema));
  if (output === undefined || answer.kind === "calls") return answer;
  return { kind: "text", text: JSON.stringify(exampleOf(output)) };
}

const GREETING = /^(?:hello|hi|hey|good (?:morning|evening))\b[^.!?\n]{0,20}?[,.!]+\s*|^!\w+\s+|^please\s+/iu;

function writeTitle({ persona, text }: View): OfflineAnswer | undefined {
  if (persona !== TITLE_INSTRUCTION) return undefined;
  const message = titledMessage(text)?.trim().replace(GREETING, "");
  if (message === undefined) return undefined;
  const [sentence = ""] = message.split(/(?<=[.!?])\s|\n/u);
  return { kind: "text", text: `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}` };
}
