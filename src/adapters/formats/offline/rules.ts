/**
 * The rules of the offline model in the order of `docs/offline-model.md`; the first that has an answer gives it.
 *
 * OFFLINE-1  Equal requests get equal replies.
 * OFFLINE-2  Where tools may not be called, none is.
 * OFFLINE-3  Every text says that it comes from the offline model, except those of `!say` and `!slow`, and data.
 */
import type { OfflineReply } from "./answer.ts";
import { say, slow, toolCommands } from "./commands.ts";
import { instanceOf } from "./instance.ts";
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

type Rule = (view: View) => OfflineReply | undefined;

/** What the user commands is done to the letter. */
const COMMANDS: readonly Rule[] = [toolCommands, say, slow];

const RULES: readonly Rule[] = [
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

export function answerTo(view: View): OfflineReply {
  return first(COMMANDS, view) ?? demanded(first(RULES, view) ?? explain(view), view);
}

function first(rules: readonly Rule[], view: View): OfflineReply | undefined {
  for (const rule of rules) {
    const answer = rule(view);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** An answer in the form that the request demands: a call where one must be made, data where data is wanted. */
function demanded(answer: OfflineReply, { forced, output }: View): OfflineReply {
  if (forced !== undefined && !calls(answer, forced.tool)) {
    return {
      kind: "calls",
      calls: [{ tool: forced.tool, input: JSON.stringify(instanceOf(forced.schema)) }],
    };
  }
  if (output === undefined || answer.kind === "calls") return answer;
  return { kind: "text", text: JSON.stringify(instanceOf(output)) };
}

function calls(answer: OfflineReply, tool: string): boolean {
  return answer.kind === "calls" && answer.calls.some((call) => call.tool === tool);
}
