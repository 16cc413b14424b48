/** What the model calls of a turn took, as readers see it. Pure. */

import { profileAt } from "../../../library/version-chain.ts";
import type { ProviderCallRecord } from "../../../model/call-record.ts";
import { closeCallRecord, openCallRecord, toIso } from "../../../model/call-record.ts";
import { runIdOf } from "../../../model/correlation.ts";
import { dollarsOf, toDollars } from "../../../model/cost.ts";
import type { TokenUsage, UsageTotals } from "../../../model/usage.ts";
import { addUsage } from "../../../model/usage.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import type { TurnUsage, UsageView } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import { openRecord, outcomeOf, totalsOf } from "../core/calls.ts";
import { callId, turnId } from "../core/ids.ts";
import type { CallRecord, ConversationIdentity, Turn } from "../core/state.ts";

/** The records of a turn's calls, the one in progress included. `previous` is the id of the turn before. */
export function callViews(
  { id: conversationId, chain }: ConversationIdentity,
  turn: Turn,
  previous: string | undefined,
): ProviderCallRecord[] {
  const { stem, n, agentId, calls = [], call } = turn;
  const opened = ({ profile, startedAt }: Pick<CallRecord, "profile" | "startedAt">, index: number) => {
    const { provider = "", modelId: model = "" } = profileAt(chain, profile) ?? {};
    return openCallRecord({
      id: callId(stem, n, index),
      conversationId,
      turnId: turnId(stem, n),
      agent: agentId,
      provider,
      model,
      ...(previous === undefined ? {} : { parentCorrelationId: runIdOf(conversationId, previous) }),
      startedAt,
    });
  };
  const views = calls.map((record, index) => closed(chain, opened(record, index), record));
  if (call === null || openRecord(turn) !== undefined) return views;
  return [...views, opened({ profile: call.profile ?? 0, startedAt: call.notBefore }, calls.length)];
}

function closed(chain: VersionChain, view: ProviderCallRecord, record: CallRecord): ProviderCallRecord {
  const { profile, finishedAt, firstTextAt, requestId, usage } = record;
  const outcome = outcomeOf(record);
  if (outcome === undefined || finishedAt === undefined) return view;
  const cost = dollarsOf(usage, profileAt(chain, profile));
  return closeCallRecord(view, {
    outcome,
    ...defined({ usage, cost, requestId }),
    ...(firstTextAt === undefined ? {} : { responseMetadata: { firstTextAt: toIso(firstTextAt) } }),
    finishedAt,
  });
}

/** Tokens of all calls; of a turn without records, of its replies. */
export function turnUsage({ calls, replies }: Turn): TurnUsage | null {
  const counted: readonly { usage?: TokenUsage }[] = calls ?? replies;
  const usage = counted.reduce<TokenUsage | undefined>((sum, call) => addUsage(sum, call.usage), undefined);
  if (usage === undefined) return null;
  const { inputTokens = 0, outputTokens = 0, totalTokens: _total, ...others } = usage;
  return { inputTokens, outputTokens, ...others };
}

/** US dollars; `null` where no call has a price. */
export function turnCost(chain: VersionChain, { calls = [] }: Turn): number | null {
  const isPriced = calls.some(
    ({ usage, profile }) => dollarsOf(usage, profileAt(chain, profile)) !== undefined,
  );
  return isPriced ? toDollars(totalsOf(calls, chain).nanoDollars) : null;
}

export function usageView({ nanoDollars, ...counts }: UsageTotals): UsageView {
  return { ...counts, cost: toDollars(nanoDollars) };
}
