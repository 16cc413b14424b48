/** Checks of turns that overlap: their order, and the newer messages that each turn receives. Pure. */
import { type Scope, sentIn } from "./scope.ts";
import { EFFECTS } from "./tools.ts";
import { TurnTimeline, type TurnTimes } from "./turn-times.ts";

export function checkOverlap(scope: Scope): void {
  const timeline = new TurnTimeline(scope);
  checkQueue(scope, timeline);
  checkCycles(scope, timeline);
  checkInterrupts(scope, timeline);
  checkNewer(scope, timeline);
}

/** A queued turn begins when no other works, and not later; turns begin in the order of their messages. */
function checkQueue({ outcome, fail }: Scope, timeline: TurnTimeline): void {
  const { turns } = timeline;
  for (const { turn, started, began } of turns) {
    if (began === Infinity || timeline.standingAt(began).order !== "queued") continue;
    for (const other of turns) {
      if (other.turn.id === turn.id) continue;
      if (works(other, began, timeline))
        fail("queue", `${turn.id} begins at ${began} while ${other.turn.id} works.`);
      if (other.started < started && other.began > began && other.ended > began)
        fail("queue", `${turn.id} begins at ${began} before ${other.turn.id}.`);
    }
  }
  const rows = Map.groupBy(outcome.journal, ({ seq }) => timeline.commitOf(seq)?.seq ?? 0);
  for (const row of rows.values()) {
    const last = row.at(-1)?.seq ?? 0;
    const waiting = turns.filter(({ started, began, ended }) => {
      return started <= last && began > last && ended > last;
    });
    const isHeld =
      timeline.standingAt(last).order === "queued" && turns.some((one) => works(one, last, timeline));
    if (waiting.length > 0 && !isHeld)
      fail(
        "queue",
        `${waiting.map(({ turn }) => turn.id).join(", ")} waits at ${last} without a turn before it.`,
      );
  }
  for (const entry of outcome.journal) {
    if (entry.type === "turn.queued" && timeline.standingAt(entry.seq).order !== "queued")
      fail("queue", `${entry.turnId} is queued at ${entry.seq} without need.`);
  }
}

/** If turns do not run in parallel, a further cycle begins when a result is there and no other turn works. */
function checkCycles({ fail }: Scope, timeline: TurnTimeline): void {
  for (const { turn, cycles } of timeline.turns) {
    for (const [index, seq] of cycles.entries()) {
      const before = cycles[index - 1];
      if (before === undefined) continue;
      if (timeline.resultsBetween(turn, before, seq).length === 0)
        fail("cycles", `${turn.id} begins a cycle at ${seq} without a result.`);
      if (timeline.standingAt(seq).order === "parallel") continue;
      const other = timeline.turns.find((one) => one.turn.id !== turn.id && works(one, seq, timeline));
      if (other !== undefined)
        fail("cycles", `${turn.id} begins a cycle at ${seq} while ${other.turn.id} works.`);
    }
    const left = timeline.resultsBetween(turn, cycles.at(-1) ?? 0, Infinity);
    if (turn.status === "completed" && left.length > 0)
      fail("cycles", `${turn.id} completed without ${left.map(({ text }) => text).join(", ")}.`);
  }
}

/** Reports whether a turn has a model call or an operation of code behind entry `seq`. */
function works({ turn, began, ended, waits }: TurnTimes, seq: number, timeline: TurnTimeline): boolean {
  if (began > seq || ended <= seq) return false;
  if (waits.some(({ from, to }) => from <= seq && seq < to)) return false;
  const open = timeline.openAt(turn, seq).filter(({ isAsync }) => !isAsync);
  return open.length === 0 || open.some(({ client, awaits }) => !client && !awaits);
}

/** If messages interrupt, a turn begins at once, and alone. */
function checkInterrupts({ fail }: Scope, timeline: TurnTimeline): void {
  for (const { turn, started, began } of timeline.turns) {
    const { order, isStopped } = timeline.standingAt(started);
    if (order !== "interrupt" || isStopped) continue;
    const others = timeline.turns.filter(
      (other) =>
        other.started < started &&
        other.ended > started &&
        !other.waits.some(({ from, to }) => from <= started && started < to),
    );
    if (others.length > 0)
      fail("interrupt", `${turn.id} does not interrupt ${others.map((other) => other.turn.id).join(", ")}.`);
    if (timeline.commitOf(began)?.seq !== timeline.commitOf(started)?.seq)
      fail("interrupt", `${turn.id} does not begin with its message.`);
  }
}

/** A call that must run at most once is made only in reply to a request with all earlier messages of its user. */
function checkNewer(scope: Scope, timeline: TurnTimeline): void {
  const { history, outcome, fail } = scope;
  const users = new Map(sentIn(scope).map(({ tag, user }) => [tag, user]));
  const requested = new Map(
    outcome.journal.flatMap(({ type, operationId, seq }) =>
      type === "tool.requested" && operationId !== undefined ? [[operationId, seq] as const] : [],
    ),
  );
  for (const { turn, tag, said, started, cycles } of timeline.turns) {
    for (const { toolCall } of turn.moves) {
      if (toolCall === undefined || !isOnce(toolCall.name)) continue;
      const { operationId } = toolCall;
      const decided = requested.get(operationId) ?? Infinity;
      const step = timeline.stepOf(decided);
      const last = history.modelCalls.findLast((call) => call.tag === tag && call.step < step);
      const newer = timeline.turns.filter(
        (other) =>
          other.started > started && other.started < decided && users.get(other.said) === users.get(said),
      );
      // Turns that were over when the cycle began are in its history, which may be a summary of them.
      const cycle = cycles[last?.cycle ?? 0] ?? started;
      const unseen = newer.filter((other) => other.ended > cycle && !isInRequest(other.said, last));
      if (
        unseen.length > (last?.newerLeft ?? 0) &&
        history.toolRuns.some((run) => run.operationId === operationId)
      )
        fail("newer", `${operationId} ran without a look at ${unseen.map((other) => other.tag).join(", ")}.`);
    }
  }
}

function isOnce(name: string): boolean {
  return Object.entries(EFFECTS).some(([tool, effect]) => tool === name && effect === "once");
}

function isInRequest(
  tag: string,
  call: { newer: string[]; before: { role: string; text: string }[] } | undefined,
) {
  if (call === undefined) return false;
  const isBefore = call.before.some(
    ({ role, text }) => (role === "user" && text === tag) || (role === "system" && text.includes(`${tag} `)),
  );
  return isBefore || call.newer.includes(tag);
}
