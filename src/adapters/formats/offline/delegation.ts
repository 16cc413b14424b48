/**
 * Rule 16: an agent with colleagues delegates the work to them by tools, and combines their answers.
 *
 * OFFLINE-5  A called or mentioned agent never calls other agents. A message leads to at most one call of each colleague.
 */
import { parseJson } from "../../../shared/json.ts";
import { cut, shorten } from "../../../shared/text.ts";
import { membersOf } from "../common/json.ts";
import { labelled, type OfflineAnswer, unlabelled } from "./answer.ts";
import { isCommanded } from "./commands.ts";
import { outcomeOf } from "./results.ts";
import type { Colleague, SeenResult, View } from "./view.ts";
import { PROSE, VERB, VERB_BEFORE, workerOf } from "./work.ts";

/** Only the beginning of a message is searched for work. */
const MAX_READ = 2_000;
/** Length of an answer that is shown and passed to the next colleague. */
const MAX_ANSWER = 2_000;

interface Ask {
  colleague: Colleague;
  message: string;
  joins?: boolean;
}

/** Rule 16, before any result: makes the first calls. */
export function delegate(view: View): OfflineAnswer | undefined {
  if (!view.mayCallTools || !maySend(view)) return undefined;
  const [step] = stepsFor(view);
  return step && { kind: "calls", calls: step.map((ask) => callOf(ask)) };
}

/** Rule 16, after results: makes the next calls, or puts the answers together. */
export function putTogether(view: View): OfflineAnswer | undefined {
  const { results, outcomes, rounds, mayCallTools } = view;
  if (outcomes.length > 0 && areOfColleagues(outcomes, view)) return labelled(summary(outcomes, view));
  if (results.length === 0 || !areOfColleagues(results, view) || isCommanded(view)) return undefined;
  const step = maySend(view) ? stepsFor(view)[rounds] : undefined;
  const isWaiting = results.some((result) => outcomeOf(result).kind === "pending");
  if (step === undefined || !mayCallTools || isWaiting) return labelled(summary(results, view));
  const answers = results.flatMap((result) => {
    const outcome = outcomeOf(result);
    return outcome.kind === "answer" ? [`The ${nameOf(result, view)} says:\n${bare(outcome.text)}`] : [];
  });
  return { kind: "calls", calls: step.map((ask) => callOf(ask, answers)) };
}

function maySend({ isCalled, colleagues }: View): boolean {
  return !isCalled && colleagues.length > 0;
}

function callOf({ colleague, message, joins = false }: Ask, answers: readonly string[] = []) {
  const input = {
    message: [message, ...answers].join("\n\n"),
    ...(joins && colleague.hasModes ? { invocationMode: "loop_in" } : {}),
  };
  return { tool: colleague.tool, input: JSON.stringify(input) };
}

/** Returns the calls of each reply. Empty if the message asks for no work. */
function stepsFor({ text, colleagues }: View): Ask[][] {
  const named = namedIn(text, colleagues);
  return named.length > 0 ? named : workIn(text, colleagues);
}

const REQUEST =
  /@$|\b(?:ask|have|let|get|tell|call|consult|involve|want|need|like|bring|invite|add|loop in|check with|talk (?:to|with))\b/i;
const INVITATION = /\b(?:bring|invite|add|loop in|talk (?:to|with))\s+(?:in\s+)?(?:(?:the|our)\s+)?@?$/i;
const JOIN = "Join us, and say how you can help.";
/** Words between the part of one colleague and the name of the next. */
const CONNECTORS =
  /(?:[\s,;@]|(?<!\w)(?:and|then|also|ask|have|let|get|tell|call|consult|the|our|your)(?!\w))*$/i;
const OPENING =
  /^[\s,;:.!-]*(?:(?:in|into|to) (?:this|the|our) (?:conversation|chat|discussion)\b[\s,;:.!]*)?(?:(?:about|to|for|on|and|that)\s+)?/i;

/** Returns a call of each colleague whom the message names, with the words behind the name. "Then" begins another reply. */
function namedIn(text: string, colleagues: readonly Colleague[]): Ask[][] {
  const read = cut(text, MAX_READ);
  const mentions = colleagues
    .flatMap((colleague) => {
      const match = new RegExp(String.raw`(?<![\w-])${colleague.name}(?![\w-])`, "i").exec(read);
      return match === null ? [] : [{ colleague, from: match.index, to: match.index + match[0].length }];
    })
    .sort((one, other) => one.from - other.from);
  const [first] = mentions;
  if (first === undefined || !REQUEST.test(text.slice(0, first.from))) return [];
  const joins = INVITATION.test(text.slice(0, first.from));
  const parts = mentions.map(({ to }, index) => {
    const next = mentions[index + 1];
    return next === undefined
      ? textOf(text.slice(to))
      : textOf(text.slice(to, next.from).replace(CONNECTORS, ""));
  });
  const subject = (parts[0] ?? "").replace(VERB_BEFORE, "");
  const steps: Ask[][] = [];
  for (const [index, { colleague, from }] of mentions.entries()) {
    // "Ask the architect and the reviewer about X": the words behind the last name are for both.
    const part = parts.slice(index).find((one) => one !== "") ?? parts.findLast((one) => one !== "");
    const message =
      part?.replace(PRONOUN, `$1${subject.replaceAll("$", "$$$$")}`) ?? (joins ? JOIN : text.trim());
    const ask = { colleague, message, ...(joins ? { joins } : {}) };
    const before = index === 0 ? "" : text.slice(mentions[index - 1]?.to, from);
    if (index === 0 || /\bthen\b/i.test(CONNECTORS.exec(before)?.[0] ?? "")) steps.push([ask]);
    else steps.at(-1)?.push(ask);
  }
  return steps;
}

function textOf(part: string): string {
  return part.replace(OPENING, "").trim();
}

/** "Build it": refers to the first colleague's task. */
const PRONOUN = new RegExp(String.raw`^(${VERB}\s+)(?:it|this|that|them)(?=[.!?]?$)`, "i");
const REQUESTED = new RegExp(
  String.raw`^(?:@[\w-]+[,:]?\s+)?(?:please\s+|(?:can|could|would|will) you\s+|i (?:want|need) you to\s+|let['’]?s\s+)*` +
    String.raw`(${VERB}(?:(?:\s*,\s*(?:and\s+|then\s+)?|\s+and\s+(?:then\s+)?|\s+then\s+)${VERB})*)(?:\s+(?:me|us|about))?\s+(?=\S)`,
  "i",
);
const WISHED = /^(?:@[\w-]+[,:]?\s+)?(?:i|we)(?:['’]d like| need| want| would like)\s+(?=(?:an?|some)\s+\S)/i;

/**
 * Returns a step for each kind of work that the message begins with, in its order. "Build" alone means to plan, build and
 * review.
 */
function workIn(message: string, colleagues: readonly Colleague[]): Ask[][] {
  const text = message.trim();
  const read = cut(text, MAX_READ);
  const [beginning, verbs = ""] = REQUESTED.exec(read) ?? WISHED.exec(read) ?? [];
  if (beginning === undefined) return [];
  const object = text.slice(beginning.length);
  if (PROSE.test(object)) return [];
  const asked = [...verbs.matchAll(new RegExp(VERB, "gi"))].map(([verb]) => verb.toLowerCase());
  const [build = "build"] = asked;
  const all = asked.every((verb) => workerOf(verb) === "developer") ? ["plan", build, "review"] : asked;
  const steps = new Map<Colleague, Ask>();
  for (const verb of all) {
    const name = workerOf(verb);
    const colleague = colleagues.find((one) => one.name.split(" ").includes(name));
    if (colleague !== undefined && !steps.has(colleague))
      steps.set(colleague, { colleague, message: `${capital(verb)} ${object}` });
  }
  return [...steps.values()].map((ask) => [ask]);
}

function areOfColleagues(results: readonly SeenResult[], { colleagues }: View): boolean {
  return results.every(({ tool }) => colleagues.some((colleague) => colleague.tool === tool));
}

function nameOf({ tool }: SeenResult, { colleagues }: View): string {
  return colleagues.find((colleague) => colleague.tool === tool)?.name ?? tool;
}

/** Combines results under the names of their agents. */
function summary(results: readonly SeenResult[], view: View): string {
  const names = results.map((result) => `the ${nameOf(result, view)}`);
  const last = names.at(-1) ?? "";
  const all = names.length < 2 ? last : `${names.slice(0, -1).join(", ")} and ${last}`;
  if (results.every((result) => hasJoined(result)))
    return `${all} ${names.length < 2 ? "takes" : "take"} part in this conversation now.`;
  const sections = results.map((result) => section(capital(nameOf(result, view)), result));
  return `I asked ${all}.\n\n${sections.join("\n\n")}`;
}

function section(name: string, result: SeenResult): string {
  if (hasJoined(result)) return `**${name}** takes part in this conversation now, and answers here.`;
  const outcome = outcomeOf(result);
  switch (outcome.kind) {
    case "failed":
      return `**${name}** gave no answer: ${outcome.code ?? "it failed"}. ${outcome.text}`;
    case "pending":
      return `**${name}** is working on it. I will tell you the answer when it arrives.`;
    case "answer":
      return `**${name}**\n\n${bare(outcome.text)}`;
  }
}

function hasJoined({ text }: SeenResult): boolean {
  return typeof membersOf(parseJson(text)).joined === "string";
}

/** Returns an answer as it is quoted: without the label, and not too long. */
function bare(text: string): string {
  return shorten(capital(unlabelled(text)), MAX_ANSWER);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
