/** The look-up of actors by tenant and id. */
import type { LocationHint } from "../shared/location.ts";
import type { AgentApi } from "./agent-api.ts";
import type { ChannelApi } from "./channels.ts";
import type { ConversationApi } from "./conversation-api.ts";
import type { CoordinatorApi } from "./coordinator-api.ts";
import type { ActorAddress } from "./envelope.ts";
import type { EventLogApi } from "./event-log.ts";
import type { DeadLetterApi, MailboxPeer } from "./mailbox-api.ts";
import type { TriggerApi } from "./trigger-api.ts";
import type { WorkspaceApi } from "./workspace.ts";

/** A conversation's actor: its RPC interface and its WebSocket connections. */
export interface ConversationActor extends ConversationApi {
  fetch(request: Request): Promise<Response>;
}

/** A run's actor: its RPC interface and its WebSocket connections. */
export interface RunActor extends CoordinatorApi {
  fetch(request: Request): Promise<Response>;
}

export interface MailboxActor extends MailboxPeer, DeadLetterApi {}

/**
 * Finds actors by name. Any name resolves to an actor, even before it was created. Only the first contact with an
 * actor uses the hint.
 */
export interface ActorLookup {
  agent(tenant: string, id: string, hint?: LocationHint): Promise<AgentApi>;
  conversation(tenant: string, id: string, hint?: LocationHint): Promise<ConversationActor>;
  /** Throws `UNAVAILABLE` if this runtime has no runs of workflows. */
  coordinator(tenant: string, id: string, hint?: LocationHint): Promise<RunActor>;
  /** Throws `UNAVAILABLE` if this runtime has no channels. */
  channel(tenant: string, id: string): Promise<ChannelApi>;
  /** Throws `UNAVAILABLE` if this runtime has no triggers. */
  trigger(tenant: string, id: string, hint?: LocationHint): Promise<TriggerApi>;
  /** Throws `UNAVAILABLE` if this runtime has no log of events. */
  eventLog(tenant: string, id: string): Promise<EventLogApi>;
  /** Throws `UNAVAILABLE` if this runtime has no workspaces. */
  workspace(tenant: string, id: string): Promise<WorkspaceApi>;
  /** Throws `NOT_FOUND` if this runtime has no actors of the address's kind. */
  mailbox(address: ActorAddress): Promise<MailboxActor>;
}
