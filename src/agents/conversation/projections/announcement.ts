/** Announces a new conversation to its agents and to the directory. */

import type { Directory } from "../../../d1/directory.ts";
import type { Clock } from "../../../ports/clock.ts";
import { CONVERSATION_OPENED } from "../../../protocol/agent-api.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import { Projection } from "../../base/projections/projection.ts";
import type { Wakeup } from "../../base/timers/wakeups.ts";
import type { ConversationIdentity } from "../core/state.ts";
import { conversationSummary } from "../reads/views.ts";

export interface AnnouncementPorts {
  record(): ConversationIdentity;
  /** Returns `null` where there is no directory. */
  directory(): Directory | null;
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  transaction<Value>(body: () => Value): Value;
  clock: Pick<Clock, "now">;
  /** The wake-up that calls `listing.wake`. */
  wakeup: Wakeup;
}

export class Announcement {
  /** The conversation's entry in the directory. */
  readonly listing: Projection;

  constructor(private readonly ports: AnnouncementPorts) {
    const { clock, wakeup } = ports;
    this.listing = new Projection({
      clock,
      wakeup,
      put: async () => {
        const record = ports.record();
        await ports.directory()?.putConversation(record.tenant, conversationSummary(record));
      },
      changedAt: () => ports.record().createdAt,
    });
  }

  /**
   * Call it in the transaction that creates the conversation, and `listing.publish` after the commit. Returns the
   * wake-ups: await them before acknowledging the creation.
   */
  note({ tenant, agents }: ConversationIdentity): Promise<void>[] {
    const sent = agents.map(({ id }) =>
      this.ports.send({
        operationId: newOperationId(),
        to: { kind: "agent", tenant, id },
        type: CONVERSATION_OPENED,
        body: {},
      }),
    );
    return [...sent, this.listing.note()];
  }

  /** Handles the wake-up that release 0.1.0 armed until agent and directory had both recorded the conversation. */
  noteAgain(): null {
    const armed = this.ports.transaction(() => this.note(this.ports.record()));
    Promise.all(armed).catch((error: unknown) => console.error(error));
    void this.listing.publish();
    return null;
  }
}
