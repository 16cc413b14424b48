/** Announces a new conversation to its agent and to the directory. */
import type { Directory } from "../../../d1/directory.ts";
import type { Clock } from "../../../ports/clock.ts";
import { CONVERSATION_OPENED } from "../../../protocol/agent-api.ts";
import { type NewEnvelope, newOperationId } from "../../../protocol/envelope.ts";
import { Mirror } from "../../base/mirror/mirror.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ConversationIdentity } from "../core/state.ts";
import { conversationView } from "../reads/views.ts";

export interface AnnouncementPorts {
  clock: Pick<Clock, "now">;
  record(): ConversationIdentity;
  /** `null` where there is none. */
  directory(): Directory | null;
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  transaction<Value>(body: () => Value): Value;
  /** The wake-up that calls `listing.wake`. */
  wakeup: Wakeup;
}

export class Announcement {
  /** The conversation's entry in the directory. */
  readonly listing: Mirror;

  constructor(private readonly ports: AnnouncementPorts) {
    const { clock, wakeup } = ports;
    this.listing = new Mirror({
      clock,
      wakeup,
      put: async () => {
        const record = ports.record();
        await ports.directory()?.putConversation(record.tenant, conversationView(record, 0));
      },
      changedAt: () => ports.record().createdAt,
    });
  }

  /** Call it in the transaction that creates the conversation. Await the promises after the commit. */
  note({ tenant, agentId }: ConversationIdentity): Promise<void>[] {
    const sent = this.ports.send({
      operationId: newOperationId(),
      to: { kind: "agent", tenant, id: agentId },
      type: CONVERSATION_OPENED,
      body: {},
    });
    return [sent, this.listing.note()];
  }

  /** Serves the one wake-up that release 0.1.0 armed for both the agent and the directory. */
  noteAgain(): null {
    for (const armed of this.ports.transaction(() => this.note(this.ports.record())))
      armed.catch((error: unknown) => console.error(error));
    void this.listing.publish();
    return null;
  }
}
