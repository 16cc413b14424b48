/** The entry of a conversation in the directory and in the indexes of its agents. */
import type { Directory } from "../../../d1/directory.ts";
import { CONVERSATION_OPENED } from "../../../protocol/agent-api.ts";
import { Copy } from "../../base/copies/copy.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ActorContext, StoredConversation } from "../context.ts";
import type { ConversationIdentity } from "../core/state.ts";
import { conversationSummary } from "../reads/views.ts";

interface ListingContext extends Pick<ActorContext, "clock" | "directory" | "send"> {
  copies: { events: { note(): Promise<void> } };
  runtime: Pick<StoredConversation, "state">;
}

export class ConversationListing extends Copy<Directory> {
  constructor(
    private readonly context: ListingContext,
    wakeup: Wakeup,
  ) {
    super({
      clock: context.clock,
      wakeup,
      directory: context.directory,
      put: async (directory) => {
        const { record, seq } = context.runtime.state;
        // A new name does not put the conversation into lists.
        if (record.listed === false) return;
        return directory.putConversation(record.tenant, conversationSummary(record), seq);
      },
      changedAt: () => context.runtime.state.record.createdAt,
    });
  }

  /** As `Copy.note`, also for the log of events: it has the people who may read the conversation. */
  override note(): Promise<void> {
    const noted = [super.note(), this.context.copies.events.note()];
    return Promise.all(noted).then(() => undefined);
  }

  /**
   * Call it in the transaction that creates the conversation, and `publish` after the commit. Returns the wake-ups: await them before
   * acknowledging the creation. The log of events gets the creation with the next commit.
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
    return [...sent, super.note()];
  }
}
