/** Display texts for values. Pure. */
import {
  type AgentSummary,
  type ApprovalView,
  type Budget,
  DramatisClientError,
} from "../../src/client/index.ts";

/** The code of the error of a turn, a run or a call that was stopped. It is no failure. */
export const STOP_CODE = "CANCELLED";

/** Reports whether the error of a step is a stop. The error of a model call is a category instead of a code. */
export function isStopped(error: string | undefined): boolean {
  return error === STOP_CODE || error === "canceled";
}

/** Returns the name of an agent: its persona's name, or its id in words. */
export function agentName({ id, name }: Pick<AgentSummary, "id" | "name">): string {
  return name ?? wordsOf(id);
}

/** The state of an agent that the code no longer declares. */
const PERSONA_MISSING = "Its persona no longer exists, so it takes no new conversations.";

/** Returns one line about an agent: its persona's description, the first sentence of its prompt, or its library. */
export function agentDescription({ description, persona, personaMissing }: AgentSummary): string {
  if (personaMissing) return PERSONA_MISSING;
  if (description !== undefined) return description;
  if ("identity" in persona) return firstSentence(persona.identity.systemPrompt);
  return `${persona.library}/${persona.id}`;
}

/** Converts an id such as `travel-guide` to "Travel guide". */
export function wordsOf(id: string): string {
  const words = id.replaceAll(/[-_]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Returns a number with its noun. */
export function count(n: number, one: string, many: string): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** Returns a title for a conversation: the first message on one line, cut between words. */
export function titleFrom(text: string, limit = 60): string {
  const line = text.trim().split(/\s+/).join(" ");
  if (line.length <= limit) return line;
  const cut = line.slice(0, limit);
  const space = cut.lastIndexOf(" ");
  return `${(space > limit / 2 ? cut.slice(0, space) : cut).trimEnd()}…`;
}

/** Returns the time of a moment today, and the date of any other. `locales` is the reader's by default. */
export function timeInList(iso: string, now: Date, locales?: string): string {
  const at = new Date(iso);
  if (at.toDateString() === now.toDateString())
    return at.toLocaleTimeString(locales, { hour: "2-digit", minute: "2-digit" });
  const year = at.getFullYear() === now.getFullYear() ? {} : { year: "numeric" as const };
  return at.toLocaleDateString(locales, { day: "numeric", month: "short", ...year });
}

/** Returns a time with its date, if it is not today, and with its year, if it is not this year. `locales` is the reader's by default. */
export function momentOf(iso: string, now: Date, locales?: string): string {
  const at = new Date(iso);
  const time = { hour: "2-digit", minute: "2-digit" } as const;
  if (at.toDateString() === now.toDateString()) return at.toLocaleTimeString(locales, time);
  const year = at.getFullYear() === now.getFullYear() ? {} : { year: "numeric" as const };
  return at.toLocaleString(locales, { day: "numeric", month: "short", ...year, ...time });
}

/** Returns the time since a moment, such as "now", "5 min", "3 h" or "2 d". */
export function ageText(iso: string, now: Date): string {
  const minutes = Math.floor((now.getTime() - Date.parse(iso)) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  return minutes < 1_440 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} d`;
}

/**
 * Returns a tool's progress report as text. If the report has `percent`, from 0 to 100, or `done` and `total`, it also returns a
 * fraction of 1.
 */
export function progressOf(progress: unknown): { text: string; fraction?: number } {
  if (typeof progress !== "object" || progress === null) return { text: previewOf(progress ?? undefined) };
  const { percent, done, total, ...others } = progress as Record<string, unknown>;
  const rest = previewOf(others);
  const withRest = (text: string) => (rest === "" ? text : `${text} · ${rest}`);
  if (typeof percent === "number")
    return { text: withRest(`${Math.round(percent)} %`), fraction: clamped(percent / 100) };
  if (typeof done === "number" && typeof total === "number" && total > 0)
    return { text: withRest(`${done} of ${total}`), fraction: clamped(done / total) };
  return { text: previewOf(progress) };
}

function clamped(fraction: number): number {
  return Math.min(1, Math.max(0, fraction));
}

/** Returns the outcome of a request for approval, such as "Approved by ada, 14:02"; `undefined` while it waits. */
export function approvalText(
  { outcome, by, reason, at }: ApprovalView,
  now: Date,
  locales?: string,
): string | undefined {
  if (outcome === undefined) return undefined;
  const who = by?.type === "user" ? ` by ${by.userId}` : "";
  const when = at === undefined ? "" : `, ${momentOf(at, now, locales)}`;
  const why = reason === undefined ? "" : `: “${exactJson(reason)}”`;
  return `${OUTCOMES[outcome]}${who}${when}${why}`;
}

const OUTCOMES: Record<NonNullable<ApprovalView["outcome"]>, string> = {
  approved: "Approved",
  denied: "Denied",
  expired: "No approval in time",
  superseded: "Not approved, because a newer message came",
};

/** Returns the input of a tool on one line. For a call of an agent, it leaves out the mode of the call. */
export function inputPreview(input: unknown, callsAgent: boolean): string {
  if (!callsAgent || typeof input !== "object" || input === null) return previewOf(input);
  const { invocationMode: _, ...rest } = input as Record<string, unknown>;
  return previewOf(rest);
}

/** Returns a value on one line. An object with a single plain member becomes that member. */
export function previewOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return value === undefined ? "" : String(value);
  const values: unknown[] = Object.values(value);
  const [only] = values;
  if (values.length === 1 && typeof only !== "object") return String(only);
  return values.length === 0 ? "" : JSON.stringify(value);
}

/** Returns a value as indented JSON, and a text unchanged. */
export function prettyJson(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

/** Characters that are invisible, look like a space or change the direction of the text. U+2800 is an empty Braille pattern. */
const UNSEEN =
  /[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u007f-\u009f\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]/gu;

/** Returns a value as indented JSON. It escapes characters that are invisible or change the direction of the text. */
export function exactJson(value: unknown): string {
  const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return prettyJson(value).replace(UNSEEN, (character) => character.split("").map(escaped).join(""));
}

/** Names the work that the counts of a turn do not include; `undefined` without such work. */
export function calledText({ hasAgents, hasRuns }: { hasAgents: boolean; hasRuns: boolean }) {
  if (!hasAgents) return hasRuns ? "its runs" : undefined;
  return hasRuns ? "called agents and runs" : "called agents";
}

/** Returns amounts as text, such as "1,250 tokens · $0.0031". It leaves out zero dollars. */
export function amountsText({ tokens, usd = 0 }: Budget, locales?: string): string {
  const maximumFractionDigits = usd < 1 ? 4 : 2;
  const dollars = { style: "currency", currency: "USD", maximumFractionDigits } as const;
  return [
    ...(tokens === undefined
      ? []
      : [`${tokens.toLocaleString(locales)} ${tokens === 1 ? "token" : "tokens"}`]),
    ...(usd === 0 ? [] : [usd < 0.0001 ? "less than $0.0001" : usd.toLocaleString(locales, dollars)]),
  ].join(" · ");
}

/** Returns a length of time as text, such as "340 ms", "1.2 s", "2 min 5 s" or "24 h 3 min". */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Returns the rest of a budget as text; `undefined` without a budget. */
export function budgetText(left: Budget | undefined, locales?: string): string | undefined {
  if (left === undefined) return undefined;
  const { modelCalls, toolCalls, usd } = left;
  const parts = [
    amountsText(left, locales),
    usd === 0 ? "$0" : "",
    modelCalls === undefined ? "" : `${modelCalls} model calls`,
    toolCalls === undefined ? "" : `${toolCalls} tool calls`,
  ];
  return `Budget left: ${parts.filter((part) => part !== "").join(" · ")}`;
}

/** Returns the message of a thrown value, with the members of the request that the server rejected. */
export function problemText(error: unknown): string {
  const issues = error instanceof DramatisClientError ? error.errors : [];
  const text = messageOf(error);
  const others = issues.filter(({ message }) => !text.includes(message));
  return [text, ...others.map(({ path, message }) => `${path}: ${message}`)].join("\n");
}

/** Returns the message of a thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function firstSentence(text: string): string {
  return titleFrom(/^.*?[.!?](?=\s|$)/s.exec(text.trim())?.[0] ?? text, 120);
}

/** Returns the command that clones a repository. The shell of the user has the token. */
export function cloneCommand(
  origin: string,
  { project, repo, needsToken }: { project: string; repo: string; needsToken: boolean },
): string {
  const options = needsToken ? '-c http.extraHeader="Authorization: Bearer $TOKEN" ' : "";
  return `git ${options}clone ${origin}/git/${encodeURIComponent(project)}/${encodeURIComponent(repo)}`;
}
