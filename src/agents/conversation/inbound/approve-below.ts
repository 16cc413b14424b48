/** Answers to requests for approval that an agent below asks: they go to its conversation, which decides (ASK-1). */
import type { Clock } from "../../../ports/clock.ts";
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import type { ApprovalAnswer } from "../../../protocol/approval.ts";
import type { ConversationApi, ResolvedApproval } from "../../../protocol/conversation-api.ts";
import { unwrap } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";

/** Milliseconds in which the conversation below must answer. */
export const BELOW_TIMEOUT_MS = 15_000;

/** Passes a person's answer on. Throws `UNAVAILABLE` if the conversation does not answer in time: it may have the answer. */
export async function approveBelow(
  clock: Pick<Clock, "timer">,
  conversation: () => Promise<Pick<ConversationApi, "resolveApproval">>,
  ...answer: [principal: Principal, operationId: string, answer: ApprovalAnswer]
): Promise<ResolvedApproval> {
  const reason = unanswered("The conversation of the agent that asks", BELOW_TIMEOUT_MS);
  const resolve = async () => (await conversation()).resolveApproval(...answer);
  return unwrap(await withDeadline(clock, BELOW_TIMEOUT_MS, resolve, { reason }));
}
