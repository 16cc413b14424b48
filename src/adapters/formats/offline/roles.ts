/** Rule 17: the answer of an agent in its role, as its persona states it. */
import { parseJson } from "../../../shared/json.ts";
import { cut, shorten } from "../../../shared/text.ts";
import { membersOf, objects, stringOf } from "../common/json.ts";
import { call, labelled, type OfflineAnswer } from "./answer.ts";
import { isCommanded } from "./commands.ts";
import type { View } from "./view.ts";
import { PROSE, VERB_BEFORE } from "./work.ts";

const MAX_SUBJECT = 120;
const MAX_EXCERPT = 240;

/** Makes the answer of a role about a subject, which is quoted. */
type Answer = (subject: string) => string;

const ANSWERS: Readonly<Record<string, Answer>> = {
  architect: (subject) =>
    list(`My plan for ${subject}:`, "1.", [
      "Goal: one sentence that says who needs it, and how they see that it works.",
      "Parts: as few as possible, each with one task, so that each can be built and tested alone.",
      "Data: what is stored, where, and who may read it.",
      "Order: the riskiest part first; what the goal does not need, not at all.",
    ]),
  developer: (subject) =>
    [
      `I begin ${subject} with a test that fails:`,
      `\`\`\`ts\ntest("the simplest case works", () => {\n  expect(${functionName(subject)}("an example")).toBe("what the user expects");\n});\n\`\`\``,
      "Then I write the least code that passes it, and the next test.",
    ].join("\n\n"),
  reviewer: (subject) =>
    list(`What I check in ${subject}:`, "-", [
      "Does it do what was asked, and nothing else?",
      "What happens with empty, huge and hostile input?",
      "Does a test fail if the code is wrong?",
      "Does the next reader understand it without asking?",
    ]),
  researcher: (subject) =>
    list(`What I would find out about ${subject}:`, "1.", [
      "What is known, and who says so?",
      "What contradicts it?",
      "What remains unknown, and does that matter here?",
    ]),
};

const INTRODUCTIONS: Readonly<Record<string, string>> = {
  architect: "Tell me the goal, and I make the plan.",
  developer: "Tell me what to build, and I begin with a test.",
  reviewer: "Show me a plan or code, and I say what I check.",
  researcher: "Ask me a question, and I say what I would find out.",
};

const ROLE = new RegExp(
  String.raw`\byou are (?:an? |the |our )?(?:[\w-]+ ){0,2}(${Object.keys(ANSWERS).join("|")})\b`,
  "i",
);

/** Rule 17, after a researcher's search: lists the results. */
export function listFindings(view: View): OfflineAnswer | undefined {
  const { results, text } = view;
  if (roleOf(view) !== "researcher" || isCommanded(view)) return undefined;
  if (results.length === 0 || results.some(({ tool, failed }) => tool !== "search_docs" || failed))
    return undefined;
  const found = results.flatMap((result) => objects(membersOf(parseJson(result.text)).results));
  if (found.length === 0) return labelled(`the documentation has nothing about "${subjectOf(text)}".`);
  const items = found.map(({ heading, path, excerpt }) => {
    const words = stringOf(excerpt).replace(/\s+/g, " ").replaceAll("`", "");
    return `**${stringOf(heading)}** (${stringOf(path)}): ${shorten(words, MAX_EXCERPT)}`;
  });
  return labelled(list(`The documentation says about "${subjectOf(text)}":`, "-", items));
}

function roleOf({ persona }: View): string | undefined {
  return ROLE.exec(persona.slice(0, 500))?.[1]?.toLowerCase();
}

/** Rule 17. A researcher who can search the documentation does so first. */
export function answerInRole(view: View): OfflineAnswer | undefined {
  const { text, isCalled, offers, results } = view;
  const role = roleOf(view);
  const subject = subjectOf(text);
  const answer = role === undefined ? undefined : ANSWERS[role];
  if (role === undefined || answer === undefined)
    return isCalled
      ? labelled(`I was asked "${subject}". I have no better answer: no language model is connected.`)
      : undefined;
  if (GREETING.test(subject)) return labelled(`I am the ${role}. ${INTRODUCTIONS[role]}`);
  if (!isCalled && PROSE.test(subject)) return undefined;
  if (role === "researcher" && results.length === 0 && offers("search_docs"))
    return call("search_docs", { query: subject });
  return labelled(answer(`"${subject}"`));
}

/** Messages about the agent itself. */
const GREETING = /^(?:$|join us\b|hi\b|hello\b|who are you|what (?:can|do) you do)/i;

/** Returns a message as its first line, or as one line if it is JSON. */
function lineOf(text: string): string {
  const shown = cut(text, 2_000).trim();
  const json = /^[[{]/.test(shown) ? parseJson(text) : undefined;
  const [line = ""] = json === undefined ? shown.split("\n") : [JSON.stringify(json)];
  return line;
}

/** Returns the first line of a message without the name of its sender, courtesies and the verb of the work. */
function subjectOf(text: string): string {
  const subject = lineOf(text)
    .replace(/^(?:(?:please|can you|could you|would you)\s+)+/i, "")
    .replace(VERB_BEFORE, "")
    // A quote must not mention an agent.
    .replace(/@(?=\w)/g, "")
    .replace(/[\s.:!?]+$/, "");
  return shorten(subject, MAX_SUBJECT).toWellFormed();
}

function list(title: string, mark: string, items: readonly string[]): string {
  const lines = items.map((item, index) => `${mark === "1." ? `${index + 1}.` : mark} ${item}`);
  return `${title}\n\n${lines.join("\n")}`;
}

/** Returns the name of a function for a subject: "a login page" is `loginPage`. */
function functionName(subject: string): string {
  const words = (subject.toLowerCase().match(/[a-z]+/g) ?? []).filter(
    (word) => !/^(?:an?|the|some|that|which|function|program|class|module)$/.test(word),
  );
  const [first = "solve", ...others] = words.slice(0, 3);
  return first + others.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}
