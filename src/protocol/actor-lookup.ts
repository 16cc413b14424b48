/** Where actors find each other. */
import type { AgentApi } from "./agent-api.ts";
import type { ConversationApi } from "./conversation-api.ts";
import type { ActorAddress } from "./envelope.ts";
import type { DeadLetterApi, MailboxPeer } from "./mailbox-api.ts";

/** A conversation's actor: its RPC surface, and the door for its WebSocket connections. */
export interface ConversationActor extends ConversationApi {
  fetch(request: Request): Promise<Response>;
}

/** An actor of any kind, as far as its mailbox goes. */
export interface MailboxActor extends MailboxPeer, DeadLetterApi {}

/** Finds actors by tenant and id. An actor is there even if nothing was created under its name. */
export interface ActorLookup {
  agent(tenant: string, id: string): Promise<AgentApi>;
  conversation(tenant: string, id: string): Promise<ConversationActor>;
  /** Throws `NOT_FOUND` where this runtime has no actors of the address's kind. */
  mailbox(address: ActorAddress): Promise<MailboxActor>;
}
