/** The completion of deferred operations from within the Worker, such as by the handler of a webhook. */
import { completeOperationAt, unknownHandle } from "../../../protocol/complete-operation.ts";
import type { ConversationApi } from "../../../protocol/conversation-api.ts";
import type { CompletedOperation } from "../../../protocol/conversation-schemas.ts";
import { readHandle } from "../../../protocol/operation-handle.ts";
import type { ToolOutcome } from "../../../protocol/requests.ts";
import { durableActor } from "../../base/lookup/durable-actors.ts";

/**
 * Gives a deferred operation its result. Idempotent. Throws `CONFLICT` for a late or different result, and `NOT_FOUND` for an unknown
 * handle. `env` is needed only if the configuration declares a binding `Conversation`.
 *
 * @example await completeOperation(event.metadata.handle, { result: { paid: true } });
 */
export async function completeOperation(
  handle: string,
  outcome: ToolOutcome,
  env: object = {},
): Promise<CompletedOperation> {
  const read = readHandle(handle);
  if (read === null) throw unknownHandle();
  const { tenant, conversationId: id } = read.claim;
  const conversation = await durableActor<ConversationApi>(env, { kind: "conversation", tenant, id });
  return completeOperationAt(conversation, handle, outcome);
}
