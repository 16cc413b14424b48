/** KILL-7 and KILL-8: calls to the outside. */
import type { Frame } from "../../../src/client/index.ts";
import type { History, Hit } from "../history.ts";
import { toolCallsOf } from "../script.ts";
import {
  type ConversationRecord,
  isStopped,
  killsDuring,
  type TurnRecord,
  type Violation,
} from "./records.ts";

type Requested = Extract<Frame, { type: "tool.requested" }>;
type ToolHit = Extract<Hit, { kind: "tool" }>;

export function checkCalls({ id, turns }: ConversationRecord, history: History): Violation[] {
  return turns.flatMap((turn) => {
    const kills = killsDuring(turn, history);
    return [
      ...[...operationsAmiss(turn, kills), ...sharedIds(turn, history)].map((what) => ({
        rule: "KILL-7",
        conversation: id,
        what,
      })),
      ...repeatedTooOften(turn, kills).map((what) => ({ rule: "KILL-8", conversation: id, what })),
    ];
  });
}

function operationsAmiss(turn: TurnRecord, kills: number): string[] {
  const faults: string[] = [];
  const requested = turn.frames.filter((frame): frame is Requested => frame.type === "tool.requested");
  const hits = turn.hits.filter((hit): hit is ToolHit => hit.kind === "tool");
  for (const { operationId = "", data } of requested) {
    const own = hits.filter((hit) => hit.operationId === operationId);
    const outcome = turn.frames.find(
      (frame) =>
        frame.operationId === operationId &&
        (frame.type === "tool.completed" || frame.type === "tool.failed"),
    );
    const name = `${data.name} ${operationId}`;
    if (data.name === "once" && own.length > 1) faults.push(`${name} was hit ${own.length} times`);
    if (outcome?.type === "tool.completed" && own.length === 0)
      faults.push(`${name} succeeded without a hit`);
    if (outcome?.type === "tool.failed") {
      const { message } = outcome.data.error;
      const isUnknown = data.name === "once" && message.startsWith("Outcome unknown") && kills > 0;
      if (!isUnknown) faults.push(`${name} failed: ${message}`);
    }
  }
  for (const hit of hits) {
    const operation = requested.find(({ operationId }) => operationId === hit.operationId);
    // A pure tool may run before its reply is committed. The stop came before the commit.
    if (operation === undefined && hit.effect === "pure" && isStopped(turn)) continue;
    if (operation?.data.name !== hit.effect || !isCallOf(operation, hit)) {
      faults.push(`${hit.call} was hit with the wrong operation id ${hit.operationId}`);
    }
  }
  if (turn.message === undefined || !turn.frames.some(({ type }) => type === "turn.completed")) return faults;
  const calls = toolCallsOf(turn.message.script).length;
  if (requested.length !== calls)
    faults.push(`${turn.turnId} has ${requested.length} operations, not ${calls}`);
  return faults;
}

/**
 * Finds operation ids with two calls. Services use the id as an idempotency key, so they would answer only the first of the
 * two calls.
 */
function sharedIds({ hits }: TurnRecord, history: History): string[] {
  const calls = new Map(hits.flatMap((hit) => (hit.kind === "tool" ? [[hit.operationId, hit.call]] : [])));
  return history.hits.flatMap((hit) => {
    const call = hit.kind === "tool" ? calls.get(hit.operationId) : undefined;
    return hit.kind === "tool" && call !== undefined && call !== hit.call
      ? [`${hit.operationId} is ${call} and ${hit.call}`]
      : [];
  });
}

function isCallOf({ data }: Requested, { call }: ToolHit): boolean {
  const { input } = data;
  const url = typeof input === "object" && input !== null && "url" in input ? String(input.url) : "";
  return URL.canParse(url) && new URL(url).searchParams.get("call") === call;
}

/** Finds repeated calls. A new model call after a new message of the user (ORDER-4) is not a repetition. */
function repeatedTooOften({ hits, turnId, frames }: TurnRecord, kills: number): string[] {
  const modelCalls = hits.filter(({ kind }) => kind === "model");
  const distinct = new Set(modelCalls.map((hit) => (hit.kind === "model" ? hit.call : 0))).size;
  const needed = distinct + frames.filter(isReconsidered).length;
  const operations = Map.groupBy(
    hits.filter((hit): hit is ToolHit => hit.kind === "tool"),
    ({ call }) => call,
  );
  return [
    ...(modelCalls.length > needed + kills
      ? [`${turnId} made ${modelCalls.length} model calls instead of ${needed}, with ${kills} kills`]
      : []),
    ...[...operations].flatMap(([call, own]) =>
      own.length > 1 + kills ? [`${call} was hit ${own.length} times with ${kills} kills`] : [],
    ),
  ];
}

function isReconsidered(frame: Frame): boolean {
  return frame.type === "message.reset" && frame.data.reason === "newer_message";
}
