/** The request to a conversation's actor that completes a deferred operation. */
import { type DramatisError, notFound, unwrap } from "../shared/errors.ts";
import type { ConversationApi } from "./conversation-api.ts";
import type { CompletedOperation } from "./conversation-schemas.ts";
import { isDestroyed } from "./destroyed.ts";
import type { ToolOutcome } from "./requests.ts";

/** Gives a deferred operation its result. Throws as `ConversationApi.completeOperation` fails. */
export async function completeOperationAt(
  conversation: Pick<ConversationApi, "completeOperation">,
  handle: string,
  outcome: ToolOutcome,
): Promise<CompletedOperation> {
  try {
    return unwrap(await conversation.completeOperation(handle, outcome));
  } catch (error) {
    // The handle names no conversation, and the actor goes (HANDLE-3).
    if (isDestroyed(error)) throw unknownHandle();
    throw error;
  }
}

/** The error for a handle that this conversation did not issue. The error does not reveal the handle. */
export function unknownHandle(): DramatisError {
  return notFound("There is no deferred operation with this handle.");
}
