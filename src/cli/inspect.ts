/** `dramatis inspect`: a conversation, a turn or a run for people: its status, cost, calls, waits and errors. */
import type { ConversationView, TurnView } from "../protocol/conversation-schemas.ts";
import type { ElicitationView } from "../protocol/elicitation.ts";
import type { MoveView } from "../protocol/move-schemas.ts";
import type { RunView } from "../protocol/run-schemas.ts";
import type { TraceView } from "../protocol/trace.ts";
import type { TurnRecord } from "../protocol/turn-records.ts";
import type { SpendingView } from "../protocol/usage-schemas.ts";
import { kindOf, notFor } from "./acts.ts";
import type { Answer, Cli, Command } from "./command.ts";
import { resultOf } from "./list.ts";
import { clean, count, dollars, duration, facts, sections, short, table, time } from "./text.ts";
import { waterfall } from "./waterfall.ts";

/** Turns of a conversation in its summary. */
const TURNS = 10;
/** Characters of a message, an input or a result in a summary. */
const EXCERPT = 400;

interface Failure {
  code: string;
  message: string;
}

function excerpt(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return short(typeof value === "string" ? value : JSON.stringify(value), EXCERPT);
}

function failure(error: Failure | undefined): string | undefined {
  return error && `${error.code}: ${error.message}`;
}

/** Returns a cost in words. `spent.modelCalls` counts attempts. `cost` is `null` if no called model has prices. */
function costOf(
  { usd, tokens, modelCalls, toolCalls }: SpendingView,
  cost: number | null | undefined = undefined,
): string {
  const price = cost === null ? ["no prices"] : usd === 0 && cost === undefined ? [] : [dollars(usd)];
  const counts = [count(tokens, "token"), count(modelCalls, "model attempt"), count(toolCalls, "tool call")];
  return [...price, ...counts].join(", ");
}

/** Returns whether a retry may help. A turn that was stopped or replaced needs no advice. */
function retryAdvice({ error, replacedBy }: TurnView): string | undefined {
  if (error === undefined || error.code === "CANCELLED" || replacedBy !== undefined) return undefined;
  return error.retriable ? "may succeed later" : "fails again unless the cause changes";
}

/** Returns the failures that did not stop the turn. */
function issuesOf({ issues = {}, memoryError }: Pick<TurnView, "issues" | "memoryError">): string {
  return [
    ...(issues.toolFailures ? [count(issues.toolFailures, "failed tool call")] : []),
    ...(issues.memoryExtractionFailed ? ["memories were not written"] : []),
    ...(issues.emptyReply ? ["the model's reply was empty"] : []),
    ...(issues.replyPaused ? ["the provider paused the reply too often"] : []),
    ...(issues.notAsked ? [`agents without a turn: ${issues.notAsked.join(", ")}`] : []),
    ...(memoryError === undefined ? [] : [`the memory did not answer: ${memoryError}`]),
  ].join("; ");
}

function stateOf({ toolCall, toolResult }: MoveView): string {
  if (toolResult !== undefined) return toolResult.success ? "completed" : "FAILED";
  return toolCall?.approval !== undefined && toolCall.approval.outcome === undefined
    ? "waits for approval"
    : "running";
}

/** Returns the command that approves a request. It is never wrapped, so people can copy it. */
function approve(place: string, operationId: string, question?: ElicitationView): string {
  const answer = question === undefined ? "" : ` --round ${question.round} --values '{}'`;
  return `  dramatis approve ${place} ${operationId}${answer}`;
}

function toolText(move: MoveView, place: string, width: number): string[] {
  const { toolCall, toolResult } = move;
  if (toolCall === undefined) return [];
  const { operationId, name, input, approval, agent, runId, attempt } = toolCall;
  const state = stateOf(move);
  const requests = [
    ...(state === "waits for approval" ? [approve(place, operationId, approval?.elicitation)] : []),
    ...(agent?.asks ?? []).map((ask) => approve(ask.conversationId, ask.operationId, ask.elicitation)),
  ];
  return [
    facts(
      [
        [name, state],
        ["  id", operationId],
        ["  attempts", attempt === undefined ? undefined : String(attempt)],
        ["  input", excerpt(input)],
        ["  question", approval?.elicitation?.message],
        ["  error", failure(toolResult?.error)],
        ["  result", toolResult?.success ? excerpt(toolResult.result) : undefined],
        ["  agent", agent && `${agent.id} ${agent.conversationId ?? ""}`.trim()],
        ["  run", runId],
        ["  denied", approval?.outcome === "denied" ? (approval.reason ?? "by a person") : undefined],
      ],
      width,
    ),
    ...requests,
  ];
}

function callerOf({ caller }: TurnView): string {
  switch (caller.type) {
    case "user":
      return `user ${caller.userId}`;
    case "agent":
      return `agent ${caller.agentId}, ${caller.turnId}`;
    case "workflow":
      return `run ${caller.runId}${caller.node === undefined ? "" : `, node ${caller.node}`}`;
  }
}

function turnText(turn: TurnView, { spans, partial }: TraceView, width: number): string {
  const { error, spent, cost, latencyMs, conversationId } = turn;
  const more = [waterfall(spans, width), ...(partial ? ["Some spans are missing."] : [])];
  return sections(
    [
      `Turn ${turn.id}`,
      facts(
        [
          ["status", turn.phase === undefined ? turn.status : `${turn.status}, ${turn.phase}`],
          ["error", failure(error)],
          ["retry", retryAdvice(turn)],
          ["replaced by", turn.replacedBy],
          ["issues", issuesOf(turn)],
          ["agent", turn.agentId],
          ["conversation", conversationId],
          ["started", `${time(turn.createdAt)} by ${callerOf(turn)}`],
          ["took", latencyMs === null ? undefined : duration(latencyMs)],
          ["cost", costOf(spent, cost)],
          ["message", excerpt(turn.input)],
          ["answer", excerpt(turn.answer)],
          ["output", excerpt(turn.output)],
        ],
        width,
      ),
    ],
    ["Work", more.filter(Boolean).join("\n")],
    ["Tool calls", turn.moves.flatMap((move) => toolText(move, conversationId, width)).join("\n")],
  );
}

function conversationText(
  conversation: ConversationView,
  turns: readonly TurnRecord[],
  width: number,
): string {
  const { id, spent, calledBy, budgetLeft, participants } = conversation;
  const opener =
    calledBy && ("runId" in calledBy ? calledBy.runId : `${calledBy.agentId} ${calledBy.turnId}`);
  const failed = turns.find(({ status, errorCode }) => status === "failed" && errorCode !== "CANCELLED");
  const columns = [{ title: "ID" }, { title: "STARTED" }, { title: "RESULT", free: true }] as const;
  return sections(
    [
      `Conversation ${id}`,
      facts(
        [
          ["title", conversation.title ?? undefined],
          ["status", conversation.status + (conversation.gate === "cancelled" ? ", stopped" : "")],
          ["agent", conversation.agentId],
          ["project", conversation.projectId],
          ["created", time(conversation.createdAt)],
          ["opened by", opener],
          ["people", participants.map(({ type, id }) => `${type} ${id}`).join(", ")],
          ["queued", conversation.queued ? count(conversation.queued, "message") : undefined],
          ["cost", spent && costOf(spent)],
          ["budget left", budgetLeft && JSON.stringify(budgetLeft)],
        ],
        width,
      ),
    ],
    [
      "Newest turns",
      turns.length === 0
        ? ""
        : table(
            columns,
            turns.map((turn) => [turn.id, time(turn.createdAt), resultOf(turn)]),
            width,
          ),
    ],
    ["Cause of the failure", failed === undefined ? "" : `dramatis inspect ${id} ${failed.id}`],
  );
}

function runText(run: RunView, { spans }: TraceView, width: number): string {
  const { id, error, retry, workflow, gates, active, issues = [] } = run;
  const again = retry?.repeatsOnce.length ? `, repeats the effects of ${retry.repeatsOnce.join(", ")}` : "";
  const questions = gates.flatMap(({ operationId, prompt }) => [
    clean(prompt).replaceAll("\n", " "),
    approve(id, operationId),
  ]);
  const nodes = active.map(({ node, status, runId, conversationId }) =>
    [node, status, runId, conversationId].filter(Boolean).join("  "),
  );
  return sections(
    [
      `Run ${id}`,
      facts(
        [
          ["status", run.status],
          ["error", failure(error)],
          ["issues", issues.map(({ deadLetter, message }) => `${message} (${deadLetter})`).join("; ")],
          ["retry", retry && `possible${again}`],
          ["name", run.name],
          ["workflow", `${workflow.library}/${workflow.id}@${workflow.version}`],
          ["started", `${time(run.createdAt)} by ${run.startedBy}`],
          ["ended", run.endedAt && time(run.endedAt)],
          ["cost", costOf(run.usage)],
          ["input", excerpt(run.input)],
          ["output", excerpt(run.output)],
        ],
        width,
      ),
    ],
    ["Work", waterfall(spans, width)],
    ["Questions that wait", questions.join("\n")],
    ["Active nodes", nodes.join("\n")],
  );
}

async function inspect(cli: Cli, [id = "", turnId]: (string | undefined)[]): Promise<Answer> {
  const { client, signal, width } = cli;
  const kind = kindOf(id);
  if (kind === "agent" || (turnId !== undefined && kind === "run")) throw notFor(id);
  if (turnId !== undefined) {
    const turn = await client.turns.get(id, turnId, { signal });
    const trace = await client.turns.trace(id, turnId, { signal });
    return { value: { ...turn, trace }, text: turnText(turn, trace, width) };
  }
  if (kind === "run") {
    const run = await client.runs.get(id, { signal });
    const trace = await client.runs.trace(id, { signal });
    return { value: { ...run, trace }, text: runText(run, trace, width) };
  }
  const conversation = await client.conversations.get(id, { signal });
  const { turns } = await client.turns.list({ conversation: id, order: "desc", limit: TURNS, signal });
  const text = conversationText(conversation, turns, width);
  return { value: { ...conversation, newestTurns: turns }, text };
}

export const INSPECT_COMMANDS: readonly Command[] = [
  {
    name: "inspect",
    about: "status, cost, work and errors of a conversation, a turn or a run",
    args: { "<id>": "id of a conversation or a run", "[turn]": "id of a turn of the conversation" },
    run: inspect,
  },
];
