/** The messages of a conversation to other actors, and the room for them. */
import { AGENT_CANCEL } from "../../protocol/agent-call.ts";
import type { NewEnvelope } from "../../protocol/envelope.ts";
import { RUN_CANCEL } from "../../protocol/run-call.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import type { Withdrawal } from "../base/runtime/actor-core.ts";
import type { PlanInput } from "./core/decisions.ts";

/** The sending side of a mailbox. */
export type Outbound = Pick<Mailbox, "send" | "withdraw" | "discard" | "room">;

export interface OutgoingPorts extends Pick<PlanInput, "room"> {
  /** As `Mailbox.send`. */
  send(envelope: NewEnvelope): Promise<void>;
  /** As `Mailbox.withdraw`; absent where nothing is sent. */
  withdraw?(withdrawal: Withdrawal): void;
  /** As `Mailbox.discard`; absent where nothing is sent. */
  discard?(operationId: string): void;
}

/** They end work, and have no content. */
const CANCELLATIONS = [AGENT_CANCEL, RUN_CANCEL];

/** Returns the ports over an actor's mailbox. What a conversation sends is owed; calls of agents keep to the room for the rest. */
export function outgoing(mailbox: () => Outbound): Required<OutgoingPorts> {
  return {
    send: (envelope) => mailbox().send(envelope, { owed: true }),
    withdraw: ({ to, type }) => mailbox().withdraw(to, type),
    discard: (operationId) => mailbox().discard(operationId, CANCELLATIONS),
    room: () => mailbox().room(),
  };
}
