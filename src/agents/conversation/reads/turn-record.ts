/** A turn as the directory lists it. Pure. */
import { messageId, turnId } from "../../../protocol/ids.ts";
import {
  MAX_RECORD_MESSAGES,
  MAX_RECORD_NAMES,
  MAX_RECORD_TEXT,
  type TurnRecord,
} from "../../../protocol/turn-records.ts";
import { plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { shorten } from "../../../shared/text.ts";
import { toIso } from "../../../shared/time.ts";
import { hookRunMember, runMember, userOf } from "../core/called-workflow.ts";
import { correlationOf } from "../core/correlation.ts";
import { type ConversationIdentity, chainOf } from "../core/state.ts";
import { issuesOf, type Turn } from "../core/turn.ts";
import { agentReplies } from "../core/turn-operations.ts";
import { turnCost, turnUsage } from "./call-views.ts";

/** Returns the record of a turn. It has the texts of messages, but no reasoning and no data of tools. */
export function turnRecord(record: ConversationIdentity, turn: Turn): TurnRecord {
  const { caller, error, operations, completedAt } = turn;
  // The end of an extraction may be no entry of the turn, so lists would lack it.
  const { memoryExtractionFailed: _, ...issues } = turn.issues;
  const called = operations.map(({ tool, name }) =>
    tool === null ? name : tool.library === "" ? tool.id : `${tool.library}/${tool.id}`,
  );
  return {
    id: turnId(turn),
    conversationId: record.id,
    agentId: turn.agentId,
    projectId: record.projectId,
    ...defined({ userId: userOf(record, turn), errorCode: error?.code }),
    ...issuesOf({ issues }),
    ...defined({ replacedBy: turn.replacedBy }),
    ...(caller.type === "user" ? {} : { caller }),
    status: turn.status,
    createdAt: toIso(turn.createdAt),
    completedAt: completedAt === undefined ? null : toIso(completedAt),
    ...defined({ updatedAt: updateOf(turn) }),
    correlationId: correlationOf(turn),
    tools: unique(called),
    targetKinds: unique(operations.map(({ target }) => target)),
    runIds: unique(runsOf(record, turn)),
    usage: turnUsage(turn),
    cost: turnCost(chainOf(record, turn.agentId), turn),
    messages: messagesOf(turn),
  };
}

/** Returns the time of the newest reply or answer of an active turn, if it has one. */
function updateOf({ status, replies, operations }: Turn): string | undefined {
  const times = [...replies.map(({ at }) => at), ...operations.flatMap(({ approval }) => approval?.at ?? [])];
  return status !== "active" || times.length === 0 ? undefined : toIso(Math.max(...times));
}

function messagesOf(turn: Turn): TurnRecord["messages"] {
  const role = turn.caller.type === "agent" ? "agent" : "user";
  const first = {
    id: messageId(turn, 0),
    role,
    text: shorten(plainText(turn.input), MAX_RECORD_TEXT),
  } as const;
  const answers = agentReplies(turn).slice(1 - MAX_RECORD_MESSAGES);
  return [
    first,
    ...answers.map(({ item, text }) => ({
      id: messageId(turn, item),
      role: "agent" as const,
      text: shorten(text, MAX_RECORD_TEXT),
    })),
  ];
}

function runsOf(record: ConversationIdentity, turn: Turn): string[] {
  const { caller, operations, hooks = {} } = turn;
  const { contextAssembly, memoryExtraction } = chainOf(record, turn.agentId);
  const hookRuns = [
    { hook: contextAssembly, item: hooks.assembly, attempt: hooks.attempt ?? 1 },
    { hook: memoryExtraction, item: hooks.extraction, attempt: hooks.extractionAttempt ?? 1 },
  ].flatMap(({ hook, item, attempt }) =>
    item === undefined ? [] : (hookRunMember(record, turn, hook, { item, attempt }).runId ?? []),
  );
  const called = operations.flatMap((operation) => runMember(record, turn, operation).runId ?? []);
  return [...(caller.type === "workflow" ? [caller.runId] : []), ...called, ...hookRuns];
}

function unique<Name extends string>(names: readonly Name[]): Name[] {
  return [...new Set(names)].slice(0, MAX_RECORD_NAMES);
}
