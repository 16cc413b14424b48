/** The request to a conversation's actor that completes a deferred operation. */
import { DramatisError, unwrap } from "../shared/errors.ts";
import type { CompletedOperation, ConversationApi } from "./conversation-api.ts";
import type { ToolOutcome } from "./requests.ts";

/** Says that the actor was ended: the handle names no conversation, and its actor goes (HANDLE-3). */
const DESTROYED = "destroyed";

/** Gives a deferred operation its result. Throws as `ConversationApi.completeOperation` fails. */
export async function completeOperationAt(
  conversation: Pick<ConversationApi, "completeOperation">,
  handle: string,
  outcome: ToolOutcome,
): Promise<CompletedOperation> {
  try {
    return unwrap(await conversation.completeOperation(handle, outcome));
  } catch (error) {
    if (error instanceof Error && error.message === DESTROYED) throw unknownHandle();
    throw error;
  }
}

/** The error of a handle that no conversation gave out. Says nothing of the handle. */
export function unknownHandle(): DramatisError {
  return new DramatisError("NOT_FOUND", "There is no deferred operation with this handle.");
}
