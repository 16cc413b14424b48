/** Rules 7 to 14: sentences that the offline model understands, and what it says to all others. */
import { shorten } from "../../../shared/text.ts";
import { call, labelled, type OfflineReply } from "./answer.ts";
import { findExpression } from "./arithmetic.ts";
import { readDateQuestion } from "./dates.ts";
import type { View } from "./view.ts";

const MAX_QUOTE = 300;
/** Only the beginning of a message is searched for a sentence. */
const MAX_READ = 2_000;

/** Rule 7. */
export function addNote({ text, offers }: View): OfflineReply | undefined {
  if (!offers("notes") || text.trimEnd().endsWith("?")) return undefined;
  const pattern = /^\s*(?:please )?(?:remember|note|make a note|write down)(?: that)?:?\s+([\s\S]*\S)/i;
  const [, note] = pattern.exec(text) ?? [];
  return note === undefined ? undefined : call("notes", { action: "add", text: note });
}

/** Rule 8. */
export function listNotes({ text, offers }: View): OfflineReply | undefined {
  const asks = /\b(?:what are|show|list|read)(?: me)?(?: all)? my notes\b|^\s*recall\b/i.test(read(text));
  return asks && offers("notes") ? call("notes", { action: "list" }) : undefined;
}

/** Rule 9. */
export function tellName({ text, earlier }: View): OfflineReply | undefined {
  if (/\bwhat(?:'s|’s| is| was) my name\b|\b(?:know|remember) my name\b|\bwho am I\b/i.test(read(text))) {
    const name = earlier.map(nameIn).findLast((found) => found !== undefined);
    return labelled(
      name === undefined
        ? "I do not know your name: nothing in the part of this conversation that I see tells it."
        : `your name is ${name}. You told me so earlier in this conversation.`,
    );
  }
  const name = nameIn(text);
  return name === undefined ? undefined : labelled(`hello ${name}. Ask me later: "What is my name?"`);
}

/** Rule 10. */
export function tellHistory({ text, earlier }: View): OfflineReply | undefined {
  if (!/\bwhat (?:did|have) I (?:just )?(?:say|said|write|written|ask|asked|tell|told)\b/i.test(read(text))) {
    return undefined;
  }
  const said = earlier.slice(-3).map((message) => `"${shorten(message, MAX_QUOTE)}"`);
  return labelled(
    said.length === 0 ? "this is your first message that I see." : `you said ${said.join(", then ")}.`,
  );
}

/** Rule 11. */
export function searchDocs({ text, offers }: View): OfflineReply | undefined {
  if (!offers("search_docs")) return undefined;
  const pattern =
    /\bsearch (?:the )?(?:docs|documentation) for\s+(\S.*)|\bhow (?:do|can|would|could|should) (?:I|you|we|one)\s+(\S.*)/i;
  const [, explicit, asked] = pattern.exec(read(text)) ?? [];
  const query = (explicit ?? asked ?? "")
    .replace(/[\s?!.]+$/, "")
    .slice(0, MAX_QUOTE)
    .toWellFormed();
  return query === "" ? undefined : call("search_docs", { query });
}

/** Rule 12. */
export function askCalendar({ text, offers }: View): OfflineReply | undefined {
  const question = offers("dates") ? readDateQuestion(read(text)) : undefined;
  return question === undefined ? undefined : call("dates", question);
}

/** Rule 13. */
export function calculate({ text, offers }: View): OfflineReply | undefined {
  const expression = offers("calculator") ? findExpression(read(text)) : undefined;
  return expression === undefined ? undefined : call("calculator", { expression });
}

/** Rule 14: whatever is left. */
export function explain({ text, offers }: View): OfflineReply {
  const tries = [
    ...(offers("calculator") ? ['"What is 12*(3+4)?"'] : []),
    ...(offers("dates") ? ['"What day is today?"'] : []),
    ...(offers("notes") ? ['"Remember that the key is under the mat."'] : []),
    ...(offers("search_docs") ? ['"How do I add a tool?"'] : []),
    '"My name is Ada."',
    '"What did I say?"',
    '"!say hello"',
  ];
  return labelled(
    `you wrote "${shorten(text, MAX_QUOTE)}". No language model is connected, so I follow fixed rules. ` +
      `Try ${tries.join(", ")}. Set DRAMATIS_MODEL to connect a real model.`,
  );
}

function read(text: string): string {
  return text.slice(0, MAX_READ);
}

/** The name in "my name is …": one word, and those that follow it with a capital letter, four at most. */
function nameIn(text: string): string | undefined {
  const [, rest] = /\bmy name is\s+(\S.*)/i.exec(read(text)) ?? [];
  const words = rest?.split(/\s+/).slice(0, 4) ?? [];
  const name: string[] = [];
  for (const word of words) {
    if (name.length > 0 && !/^\p{Lu}/u.test(word)) break;
    const [bare] = /^\p{L}[\p{L}\p{M}'’.-]*/u.exec(word) ?? [];
    if (bare === undefined) break;
    name.push(bare.replace(/[.'’-]+$/u, ""));
    if (bare.length < word.length || /[.]$/.test(bare)) break;
  }
  return name.length === 0 ? undefined : name.join(" ");
}
