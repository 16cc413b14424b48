/**
 * The receiver of the cancellations of remote tasks (A2ATASK-2). The mailbox repeats a cancellation that the other server did not answer.
 *
 * A2ATASK-5  If the conversation was deleted, the cancellation uses the call in its envelope. So it is repeated as before the deletion.
 */
import { resolveId } from "../../../protocol/ids.ts";
import type { Answer, MailboxPeer } from "../../../protocol/mailbox-api.ts";
import {
  type LostMessage,
  remoteCallKey,
  remoteCallSchema,
  remoteCancelSchema,
} from "../../../protocol/remote-call.ts";
import { toErrorData } from "../../../shared/errors.ts";
import { validate } from "../../../shared/validation.ts";
import type { ActorContext, StoredConversation } from "../context.ts";
import { shownCall } from "../core/shown-call.ts";
import { chainOf } from "../core/state.ts";
import type { ConversationRuntime } from "../runtime.ts";

interface RemoteTasksContext extends Pick<ActorContext, "cancelRemote"> {
  runtime: StoredConversation & Pick<ConversationRuntime, "toolState" | "exists">;
}

export function remoteTasks({ runtime, cancelRemote }: RemoteTasksContext): MailboxPeer {
  return {
    async receive({ to: { tenant }, body }): Promise<Answer> {
      const cancel = validate(remoteCancelSchema, body);
      const { operationId, tool, url } = cancel;
      const key = remoteCallKey(operationId);
      const stored = runtime.exists ? runtime.toolState.get(key) : (cancel.call ?? null);
      // No message was sent.
      if (stored === null) return DONE;
      try {
        const projectId = cancel.projectId ?? runtime.state.record.projectId;
        const call = validate(remoteCallSchema, stored);
        const lost = runtime.exists ? lostMessage(runtime, operationId) : undefined;
        await cancelRemote?.({ tenant, projectId }, { tool, url }, call, lost);
      } catch (error) {
        const data = toErrorData(error);
        if (data.retriable) return { type: "busy", error: data };
        if (runtime.exists) runtime.toolState.put(key, null);
        return { type: "refused", error: data, recorded: true };
      }
      if (runtime.exists) runtime.toolState.put(key, null);
      return DONE;
    },
  };
}

const DONE: Answer = { type: "done", result: null };

/** Returns the message of a call if it may be sent again; `undefined` if its tool is `once`, or if the turn was erased. */
function lostMessage(
  { turn: turnAt, state: { record } }: StoredConversation,
  operationId: string,
): LostMessage | undefined {
  const found = resolveId(operationId, "op", turnAt);
  const operation = found?.turn.operations.find(({ item }) => item === found.item);
  if (found === null || operation?.effect !== "idempotent") return undefined;
  return { operationId, input: shownCall(chainOf(record, found.turn.agentId), operation).input };
}
