/** The model calls of a turn, and their usage, as readers see them. Pure. */
import { profileAt } from "../../../library/definitions/version-chain.ts";
import { closeCallRecord, openCallRecord, type ProviderCallRecord } from "../../../model/call-record.ts";
import { runIdOf } from "../../../model/correlation.ts";
import { dollarsOf, toDollars } from "../../../model/cost.ts";
import { addUsage, type TokenUsage, type UsageTotals } from "../../../model/usage.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import { callId, turnId } from "../../../protocol/ids.ts";
import type { CallView, TurnUsage, UsageView } from "../../../protocol/usage-schemas.ts";
import { defined } from "../../../shared/defined.ts";
import { toIso } from "../../../shared/time.ts";
import { openRecord, outcomeOf, totalsOf } from "../core/calls.ts";
import { correlationOf } from "../core/correlation.ts";
import { type ConversationIdentity, chainOf } from "../core/state.ts";
import type { CallRecord, Turn } from "../core/turn.ts";

/** Returns the records of a turn's calls, including the call in progress. `previous` is the id of the previous turn. */
export function callViews(
  record: ConversationIdentity,
  turn: Turn,
  previous: string | undefined,
): CallView[] {
  const { agentId: agent, calls = [], call } = turn;
  const { id: conversationId } = record;
  const chain = chainOf(record, agent);
  const parentCorrelationId = previous === undefined ? undefined : runIdOf(conversationId, previous);
  const opened = ({ profile, startedAt }: Pick<CallRecord, "profile" | "startedAt">, index: number) => {
    const { provider = "", modelId: model = "" } = profileAt(chain, profile) ?? {};
    return openCallRecord({
      id: callId(turn, index),
      conversationId,
      turnId: turnId(turn),
      agent,
      provider,
      model,
      ...defined({ parentCorrelationId }),
      requestMetadata: { correlationId: correlationOf(turn) },
      startedAt,
    });
  };
  const views = calls.map((made, index) => ({
    ...closed(chain, opened(made, index), made),
    ...defined({ estimated: made.estimate }),
  }));
  if (call !== null && openRecord(turn) === undefined)
    views.push(opened({ profile: call.profile ?? 0, startedAt: call.notBefore }, calls.length));
  // SAFETY: these records have no metadata but `correlationId` and `firstTextAt`, which are strings.
  return views as CallView[];
}

function closed(chain: VersionChain, view: ProviderCallRecord, record: CallRecord): ProviderCallRecord {
  const { profile, finishedAt, firstTextAt, requestId, usage } = record;
  const outcome = outcomeOf(record);
  if (outcome === undefined || finishedAt === undefined) return view;
  const cost = dollarsOf(usage, profileAt(chain, profile));
  const responseMetadata = firstTextAt === undefined ? undefined : { firstTextAt: toIso(firstTextAt) };
  return closeCallRecord(view, {
    outcome,
    ...defined({ usage, cost, requestId, responseMetadata }),
    finishedAt,
  });
}

/** Returns the tokens of all calls; of the replies, for a turn without records. */
export function turnUsage({ calls, replies }: Turn): TurnUsage | null {
  const counted: readonly { usage?: TokenUsage }[] = calls ?? replies;
  const usage = counted.reduce<TokenUsage | undefined>((sum, call) => addUsage(sum, call.usage), undefined);
  if (usage === undefined) return null;
  const { inputTokens = 0, outputTokens = 0, totalTokens: _total, ...others } = usage;
  return { inputTokens, outputTokens, ...others };
}

/** Returns US dollars; `null` if no call has a price. */
export function turnCost(chain: VersionChain, { calls = [] }: Turn): number | null {
  const isPriced = calls.some(
    ({ usage, profile }) => dollarsOf(usage, profileAt(chain, profile)) !== undefined,
  );
  return isPriced ? toDollars(totalsOf(calls, chain).nanoDollars) : null;
}

export function usageView({ nanoDollars, ...counts }: UsageTotals): UsageView {
  return { ...counts, cost: toDollars(nanoDollars) };
}
