/**
 * The receiver of the cancellations of remote tasks (A2ATASK-2). The mailbox repeats a cancellation that the other server did not answer.
 *
 * A2ATASK-5  If the conversation was deleted, the cancellation uses the call in its envelope. So it is repeated as before the deletion.
 * A2ATASK-6  If a message is under way that must not be sent again, the cancellation waits up to a minute for the task that it begins.
 */
import { resolveId } from "../../../protocol/ids.ts";
import type { Answer, MailboxPeer } from "../../../protocol/mailbox-api.ts";
import {
  type LostMessage,
  remoteCallKey,
  remoteCallSchema,
  remoteCancelSchema,
  taskOfCall,
} from "../../../protocol/remote-call.ts";
import { toErrorData, unavailable } from "../../../shared/errors.ts";
import { validate } from "../../../shared/validation.ts";
import type { ActorContext, StoredConversation } from "../context.ts";
import { shownCall } from "../core/shown-call.ts";
import { chainOf } from "../core/state.ts";
import type { ConversationRuntime } from "../runtime.ts";

/** A message has its answer within this time after its call began, in milliseconds. */
const UNDER_WAY_MS = 60_000;

interface RemoteTasksContext extends Pick<ActorContext, "cancelRemote" | "clock"> {
  runtime: StoredConversation & Pick<ConversationRuntime, "toolState" | "exists">;
}

export function remoteTasks({ runtime, cancelRemote, clock }: RemoteTasksContext): MailboxPeer {
  return {
    async receive({ to: { tenant }, body }): Promise<Answer> {
      const cancel = validate(remoteCancelSchema, body);
      const { operationId, tool, url, projectId } = cancel;
      const key = remoteCallKey(operationId);
      const stored = runtime.exists ? runtime.toolState.get(key) : (cancel.call ?? null);
      // No message was sent.
      if (stored === null) return DONE;
      try {
        const call = validate(remoteCallSchema, stored);
        const lost = runtime.exists ? lostMessage(runtime, operationId) : undefined;
        const isNew = clock.now() - call.begunAt < UNDER_WAY_MS;
        if (runtime.exists && isNew && taskOfCall(call) === undefined && lost === undefined)
          throw unavailable("The answer that names the task is under way.", { retriable: true });
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
