/** The mailbox of a Durable Object, over its storage, its job queue and its environment. */
import type { LifecycleCapability } from "agents/lifecycle";
import { systemClock } from "../../../ports/system.ts";
import { durableStorage } from "../../../ports/workers/durable-storage.ts";
import type { Envelope } from "../../../protocol/envelope.ts";
import type { MailboxPeer } from "../../../protocol/mailbox-api.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { durableActor } from "../lookup/durable-actors.ts";
import { Wakeups } from "../timers/wakeups.ts";
import { Mailbox } from "./mailbox.ts";
import type { MailboxPorts } from "./ports.ts";

const WAKEUP = "mailbox";

/** The ports are functions because the fields of a subclass exist only after the constructor. */
export interface ActorMailboxPorts
  extends Pick<MailboxPorts, "self" | "directory" | "checkStorage" | "whenArmed"> {
  readonly storage: DurableObjectStorage;
  readonly lifecycle: { use(capability: LifecycleCapability): unknown };
  /** Resolves when an envelope may be delivered. */
  readonly whenDeliverable: (envelope: Envelope) => Promise<void>;
  /** Has the declared bindings, if any, of other actors. */
  readonly env: object;
}

/** Creates an actor's mailbox and installs its wake-ups. Runs no statement until something is sent or received. */
export function actorMailbox({
  storage,
  lifecycle,
  env,
  whenDeliverable,
  ...ports
}: ActorMailboxPorts): Mailbox {
  // A capability of its own: the queue keeps the owner's id with each stored job.
  const wakeups = new Wakeups({ [WAKEUP]: () => mailbox.wake() }, { id: "dramatis-mailbox" });
  const mailbox = new Mailbox({
    ...ports,
    ...durableStorage(storage),
    clock: systemClock,
    arm: (milliseconds) => wakeups.arm(WAKEUP, milliseconds),
    async deliver(envelope, attempt) {
      await whenDeliverable(envelope);
      try {
        const peer = await durableActor<MailboxPeer>(env, envelope.to);
        return await peer.receive(envelope, attempt);
      } catch (error) {
        // The actor does not exist, so the envelope was not sent.
        if (error instanceof DramatisError)
          return { type: "refused", error: error.toData(), recorded: false };
        throw error;
      }
    },
  });
  lifecycle.use(wakeups);
  return mailbox;
}
