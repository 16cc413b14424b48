/** Checks of calls that need an approval: who approved each call that ran, and how the other calls ended. Pure. */
import type { JournalEntryView } from "../../src/protocol/conversation-schemas.ts";
import type { MoveView } from "../../src/protocol/move-schemas.ts";
import { isJsonObject } from "../../src/shared/json.ts";
import { APPROVAL_TIMEOUT_MS, isCareful } from "./approvals.ts";
import type { ApprovalRecord, History } from "./history.ts";
import { type Scope, takenIn } from "./scope.ts";
import { namedUser, TurnTimeline } from "./turn-times.ts";

export function checkApprovals(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const timeline = new TurnTimeline(scope);
  const entries = Map.groupBy(
    outcome.journal.filter(({ type }) => type.startsWith("approval.")),
    ({ operationId = "" }) => operationId,
  );
  const given = history.approvals.filter((answer) => answer.conversation === conversation);
  const taken = takenIn(outcome);
  for (const { moves } of outcome.turns) {
    for (const move of moves) {
      const { operationId = "", name = "" } = move.toolCall ?? {};
      if (taken.has(operationId)) continue;
      const own = entries.get(operationId) ?? [];
      if (!isCareful(name)) {
        if (own.length > 0) fail("approvals", `${operationId} (${name}) needs no approval.`);
        continue;
      }
      const answers = given.filter((answer) => answer.operationId === operationId);
      checkCall(move, own, answers, scope, timeline);
    }
  }
}

function checkCall(
  { toolCall, toolResult }: MoveView,
  own: readonly JournalEntryView[],
  answers: readonly ApprovalRecord[],
  { history, fail }: Scope,
  timeline: TurnTimeline,
): void {
  const id = toolCall?.operationId ?? "";
  const [requested] = own.filter(({ type }) => type === "approval.requested");
  const resolved = own.filter(({ type }) => type === "approval.resolved");
  const [entry] = resolved;
  const how = entry && outcomeOf(entry);
  if (resolved.length > 1) fail("approvals", `${id} was answered ${resolved.length} times.`);
  if (how !== undefined && toolCall?.approval?.outcome !== how)
    fail("approvals", `${id} was ${how}, and is shown as ${toolCall?.approval?.outcome}.`);

  const allowed = how === "approved" ? timeline.stepOf(entry?.seq ?? 0) : Infinity;
  for (const run of history.toolRuns)
    if (run.operationId === id && run.step < allowed) fail("approvals", `${id} ran before it was approved.`);
  const code = toolResult?.error?.code;
  const isDenied = how !== undefined && how !== "approved";
  if (isDenied !== (code === "APPROVAL_DENIED")) fail("approvals", `${id} was ${how}, and has ${code}.`);

  const isAnswered = how === "approved" || how === "denied";
  const by = entry && namedUser(entry);
  const isMatching = (one: ApprovalRecord) => one.user === by && one.approved === (how === "approved");
  if (isAnswered && !answers.some(isMatching))
    fail("approvals", `${id} was ${how} by ${by} without an answer of ${by}.`);
  if (how === "superseded" && timeline.standingAt(entry?.seq ?? 0).order !== "interrupt")
    fail("approvals", `${id} was superseded where messages do not interrupt.`);
  const waited = Date.parse(entry?.time ?? "") - Date.parse(requested?.time ?? "");
  if (how === "expired" && waited < APPROVAL_TIMEOUT_MS)
    fail("approvals", `${id} expired after ${waited} ms.`);
  if (how === "expired" && answers.some((one) => isPrompt(one, requested, history)))
    fail("approvals", `${id} expired although somebody answered.`);
  for (const { approved, answer } of answers) {
    const isRecorded = isAnswered && approved === (how === "approved");
    if (answer !== undefined && (answer === "taken") !== isRecorded)
      fail("approvals", `${approved ? "Yes" : "No"} to ${id} was ${answer}, and it is ${how}.`);
    if (answer !== undefined && answer !== "taken" && answer !== "CONFLICT")
      fail("approvals", `An answer to ${id} was refused: ${answer}.`);
  }
}

/** A time longer than any user's absence and shorter than the limit, in milliseconds. */
const PROMPT_MS = 25_000;

/** Reports whether an answer must have arrived in time: without faults, of a client that stays. */
function isPrompt(
  { conversation, client, at }: ApprovalRecord,
  requested: JournalEntryView | undefined,
  { fired, plan }: History,
): boolean {
  const { leaves } = plan.conversations[conversation]?.clients[client] ?? {};
  return fired.length === 0 && leaves === undefined && at - Date.parse(requested?.time ?? "") < PROMPT_MS;
}

function outcomeOf({ data }: JournalEntryView): string {
  return isJsonObject(data) ? String(data.outcome) : "";
}
