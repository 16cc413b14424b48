/**
 * Planning the compaction of a session: a summary by a model replaces the older turns of a history that fills its budget. Pure.
 *
 * SELFCOMPACT-1  A turn that ends starts a compaction if the history exceeds `COMPACT_ABOVE` of its budget. The compaction covers whole
 *                turns, and keeps the newest turns within `COMPACT_KEEP` of the budget. If several turns end in one commit, the first
 *                decides, and the later turns are kept. A stopped or ended conversation starts no compaction. A stop ends running
 *                compactions. It counts the interrupted attempt, and the next compaction has the remaining attempts.
 * SELFCOMPACT-2  No turn waits for a compaction, and a cycle that has begun keeps its history. Until the compaction commits, history is cut
 *                as before.
 * SELFCOMPACT-3  A history is tried once. A compaction fails if all its attempts fail or an error is final. It also fails if its summary is
 *                unfinished, empty, more than twice its target, or not shorter than the replaced turns. The next compaction starts when its cut has passed all of this history.
 */
import { compactionProfile, contextTokens } from "../../../../library/definitions/version-chain.ts";
import { summaryContent } from "../../../../memory/session/compaction.ts";
import { type Cut, cutOf, type WindowSizes } from "../../../../memory/session/cut.ts";
import { estimateTokens } from "../../../../memory/session/tokens.ts";
import type { ModelReply } from "../../../../model/reply.ts";
import type { VersionChain } from "../../../../protocol/definitions.ts";
import { COMPACT_ABOVE, COMPACT_KEEP, MODEL_ATTEMPTS, SUMMARY_SHARE } from "../conversation-limits.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { SummaryCall } from "../side-calls.ts";
import type { SideCallCompleted } from "../signals.ts";
import {
  type ConversationState,
  chainOf,
  compactionOf,
  isPresent,
  nextEvent,
  type SessionCompaction,
} from "../state.ts";
import type { Transition } from "../transition.ts";
import type { Turn } from "../turn.ts";
import { historyBudget } from "./context.ts";

/** Tokens of the order to summarise, about. */
const ORDER_TOKENS = 250;

/** Starts the compactions that the end of turns makes due. Call it after every change. */
export function planCompactions(
  before: Transition,
  { state, touched }: Transition,
  input: PlanInput,
): AgentDecision[] {
  if (state.gate !== "open" || state.status !== "active" || state.orchestration === false) return [];
  const ended = [...touched.values()].filter(
    (turn) => turn.status !== "active" && before.touched.get(turn.n) !== turn,
  );
  return ended.flatMap((turn) => startAfter(state, turn, input));
}

function startAfter(state: ConversationState, turn: Turn, { sizesAfter }: PlanInput): AgentDecision[] {
  const { n, agentId: session } = turn;
  const known = compactionOf(state, session);
  if (sizesAfter === undefined || known?.call !== undefined || !isPresent(state.record, session)) return [];
  const budget = historyBudget(chainOf(state.record, session), turn.tools);
  const sizes = budget > 0 ? sizesAfter(turn, highMark(budget)) : null;
  const cut = sizes === null ? null : dueCut(sizes, budget);
  if (cut === null) return [];
  const attempt = attemptsAt(cut, known) + 1;
  if (attempt > MODEL_ATTEMPTS) return [];
  const upTo = nextEvent(state.sessions, session);
  return [{ type: "START_COMPACTION", session, turn: n, upTo, attempt, ...cut }];
}

/** Returns the attempts for the history of a cut. A failed compaction has no attempt left. */
function attemptsAt({ cover }: Cut, known: SessionCompaction | undefined): number {
  if (known === undefined || cover >= known.upTo) return 0;
  return known.tried ?? MODEL_ATTEMPTS;
}

/** Returns the cut of a history within `budget` tokens; `null` if no cut is due. */
export function dueCut(sizes: WindowSizes, budget: number): Cut | null {
  const limits = { high: highMark(budget), keep: budget * COMPACT_KEEP, least: 2 * budget * SUMMARY_SHARE };
  return cutOf(sizes, limits);
}

function highMark(budget: number): number {
  return budget * COMPACT_ABOVE;
}

/** Returns the target length of a summary, in tokens. */
export function summaryTokens(chain: VersionChain): number {
  return Math.ceil(contextTokens(chain) * SUMMARY_SHARE);
}

/** Estimates the input of a call for a summary that replaces `tokens`. */
export function summaryInput(chain: VersionChain, tokens: number): number {
  const profile = compactionProfile(chain);
  const frame = contextTokens(chain, profile) - historyBudget(chain, [], profile);
  return frame + tokens + ORDER_TOKENS;
}

/** Plans after the reply of the model. */
export function acceptedSummary(
  { record }: ConversationState,
  compaction: SummaryCall,
  { session, reply, facts }: SideCallCompleted,
  { now }: PlanInput,
): AgentDecision {
  const content = summaryContent(reply.text.trim());
  const tokens = estimateTokens(content);
  const problem = problemOf(reply, tokens, compaction, summaryTokens(chainOf(record, session)));
  const made = { facts, category: "none" as const };
  if (problem === null) return { type: "COMPACT_SESSION", session, content, tokens, made };
  const error = { code: "MODEL_FAILED", message: problem } as const;
  // The next attempt forbids calls.
  const mayRetry = reply.toolCalls.length > 0 && compaction.call.attempt < MODEL_ATTEMPTS;
  return mayRetry
    ? { type: "RETRY_SIDE_CALL", session, notBefore: now, error, made }
    : { type: "GIVE_UP_SIDE_CALL", session, error, made };
}

/** Describes why a reply is no summary; `null` for a summary. */
function problemOf(
  { toolCalls, finishReason, text }: ModelReply,
  tokens: number,
  { tokens: before }: Pick<SummaryCall, "tokens">,
  target: number,
): string | null {
  if (toolCalls.length > 0) return "The model called tools instead of giving a summary.";
  if (finishReason !== "stop") return `The summary was not finished (${finishReason}).`;
  if (text.trim() === "") return "The model gave no summary.";
  const most = Math.min(2 * target, before);
  return tokens < most ? null : `The summary has ${tokens} tokens; it must have fewer than ${most}.`;
}
