/**
 * Checks the model's input: the turns that ended before the cycle began, in order; a note on the turns that were
 * active; then the turn's own message and its moves so far. The agent's session has the same turns, complete. Pure.
 */
import { isDeepStrictEqual } from "node:util";
import { textOf } from "../../src/client/state.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { MoveView } from "../../src/protocol/move-schemas.ts";
import { checkCompactions, compactionsOf, requestsOf } from "./check-compactions.ts";
import { notedCalls, replacedAt } from "./replaced-turns.ts";
import { firedIn, type Scope, tagIn } from "./scope.ts";
import { seededMessages } from "./seeded-history.ts";
import { effectOf } from "./tools.ts";
import { type ToolCall, TurnTimeline, type TurnTimes } from "./turn-times.ts";
import { amissIn, budgetOf, windowOf } from "./windows.ts";

/** A message of a request. Only the first word of a user's message counts, because images change the rest. */
export interface PromptMessage {
  role: string;
  text: string;
  /** Names of the called tools. */
  calls: string[];
}

/** Other active turns that a request describes. */
const MAX_TOLD = 8;
/** The beginning of the note on calls of replaced turns. */
const REPLACEMENT = "A later message replaces a part of this conversation";
/** Characters that the inputs of a list of their calls share, and the errors. */
const MAX_CALLS_LENGTH = 400;

export function checkRequests(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const timeline = new TurnTimeline(scope);
  // A context hook chooses the messages before the moves.
  const hasHook = history.plan.conversations[conversation]?.hooks?.assembly !== undefined;
  const seeded = seededMessages(history.plan.conversations[conversation]?.history ?? 0).map(
    ({ role, content, toolCalls = [] }) =>
      promptMessage(
        role,
        content,
        toolCalls.map(({ name }) => name),
      ),
  );
  const recorded = [
    ...timeline.turns.map((times) => ({ seq: times.ended, messages: turnMessages(times, timeline) })),
    ...lateMessages(scope),
    ...replacementMessages(scope, timeline),
    ...summaryMessages(scope, timeline),
  ]
    .filter(({ seq }) => seq !== Infinity)
    .sort((one, other) => one.seq - other.seq);
  const all = [...seeded, ...recorded.flatMap(({ messages }) => messages)];
  const session = outcome.session.flatMap((event) => event.message ?? []);
  if (!isDeepStrictEqual(session, all))
    fail("session", `The session has ${textsOf(session)}, not ${textsOf(all)}.`);
  const countAt = (seq: number) =>
    recorded.reduce((sum, one) => sum + (one.seq < seq ? one.messages.length : 0), seeded.length);
  checkCompactions(scope, timeline, countAt);
  checkPrompt(scope, timeline);
  for (const { turn, tag, began, cycles } of timeline.turns) {
    const own = messagesOfMoves(turn.moves);
    for (const call of history.modelCalls.filter((one) => one.tag === tag)) {
      const at = cycles[call.cycle] ?? began;
      const besides = concurrentTurnsNote(turn, at, timeline);
      const beside = call.before.length - besides.length;
      // A cycle sees the session after the commit in which it begins.
      const committed = timeline.rowOf(at).at(-1)?.seq ?? at;
      const window = windowOf(outcome, countAt(committed + 1), replacedAt(timeline, at));
      const amiss = isDeepStrictEqual(call.before.slice(beside), besides)
        ? amissIn(call.before.slice(0, beside), window, budgetOf(scope, tag))
        : `it says of other turns not ${textsOf(besides)}`;
      const due = noticeTexts(turn, cycles.slice(0, call.cycle + 1), timeline);
      if (!isAlike(call.notices, due))
        fail("context", `${call.requestId} carries the results ${call.notices}, not ${due}.`);
      if (!hasHook && amiss !== undefined) {
        const whole = textsOf(window.turns.flat().map((event) => event.message));
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

/** Time until the first request of a cycle reaches the model if no fault delays it, in milliseconds. */
const PROMPT_MS = 30;

/** A cycle calls its model immediately, even during a compaction. */
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

/** A result that a request left out to make room for newer results. */
const LEFT_OUT = /^(?:op_\w+: )?"\(Left out: \d+ characters/;

/** Compares a request with the expected request. A small budget may leave out results. */
function isAlike(
  actual: readonly (PromptMessage | string)[],
  wanted: readonly (PromptMessage | string)[],
): boolean {
  const textOf = (one: PromptMessage | string | undefined) =>
    typeof one === "object" ? one.text : (one ?? "");
  const known = actual.map((one, index) => (LEFT_OUT.test(textOf(one)) ? wanted[index] : one));
  return isDeepStrictEqual(known, wanted);
}

/** Returns the summaries, each with its place in the journal. */
function summaryMessages(scope: Scope, timeline: TurnTimeline): { seq: number; messages: PromptMessage[] }[] {
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

/** Returns the notes on calls of replaced turns, each with its place in the journal. */
function replacementMessages(
  { outcome }: Scope,
  timeline: TurnTimeline,
): { seq: number; messages: PromptMessage[] }[] {
  return timeline.turns.flatMap(({ turn, started }) =>
    notedCalls(turn, outcome).length === 0
      ? []
      : [{ seq: started, messages: [{ role: "system", text: REPLACEMENT, calls: [] }] }],
  );
}

/** Returns the notes on results of stopped calls, each with its place in the journal. */
function lateMessages({ history, outcome }: Scope): { seq: number; messages: PromptMessage[] }[] {
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

/** Returns the results of a cycle: for each cycle up to it, the results since the previous cycle. */
function noticeTexts(turn: TurnView, cycles: readonly number[], timeline: TurnTimeline): string[] {
  return cycles.flatMap((at, index) => {
    const before = cycles[index - 1];
    return before === undefined ? [] : timeline.resultsBetween(turn, before, at).map(({ text }) => text);
  });
}

/** Returns the note on active turns at the start of a cycle. Only later cycles list queued turns. */
function concurrentTurnsNote({ id }: TurnView, began: number, timeline: TurnTimeline): PromptMessage[] {
  const isFirst = timeline.turns.some((one) => one.turn.id === id && one.began === began);
  const others = timeline.turns.filter((other) => {
    const since = isFirst ? other.began : other.started;
    return other.turn.id !== id && since < began && other.ended > began;
  });
  if (others.length === 0) return [];
  const told = others
    .slice(-MAX_TOLD)
    .map(({ turn, said }: TurnTimes) => `${said} [${callsText(turn, began, timeline)}]`);
  return [{ role: "system", text: concurrentTurnsText(told, others.length - told.length), calls: [] }];
}

/** Returns the calls in a turn's note at an entry: the running calls, and the results of calls with an effect. */
function callsText(turn: TurnView, seq: number, timeline: TurnTimeline): string {
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

function concurrentTurnsText(told: readonly string[], left: number): string {
  return ["besides", ...told, ...(left > 0 ? [`and ${left}`] : [])].join("; ");
}

export function promptMessage(role: string, text: string, calls: string[] = []): PromptMessage {
  if (role === "system") return { role, text: noteContent(text), calls };
  return { role, text: role === "user" ? (text.split(" ")[0] ?? "") : text, calls };
}

/** Returns the content of a note: on other turns, or on the end of one. */
function noteContent(text: string): string {
  if (text.startsWith("Other turns of this conversation")) {
    const told = [...text.matchAll(/^- The user said: (".*?[^\\]")\.(?: (.*))?$/gm)];
    const left = /^And (\d+) earlier ones[.,]/m.exec(text)?.[1] ?? 0;
    const lines = told.map(([, said = '""', calls = ""]) => `${tagIn(JSON.parse(said))} [${calls}]`);
    return concurrentTurnsText(lines, Number(left));
  }
  const notice = noticeIn(text);
  if (notice !== undefined) return notice;
  if (text.startsWith(REPLACEMENT)) return REPLACEMENT;
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
function turnMessages({ turn, cycles }: TurnTimes, timeline: TurnTimeline): PromptMessage[] {
  const note = (text: string): PromptMessage => ({ role: "system", text, calls: [] });
  const results = cycles.map((at, index) => {
    const before = cycles[index - 1];
    return before === undefined ? [] : timeline.resultsBetween(turn, before, at);
  });
  const left = timeline.resultsBetween(turn, cycles.at(-1) ?? 0, Infinity);
  const calling = messagesOfMoves(turn.moves);
  const messages: PromptMessage[] = [];
  let isNew = false;
  for (const { raw, toolCall } of turn.moves) {
    if (raw === undefined) continue;
    if (isNew) messages.push(...(results.shift() ?? []).map(({ text }) => note(text)));
    else if (messages.length === 0) results.shift();
    isNew = toolCall === undefined;
    messages.push(...(isNew ? [replyMessage(raw)] : (calling.shift() ?? [])));
  }
  if (messages.length === 0) results.shift();
  return [
    promptMessage("user", textOf(turn.input)),
    ...messages,
    ...[...results.flat(), ...left].map(({ text }) => note(text)),
    ...(turn.status === "failed" ? [note(endText(turn.error?.message ?? ""))] : []),
  ];
}

/** Returns the messages of each reply that called tools. */
function messagesOfMoves(moves: readonly MoveView[]): PromptMessage[][] {
  const replies: PromptMessage[][] = [];
  for (const { raw, toolCall, toolResult } of moves) {
    if (toolCall === undefined) continue;
    if (raw !== undefined) replies.push([replyMessage(raw)]);
    const { success = false, result = null, error = null } = toolResult ?? {};
    const pending = { status: "pending", operation_id: toolCall.operationId };
    const content = toolCall.async ? pending : success ? result : error;
    replies.at(-1)?.push(promptMessage("tool", JSON.stringify(content)));
  }
  return replies;
}

function replyMessage(raw: MoveView["raw"]): PromptMessage {
  // SAFETY: the view gives the model's reply in this form.
  const { text, toolCalls, notice } = raw as {
    text: string;
    toolCalls: { name: string }[];
    notice?: true;
  };
  if (notice) return { role: "system", text: endText(text), calls: [] };
  return promptMessage(
    "assistant",
    text,
    toolCalls.map(({ name }) => name),
  );
}

function textsOf(messages: readonly PromptMessage[]): string {
  return JSON.stringify(messages.map(({ role, text, calls }) => `${role}: ${text} ${calls.join(" ")}`));
}
