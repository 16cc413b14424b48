/** Where actors find each other. */
import type { AgentApi } from "../agents/agent/api.ts";
import type { ConversationApi } from "../agents/conversation/api.ts";

/** A conversation's actor: its RPC surface, and the door for its WebSocket connections. */
export interface ConversationActor extends ConversationApi {
  fetch(request: Request): Promise<Response>;
}

/** Finds actors by tenant and id. An actor is there even if nothing was created under its name. */
export interface ActorDirectory {
  agent(tenant: string, id: string): Promise<AgentApi>;
  conversation(tenant: string, id: string): Promise<ConversationActor>;
}
