/**
 * Checks what the model is given: the turns that were over before the cycle began, in order, what it is told of those that
 * were active, then the turn's own message and its moves so far. The agent's session has the same turns, whole. Pure.
 */
import { isDeepStrictEqual } from "node:util";
import { textOf } from "../../src/client/state.ts";
import type { MoveView, TurnView } from "../../src/protocol/views.ts";
import { checkCompactions, compactionsOf, requestsOf } from "./check-compactions.ts";
import { saidBefore } from "./said-before.ts";
import { firedIn, type Scope, tagIn } from "./scope.ts";
import { effectOf } from "./tools.ts";
import { type ToolCall, TurnTimeline, type TurnTimes } from "./turn-times.ts";
import { amissIn, budgetOf, windowOf } from "./windows.ts";

/** A message of a request. Of a user's message, only the first word counts: images change the rest. */
export interface Said {
  role: string;
  text: string;
  /** Names of the called tools. */
  calls: string[];
}

/** Other active turns that a request describes. */
const MAX_TOLD = 8;
/** Characters that the inputs of a list of their calls share, and the errors. */
const MAX_CALLS_LENGTH = 400;

export function checkRequests(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const timeline = new TurnTimeline(scope);
  // A context hook chooses what precedes the moves.
  const hasHook = history.plan.conversations[conversation]?.hooks?.assembly !== undefined;
  const seeded = saidBefore(history.plan.conversations[conversation]?.history ?? 0).map(
    ({ role, content, toolCalls = [] }) =>
      said(
        role,
        content,
        toolCalls.map(({ name }) => name),
      ),
  );
  const recorded = [
    ...timeline.turns.map((times) => ({ seq: times.ended, messages: turnSaid(times, timeline) })),
    ...lateSaid(scope),
    ...summariesSaid(scope, timeline),
  ]
    .filter(({ seq }) => seq !== Infinity)
    .sort((one, other) => one.seq - other.seq);
  const all = [...seeded, ...recorded.flatMap(({ messages }) => messages)];
  const session = outcome.session.flatMap((event) => event.said ?? []);
  if (!isDeepStrictEqual(session, all))
    fail("session", `The session has ${textsOf(session)}, not ${textsOf(all)}.`);
  const countAt = (seq: number) =>
    recorded.reduce((sum, one) => sum + (one.seq < seq ? one.messages.length : 0), seeded.length);
  checkCompactions(scope, timeline, countAt);
  checkPrompt(scope, timeline);
  for (const { turn, tag, began, cycles } of timeline.turns) {
    const own = movesSaid(turn.moves);
    for (const call of history.modelCalls.filter((one) => one.tag === tag)) {
      const at = cycles[call.cycle] ?? began;
      const besides = besidesSaid(turn, at, timeline);
      const beside = call.before.length - besides.length;
      const window = windowOf(outcome, countAt(at));
      const amiss = isDeepStrictEqual(call.before.slice(beside), besides)
        ? amissIn(call.before.slice(0, beside), window, budgetOf(scope, tag))
        : `it says of other turns not ${textsOf(besides)}`;
      const due = noticesSaid(turn, cycles.slice(0, call.cycle + 1), timeline);
      if (!isAlike(call.notices, due))
        fail("context", `${call.requestId} carries the results ${call.notices}, not ${due}.`);
      if (!hasHook && amiss !== undefined) {
        const whole = textsOf(window.turns.flat().map((event) => event.said));
        fail("context", `${call.requestId} carries ${textsOf(call.before)} of ${whole}: ${amiss}.`);
      }
      const replies = call.moves.filter(({ calls }) => calls.length > 0).length;
      const made = own.slice(0, replies).flat();
      if (!isAlike(call.moves, made)) {
        fail("context", `${call.requestId} carries the moves ${textsOf(call.moves)}, not ${textsOf(made)}.`);
      }
    }
  }
}

/** Time in which the first request of a cycle reaches the model where no fault delays it, in milliseconds. */
const PROMPT_MS = 30;

/** No cycle waits before it calls its model: neither for a compaction, nor for anything else. */
function checkPrompt(scope: Scope, timeline: TurnTimeline): void {
  const { history, outcome, conversation, fail } = scope;
  const { hooks } = history.plan.conversations[conversation] ?? {};
  if (hooks?.assembly !== undefined || outcome.lives > 1) return;
  if (firedIn(scope, ({ port }) => !/^(?:http|socket|stream|directory)\./.test(port)) > 0) return;
  for (const { tag, cycles } of timeline.turns) {
    cycles.forEach((seq, cycle) => {
      const first = history.modelCalls.find((call) => call.tag === tag && call.cycle === cycle);
      const begun = timeline.commitOf(seq)?.at ?? 0;
      if (first !== undefined && !first.hasImages && first.at - begun > PROMPT_MS)
        fail("waits", `${first.requestId} was made ${first.at - begun} ms after its cycle began.`);
    });
  }
}

/** A result that was left out of a request, to make room for newer ones. */
const LEFT_OUT = /^(?:op_\w+: )?"\(Left out: \d+ characters/;

/** Compares what a request carries with what it should. A small budget may leave out results. */
function isAlike(actual: readonly (Said | string)[], wanted: readonly (Said | string)[]): boolean {
  const textOf = (one: Said | string | undefined) => (typeof one === "object" ? one.text : (one ?? ""));
  const known = actual.map((one, index) => (LEFT_OUT.test(textOf(one)) ? wanted[index] : one));
  return isDeepStrictEqual(known, wanted);
}

/** Returns the summaries, each with its place in the journal. */
function summariesSaid(scope: Scope, timeline: TurnTimeline): { seq: number; messages: Said[] }[] {
  return compactionsOf(scope).flatMap((compaction) => {
    const { end } = compaction;
    if (end?.type !== "context.compacted") return [];
    const text = summaryText(requestsOf(compaction, scope, timeline).at(-1)?.text ?? "");
    return [{ seq: end.seq, messages: [{ role: "system", text, calls: [] }] }];
  });
}

function summaryText(text: string): string {
  return `summary: ${text}`;
}

/** Returns the notes on results of stopped calls, each with its place in the journal. */
function lateSaid({ history, outcome }: Scope): { seq: number; messages: Said[] }[] {
  return outcome.journal.flatMap(({ type, seq, operationId = "" }) => {
    if (type !== "tool.late") return [];
    const run = history.toolRuns.find((one) => one.operationId === operationId);
    const text = lateText(run?.tool ?? "", JSON.stringify(run?.answer));
    return [{ seq, messages: [{ role: "system", text, calls: [] }] }];
  });
}

function lateText(tool: string, result: string): string {
  return `late: ${tool} ${result}`;
}

/** Returns the results that a cycle has: of each cycle up to it, those since the cycle before. */
function noticesSaid(turn: TurnView, cycles: readonly number[], timeline: TurnTimeline): string[] {
  return cycles.flatMap((at, index) => {
    const before = cycles[index - 1];
    return before === undefined ? [] : timeline.resultsBetween(turn, before, at).map(({ text }) => text);
  });
}

/** Returns the note on the turns that were active when a cycle began. Only a further cycle is told of turns that are queued. */
function besidesSaid({ id }: TurnView, began: number, timeline: TurnTimeline): Said[] {
  const isFirst = timeline.turns.some((one) => one.turn.id === id && one.began === began);
  const others = timeline.turns.filter((other) => {
    const since = isFirst ? other.began : other.started;
    return other.turn.id !== id && since < began && other.ended > began;
  });
  if (others.length === 0) return [];
  const told = others
    .slice(-MAX_TOLD)
    .map(({ turn, tag }: TurnTimes) => `${tag} [${callsSaid(turn, began, timeline)}]`);
  return [{ role: "system", text: besidesText(told, others.length - told.length), calls: [] }];
}

/** Returns what a turn's note tells of its calls at an entry: those that run, and what became of those with an effect. */
function callsSaid(turn: TurnView, seq: number, timeline: TurnTimeline): string {
  const open = timeline.openAt(turn, seq);
  const settled = timeline.settledAt(turn, seq).filter(({ name }) => effectOf(name) !== "pure");
  const list = (title: string, calls: readonly ToolCall[]) => {
    if (calls.length === 0) return [];
    const room = Math.floor(MAX_CALLS_LENGTH / calls.length);
    const texts = calls.map(({ name, input, error }) => {
      const failure = error === undefined ? "" : ` (${cut(error, room)})`;
      return `${name}(${cut(JSON.stringify(input), room)})${failure}`;
    });
    return [`${title}: ${texts.join(", ")}.`];
  };
  return [
    ...list(
      "Running",
      open.filter(({ awaits }) => !awaits),
    ),
    ...list(
      "Waiting for a person's approval",
      open.filter(({ awaits }) => awaits),
    ),
    ...list(
      "Done",
      settled.filter(({ error }) => error === undefined),
    ),
    ...list(
      "Failed",
      settled.filter(({ error }) => error !== undefined),
    ),
  ].join(" ");
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}

function besidesText(told: readonly string[], left: number): string {
  return ["besides", ...told, ...(left > 0 ? [`and ${left}`] : [])].join("; ");
}

export function said(role: string, text: string, calls: string[] = []): Said {
  if (role === "system") return { role, text: noteSaid(text), calls };
  return { role, text: role === "user" ? (text.split(" ")[0] ?? "") : text, calls };
}

/** Returns the content of a note: on other turns, or on the end of one. */
function noteSaid(text: string): string {
  if (text.startsWith("Other turns of this conversation")) {
    const told = [...text.matchAll(/^- The user said: (".*?[^\\]")\.(?: (.*))?$/gm)];
    const left = /^And (\d+) earlier ones[.,]/m.exec(text)?.[1] ?? 0;
    const lines = told.map(([, said = '""', calls = ""]) => `${tagIn(JSON.parse(said))} [${calls}]`);
    return besidesText(lines, Number(left));
  }
  const notice = noticeIn(text);
  if (notice !== undefined) return notice;
  const [, summary] = /^Summary of the earlier conversation\. .*?\n\n(.*)$/s.exec(text) ?? [];
  if (summary !== undefined) return summaryText(summary);
  const [, tool, result = ""] =
    /^"(.*)" was stopped with an unknown outcome before\. .* Its result: (.*)$/s.exec(text) ?? [];
  if (tool !== undefined) return lateText(tool, result);
  const [, stopped, failed] =
    /^This turn has no answer\. (.*) What was shown of it is above\.$|^This turn failed before its answer: (.*)$/s.exec(
      text,
    ) ?? [];
  return endText(stopped ?? failed ?? text);
}

/** Returns the operation and the result in a notice; `undefined` for all other notes. */
export function noticeIn(text: string): string | undefined {
  const [, id, result] = /^The operation (op_\w+) .*?\n(.*)$/s.exec(text) ?? [];
  return id === undefined ? undefined : `${id}: ${result}`;
}

function endText(message: string): string {
  return `ended: ${message}`;
}

/** Returns the messages of a turn that is over. */
function turnSaid({ turn, cycles }: TurnTimes, timeline: TurnTimeline): Said[] {
  const note = (text: string): Said => ({ role: "system", text, calls: [] });
  const results = cycles.map((at, index) => {
    const before = cycles[index - 1];
    return before === undefined ? [] : timeline.resultsBetween(turn, before, at);
  });
  const left = timeline.resultsBetween(turn, cycles.at(-1) ?? 0, Infinity);
  const calling = movesSaid(turn.moves);
  const messages: Said[] = [];
  let isNew = false;
  for (const { raw, toolCall } of turn.moves) {
    if (raw === undefined) continue;
    if (isNew) messages.push(...(results.shift() ?? []).map(({ text }) => note(text)));
    else if (messages.length === 0) results.shift();
    isNew = toolCall === undefined;
    messages.push(...(isNew ? [replySaid(raw)] : (calling.shift() ?? [])));
  }
  if (messages.length === 0) results.shift();
  return [
    said("user", textOf(turn.input)),
    ...messages,
    ...[...results.flat(), ...left].map(({ text }) => note(text)),
    ...(turn.status === "failed" ? [note(endText(turn.error?.message ?? ""))] : []),
  ];
}

/** Returns the messages of each reply that called tools. */
function movesSaid(moves: readonly MoveView[]): Said[][] {
  const replies: Said[][] = [];
  for (const { raw, toolCall, toolResult } of moves) {
    if (toolCall === undefined) continue;
    if (raw !== undefined) replies.push([replySaid(raw)]);
    const { success = false, result = null, error = null } = toolResult ?? {};
    const pending = { status: "pending", operation_id: toolCall.operationId };
    const content = toolCall.async ? pending : success ? result : error;
    replies.at(-1)?.push(said("tool", JSON.stringify(content)));
  }
  return replies;
}

function replySaid(raw: MoveView["raw"]): Said {
  // SAFETY: the view gives the model's reply in this form.
  const { text, toolCalls, notice } = raw as {
    text: string;
    toolCalls: { name: string }[];
    notice?: true;
  };
  if (notice) return { role: "system", text: endText(text), calls: [] };
  return said(
    "assistant",
    text,
    toolCalls.map(({ name }) => name),
  );
}

function textsOf(messages: readonly Said[]): string {
  return JSON.stringify(messages.map(({ role, text, calls }) => `${role}: ${text} ${calls.join(" ")}`));
}
