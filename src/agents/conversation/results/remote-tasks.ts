/** The receiver of the cancellations of remote tasks (A2ATASK-2). The mailbox repeats a cancellation that the other server did not answer. */
import type { Answer, MailboxPeer } from "../../../protocol/mailbox-api.ts";
import { remoteCallKey, remoteCallSchema, remoteCancelSchema } from "../../../protocol/remote-call.ts";
import { toErrorData } from "../../../shared/errors.ts";
import { validate } from "../../../shared/validation.ts";
import type { ActorContext, StoredConversation } from "../context.ts";
import type { ConversationRuntime } from "../runtime.ts";

interface RemoteTasksContext extends Pick<ActorContext, "cancelRemote"> {
  runtime: StoredConversation & Pick<ConversationRuntime, "toolState">;
}

export function remoteTasks({ runtime, cancelRemote }: RemoteTasksContext): MailboxPeer {
  return {
    async receive({ body }): Promise<Answer> {
      const { operationId, tool, url } = validate(remoteCancelSchema, body);
      const call = remoteCallSchema.safeParse(runtime.toolState.get(remoteCallKey(operationId)));
      // Without a task, the attempt that still sends the message cancels the task itself.
      if (!call.success) return DONE;
      const { tenant, projectId } = runtime.state.record;
      try {
        await cancelRemote?.({ tenant, projectId }, { tool, url }, call.data);
        return DONE;
      } catch (error) {
        const data = toErrorData(error);
        return data.retriable
          ? { type: "busy", error: data }
          : { type: "refused", error: data, recorded: true };
      }
    },
  };
}

const DONE: Answer = { type: "done", result: null };
