/** The entry of a conversation in the directory and in the indexes of its agents. */
import { CONVERSATION_OPENED } from "../../../protocol/agent-api.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import { Projection } from "../../base/projections/projection.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ActorContext, StoredConversation } from "../context.ts";
import type { ConversationIdentity } from "../core/state.ts";
import { conversationSummary } from "../reads/views.ts";

interface ListingContext extends Pick<ActorContext, "clock" | "directory" | "send"> {
  runtime: Pick<StoredConversation, "state">;
}

export class ConversationListing extends Projection {
  constructor(
    private readonly context: ListingContext,
    wakeup: Wakeup,
  ) {
    super({
      clock: context.clock,
      wakeup,
      put: async () => {
        const { record } = context.runtime.state;
        await context.directory()?.putConversation(record.tenant, conversationSummary(record));
      },
      changedAt: () => context.runtime.state.record.createdAt,
    });
  }

  /**
   * Call it in the transaction that creates the conversation, and `publish` after the commit. Returns the wake-ups: await them before
   * acknowledging the creation.
   */
  announce({ tenant, agents }: ConversationIdentity): Promise<void>[] {
    const sent = agents.map(({ id }) =>
      this.context.send({
        operationId: newOperationId(),
        to: { kind: "agent", tenant, id },
        type: CONVERSATION_OPENED,
        body: {},
      }),
    );
    return [...sent, this.note()];
  }
}
