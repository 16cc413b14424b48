/** Tells a conversation's agent and the directory that it exists. */
import type { Directory } from "../../../d1/directory.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { CONVERSATION_OPENED } from "../../agent/envelopes.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import { Publication } from "../../base/mirror/publication.ts";
import type { ConversationIdentity } from "../core/state.ts";
import { conversationView } from "../reads/views.ts";

export interface AnnouncementPorts {
  record(): ConversationIdentity;
  /** `null` where there is none. */
  directory(): Directory | null;
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  transaction<Value>(body: () => Value): Value;
  /** Milliseconds since the epoch. */
  now(): number;
  /** The wake-up that calls `wake`, as `Wakeups.arm` and `Wakeups.disarm`. */
  arm(milliseconds: number): Promise<void>;
  disarm(): void;
}

export class Announcement {
  readonly #publication: Publication;

  constructor(private readonly ports: AnnouncementPorts) {
    this.#publication = new Publication({
      put: async () => {
        const record = ports.record();
        await ports.directory()?.putConversation(record.tenant, conversationView(record, 0));
      },
      changedAt: () => ports.record().createdAt,
      now: () => ports.now(),
      arm: (milliseconds) => ports.arm(milliseconds),
      disarm: () => ports.disarm(),
    });
  }

  /** Call it in the transaction that creates the conversation, and await what it answers behind it. */
  note({ tenant, agentId }: ConversationIdentity): Promise<void>[] {
    const told = this.ports.send({
      operationId: newOperationId(),
      to: { kind: "agent", tenant, id: agentId },
      type: CONVERSATION_OPENED,
      body: {},
    });
    return [told, this.#publication.note()];
  }

  /** As `Publication.publish`. */
  publish(): Promise<void> {
    return this.#publication.publish();
  }

  /** As `Publication.wake`. */
  wake(): number | null {
    return this.#publication.wake();
  }

  /** Release 0.1.0 armed this until both knew of the conversation, and does not say who did not. It comes once. */
  noteAgain(): null {
    for (const armed of this.ports.transaction(() => this.note(this.ports.record())))
      armed.catch((error: unknown) => console.error(error));
    void this.#publication.publish();
    return null;
  }
}
