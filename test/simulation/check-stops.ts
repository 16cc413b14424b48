/**
 * Checks of stops, resumes and ends: which acts were acknowledged, which turns they ended, and that no work survives
 * them. Pure.
 */
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import { isJsonObject } from "../../src/shared/json.ts";
import type { ActRecord, ConnectionRecord, ToolRun } from "./history.ts";
import { type Scope, takenIn } from "./scope.ts";
import { EFFECTS, TIMEOUT_MS } from "./tools.ts";
import { namedUser, TurnTimeline, type TurnTimes } from "./turn-times.ts";

/** Time limit for the cancellation signal to reach a tool, in milliseconds. */
const CANCEL_MS = 1_000;

export function checkStops(scope: Scope): void {
  const timeline = new TurnTimeline(scope);
  checkAnswers(scope, timeline);
  checkReasons(scope, timeline);
  checkStopped(scope, timeline);
  checkWork(scope, timeline);
  checkAborts(scope, timeline);
  checkCancellations(scope);
  checkShown(scope, timeline);
}

const isCancelled = ({ turn }: TurnTimes) => turn.error?.code === "CANCELLED";

/** An acknowledged stop is permanent. A refused stop was too late. */
function checkAnswers({ history, conversation, fail }: Scope, timeline: TurnTimeline): void {
  for (const act of history.acts) {
    if (act.conversation !== conversation || act.answer === undefined) continue;
    const { what, step } = act.answer;
    const said = `${act.does} ${act.turnId ?? ""} was answered ${what}`;
    const found = timeline.standingsBetween(act.step, step);
    if (what === "CONVERSATION_CLOSED") {
      if (!found.some(({ isEnded }) => isEnded))
        fail("stops", `${said}, and the conversation had not ended.`);
      continue;
    }
    switch (act.does) {
      case "stop turn": {
        const times = timeline.turns.find(({ turn }) => turn.id === act.turnId);
        const isOver = times !== undefined && timeline.stepOf(times.ended) < step;
        if (what !== "done" && what !== "CONFLICT") fail("stops", `${said}.`);
        if (times === undefined || !isOver) fail("stops", `${said}, and the turn was not over.`);
        else if (isCancelled(times) !== (what === "done"))
          fail("stops", `${said}, and the turn has ${times.turn.status} ${times.turn.error?.code ?? ""}.`);
        break;
      }
      case "stop":
        if (what !== "done" || !found.some(({ isStopped }) => isStopped))
          fail("stops", `${said}, and the conversation was not stopped.`);
        break;
      case "resume":
        if ((what !== "done" && what !== "NOT_CANCELLED") || !found.some(({ isStopped }) => !isStopped))
          fail("stops", `${said}, and the conversation was stopped.`);
        break;
      case "end":
        if (what !== "done" || !found.some(({ isEnded }) => isEnded))
          fail("stops", `${said}, and the conversation had not ended.`);
        break;
      case "reorder":
        if (what !== "done" || !found.some(({ order }) => order === act.order))
          fail("stops", `${said}, and the order is another.`);
        break;
      case "rename":
        if (what !== "done") fail("stops", `${said}.`);
        break;
      case "regenerate":
      case "edit":
        // `checkReplacements` explains it.
        break;
      default:
        act.does satisfies never;
    }
  }
}

const DOES: Readonly<Record<string, ActRecord["does"]>> = {
  "conversation.cancelled": "stop",
  "conversation.resumed": "resume",
  "conversation.ended": "end",
};

/** A turn ends with CANCELLED only after a stop, an interruption, or a stop of the conversation. */
function checkReasons(scope: Scope, timeline: TurnTimeline): void {
  const { history, conversation, outcome, fail } = scope;
  const acts = history.acts.filter((act) => act.conversation === conversation);
  for (const times of timeline.turns) {
    if (!isCancelled(times)) continue;
    const { turn, started, ended } = times;
    if (timeline.standingAt(started).isStopped) continue;
    const entry = outcome.journal.find(({ seq }) => seq === ended);
    const row = timeline.rowOf(ended);
    const asked = (does: ActRecord["does"], by: string | undefined, turnId?: string) =>
      acts.some(
        (act) =>
          act.does === does && act.user === by && act.turnId === turnId && act.step < timeline.stepOf(ended),
      );
    const by = entry && namedUser(entry);
    const stop = row.find(({ type }) => type === "conversation.cancelled" || type === "conversation.ended");
    const isInterrupted = timeline.standingAt(ended).order === "interrupt" && startsTurn(row, ended);
    if (isInterrupted || asked("stop turn", by, turn.id)) continue;
    if (stop === undefined || namedUser(stop) !== by || !asked(DOES[stop.type] ?? "stop", by))
      fail("stops", `${turn.id} is CANCELLED without a stop.`);
  }
  for (const entry of outcome.journal) {
    const does = DOES[entry.type];
    if (does === undefined) continue;
    if (!acts.some((act) => act.does === does && act.user === namedUser(entry)))
      fail("stops", `${entry.type} ${entry.seq} has no request.`);
  }
}

function startsTurn(row: readonly JournalEntryView[], after: number): boolean {
  return row.some(({ type, seq }) => type === "turn.started" && seq > after);
}

/**
 * While a conversation is stopped, no turn is active, no turn begins, and the turn of a new message fails. After the
 * end of the conversation, a message gets no turn.
 */
function checkStopped({ history, conversation, fail }: Scope, timeline: TurnTimeline): void {
  const { standings, turns } = timeline;
  for (const [index, { seq, isStopped, isEnded }] of standings.entries()) {
    if (!isStopped && !isEnded) continue;
    const until = standings[index + 1]?.seq ?? Infinity;
    for (const { turn, started, began, ended } of turns) {
      if (started < seq && ended > seq) fail("stopped", `${turn.id} is active in a stopped conversation.`);
      if (began >= seq && began < until) fail("stopped", `${turn.id} begins in a stopped conversation.`);
      if (started < seq || started >= until) continue;
      const isRefused =
        !isEnded &&
        turn.error?.code === "CANCELLED" &&
        timeline.commitOf(ended)?.seq === timeline.commitOf(started)?.seq;
      if (!isRefused) fail("stopped", `${turn.id} is ${turn.status} in a stopped conversation.`);
    }
    const [from, to] = [timeline.stepOf(seq), timeline.stepOf(until)];
    for (const call of [...history.modelCalls, ...history.sideCalls]) {
      if (call.conversation === conversation && call.step > from && call.step < to)
        fail("stopped", `${call.requestId} was made in a stopped conversation.`);
    }
  }
}

/** No model call is made and no operation starts for a turn that is over, or that has not begun. */
function checkWork({ history, conversation, fail }: Scope, timeline: TurnTimeline): void {
  for (const { turn, tag, began, ended } of timeline.turns) {
    const [from, to] = [timeline.stepOf(began), timeline.stepOf(ended)];
    for (const call of history.modelCalls) {
      if (call.tag !== tag) continue;
      if (call.step > to) fail("over", `${call.requestId} was made after the end of its turn.`);
      if (call.step < from) fail("over", `${call.requestId} was made before its turn began.`);
    }
    const prefix = `op_${turn.id.slice("turn_".length)}_`;
    for (const dispatch of history.dispatches) {
      if (dispatch.conversation !== conversation || dispatch.step < to) continue;
      if (dispatch.operationIds.some((id) => id.startsWith(prefix)))
        fail("over", `${dispatch.operationIds.join(", ")} started after the end of the turn.`);
    }
  }
}

/** When a turn ends, the model request in progress is aborted, and so are the tools that run. */
function checkAborts(scope: Scope, timeline: TurnTimeline): void {
  const { history, outcome, conversation, fail } = scope;
  const isQuiet = !history.fired.some(
    (fault) => fault.conversation === conversation && fault.port.startsWith("tool."),
  );
  for (const times of timeline.turns) {
    const commit = times.ended === Infinity ? undefined : timeline.commitOf(times.ended);
    if (commit === undefined || !isCancelled(times)) continue;
    for (const { tag, step, over, life, requestId } of history.modelCalls) {
      if (tag !== times.tag || step > commit.step || life !== commit.life) continue;
      // The connections of a life that has died since are lost.
      const goesOn =
        over === undefined ? life === outcome.lives : over.step > commit.step && over.how === "complete";
      if (goesOn) fail("over", `${requestId} continues after the end of its turn.`);
    }
    if (outcome.lives > 1 || !isQuiet) continue;
    const left = (run: ToolRun) => run.step < commit.step && (run.over?.step ?? Infinity) > commit.step;
    for (const run of runsOf(times, scope).filter(left)) {
      const due = commit.at + CANCEL_MS;
      if ((run.aborted?.at ?? Infinity) > due && (run.over?.at ?? Infinity) > due)
        fail("over", `${run.operationId} was not cancelled within ${CANCEL_MS} ms.`);
    }
  }
}

function runsOf({ tag }: TurnTimes, { history }: Scope): ToolRun[] {
  return history.toolRuns.filter(({ call }) => call.startsWith(`${tag}.`));
}

/** An executor gets each cancellation once. A call that was stopped before it started has never run. */
function checkCancellations({ history, outcome, fail }: Scope): void {
  const cancellations = Map.groupBy(history.cancellations, (one) => one.operationId);
  const taken = takenIn(outcome);
  for (const { toolCall, toolResult } of outcome.turns.flatMap(({ moves }) => moves)) {
    if (toolCall === undefined || taken.has(toolCall.operationId)) continue;
    const { operationId } = toolCall;
    const executors = cancellations.get(operationId)?.map(({ executor }) => executor) ?? [];
    if (new Set(executors).size < executors.length)
      fail("over", `${operationId} was cancelled ${executors.length} times.`);
    const late = outcome.journal.filter((one) => one.type === "tool.late" && one.operationId === operationId);
    const successes = history.toolRuns.filter((run) => run.operationId === operationId && succeeds(run));
    const isOwed = isOnce(toolCall.name) && toolResult?.error?.code === "CANCELLED" && successes.length > 0;
    if (late.length !== (isOwed ? 1 : 0))
      fail(
        "over",
        `${operationId} has ${late.length} late results, and succeeded ${successes.length} times.`,
      );
    const { code, message = "" } = toolResult?.error ?? {};
    if (code !== "CANCELLED" || !isOnce(toolCall.name) || message.startsWith("Outcome unknown")) continue;
    if (history.toolRuns.some((run) => run.operationId === operationId))
      fail("over", `${operationId} ran, and its result says that it did not start.`);
  }
}

/** A stopped turn keeps the part of its last message that any client has seen, unless the message was withdrawn. */
function checkShown({ history, outcome, conversation, fail }: Scope, timeline: TurnTimeline): void {
  for (const times of timeline.turns) {
    if (!isCancelled(times)) continue;
    const own = outcome.journal.filter(({ turnId }) => turnId === times.turn.id);
    const id = own.findLast(({ type }) => type === "message.started")?.messageId;
    if (id === undefined || own.some((one) => isInterim(one, id))) continue;
    const withdrawn =
      own.findLast(({ type, messageId }) => type === "message.reset" && messageId === id)?.seq ?? 0;
    const kept = String(outcome.messages.find((message) => message.id === id)?.content ?? "");
    for (const connection of history.connections) {
      if (connection.conversation !== conversation) continue;
      const shown = shownOf(connection, id, withdrawn);
      if (shown.trim() !== "" && !kept.startsWith(shown))
        fail("text", `${id} was shown as ${JSON.stringify(shown)}, and is kept as ${JSON.stringify(kept)}.`);
    }
  }
}

/** Reports whether a tool has answered within its time limit. */
function succeeds({ at, over, answer }: ToolRun): boolean {
  return answer !== undefined && over !== undefined && over.at - at < TIMEOUT_MS;
}

function isOnce(name: string): boolean {
  return Object.entries(EFFECTS).some(([tool, effect]) => tool === name && effect === "once");
}

/** Reports whether an entry ends a message that its turn continues after. */
function isInterim({ type, messageId, data }: JournalEntryView, id: string): boolean {
  return type === "message.completed" && messageId === id && isJsonObject(data) && data.interim === true;
}

/** Returns the text of a message that a connection got since entry `withdrawn`. */
function shownOf({ from, frames }: ConnectionRecord, id: string, withdrawn: number): string {
  let text = "";
  let seq = from ?? 0;
  for (const frame of frames) {
    seq = frame.seq ?? seq;
    if (frame.type === "snapshot")
      text = frame.data.partials.find(({ messageId }) => messageId === id)?.text ?? "";
    if (frame.messageId !== id) continue;
    if (frame.type === "message.reset" || frame.type === "message.completed") text = "";
    if (frame.type === "message.delta" && seq >= withdrawn) text += frame.data.text;
  }
  return seq >= withdrawn ? text : "";
}
