/** Rule 18: greetings and questions about the agent, answered from its persona, its tools and its colleagues. */
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { cut, shorten } from "../../../shared/text.ts";
import { labelled, type OfflineAnswer } from "./answer.ts";
import { exampleOf } from "./example.ts";
import type { View } from "./view.ts";

const MAX_READ = 200;
const MAX_ABOUT = 300;
const MAX_TOOLS = 10;

const GREETING =
  /^\s*(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day))(?:\s+(?:there|all|everyone|you))?[\s!.,]*$/i;
const ABILITIES =
  /\b(?:what (?:can|could|do) you do|who are you|what are you|how (?:can|could) you help|what tools do you have)\b|^\s*help(?: me)?[\s!?.]*$/i;
const ABOUT_TOOL = /\bwhat does (?:the )?["'`]?([\w -]{1,60}?)["'`]? do\b/i;

/** Examples of messages for the tools that the rules know. */
const KNOWN: Readonly<Record<string, string>> = {
  calculator: "What is 12 * 34?",
  dates: "What day is today?",
  remember: "Remember that my cat is called Miso.",
  notes: "Make a note: the key is under the mat.",
  search_docs: "How do I add a tool?",
};

export function introduce(view: View): OfflineAnswer | undefined {
  const text = cut(view.text, MAX_READ);
  const asked = ABOUT_TOOL.exec(text)?.[1]?.trim().toLowerCase();
  const tool = view.tools.find(({ name }) => wordsOf(name) === asked || name.toLowerCase() === asked);
  if (tool !== undefined) return labelled(`${about(tool)} Try "${trialOf(tool)}".`);
  if (GREETING.test(text)) return labelled(`hello. ${whoIs(view)} ${abilities(view)}`);
  return ABILITIES.test(text) ? labelled(`${whoIs(view)} ${abilities(view)}`) : undefined;
}

/** Turns the first sentence of the persona around: "You are a guide." is "I am a guide." */
function whoIs({ persona }: View): string {
  const [sentence = ""] = /^.*?[.!?](?=\s|$)|^.*$/s.exec(persona.trim()) ?? [];
  const [, is] = /^you are\s+(\S[\s\S]*?)[.!?]?$/i.exec(sentence.replace(/\s+/g, " ")) ?? [];
  return is === undefined ? "I am an agent of this server." : `I am ${shorten(is, MAX_ABOUT)}.`;
}

function abilities({ tools, colleagues, mayCallTools }: View): string {
  const names = colleagues.map(({ name }) => `the ${name}`);
  const asks =
    names.length === 0 ? "" : ` I can ask ${joined(names)}: try "Ask ${names[0]} about a login page".`;
  const own = tools.filter(({ name }) => !colleagues.some(({ tool }) => tool === name)).slice(0, MAX_TOOLS);
  const lines = mayCallTools ? own.map((tool) => `- ${about(tool)} Try \`${trialOf(tool)}\``) : [];
  const using = lines.length === 0 ? "" : `\n\nI can use:\n\n${lines.join("\n")}`;
  return `No language model is connected, so I follow fixed rules.${asks}${using}`;
}

function about({ name, description }: View["tools"][number]): string {
  const [sentence = ""] = /^.*?[.!?](?=\s|$)|^.*$/s.exec(description.trim()) ?? [];
  const text = shorten(sentence.replace(/\s+/g, " "), MAX_ABOUT);
  return text === "" ? `${name}.` : `${name}: ${/[.!?…]$/.test(text) ? text : `${text}.`}`;
}

/** Returns a message that calls the tool. A tool of the application is called by a command. */
function trialOf({ name, inputSchema }: View["tools"][number]): string {
  return (
    (Object.hasOwn(KNOWN, name) ? KNOWN[name] : undefined) ??
    `!tool ${name} ${JSON.stringify(inputOf(inputSchema))}`
  );
}

function inputOf(schema: JsonObject): Json {
  return isJsonObject(schema.properties) ? exampleOf(schema) : {};
}

function joined(names: readonly string[]): string {
  const last = names.at(-1) ?? "";
  return names.length < 2 ? last : `${names.slice(0, -1).join(", ")} and ${last}`;
}

function wordsOf(name: string): string {
  return name.replace(/[_-]+/g, " ").toLowerCase();
}
