/** The mailbox of a Durable Object: its storage, its job queue, and the other actors by name. */
import type { LifecycleCapability } from "agents/lifecycle";
import { systemClock } from "../../../ports/system.ts";
import { DurableKeyValue } from "../../../ports/workers/durable-key-value.ts";
import { DurableSqlDatabase } from "../../../ports/workers/durable-sql-database.ts";
import type { Answer } from "../../../protocol/mailbox-api.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { durableMailboxes } from "../lookup/durable-actors.ts";
import { Wakeups } from "../timers/wakeups.ts";
import { Mailbox } from "./mailbox.ts";
import type { MailboxPorts } from "./ports.ts";

const WAKEUP = "mailbox";

/** What the mailbox asks of its actor; asked when needed, for the fields of a subclass come after the constructor. */
export interface ActorMailboxPorts extends Pick<MailboxPorts, "self" | "directory" | "checkStorage"> {
  readonly storage: DurableObjectStorage;
  readonly lifecycle: { use(capability: LifecycleCapability): unknown };
  /** The bindings that other actors are found by. */
  readonly env: object;
}

/** Makes an actor's mailbox and installs its wake-ups. Costs no statement until something is sent or received. */
export function actorMailbox({
  storage,
  lifecycle,
  env,
  self,
  directory,
  checkStorage,
}: ActorMailboxPorts): Mailbox {
  const wakeups = new Wakeups({ [WAKEUP]: () => mailbox.wake() }, "dramatis-mailbox");
  const mailbox = new Mailbox({
    database: new DurableSqlDatabase(storage),
    keyValue: new DurableKeyValue(storage),
    clock: systemClock,
    checkStorage,
    self,
    directory,
    arm: (milliseconds) => wakeups.arm(WAKEUP, milliseconds),
    async deliver(envelope, attempt) {
      try {
        const peer = await durableMailboxes(env)(envelope.to);
        return await peer.receive(envelope, attempt);
      } catch (error) {
        if (error instanceof DramatisError) return notSent(error);
        throw error;
      }
    },
  });
  lifecycle.use(wakeups);
  return mailbox;
}

/** There is no such actor: nothing was sent to anybody. */
function notSent(error: DramatisError): Answer {
  return { type: "refused", error: error.toData(), recorded: false };
}
