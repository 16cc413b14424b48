/** What handlers are given: the ports of one request, and who is asking. */
import type { Hono } from "hono";
import type { AgentApi } from "../agents/agent/api.ts";
import type { ConversationApi } from "../agents/conversation/api.ts";
import type { Directory } from "../directory/directory.ts";
import type { Principal } from "../shared/principal.ts";

/** A conversation's actor: its RPC surface, and the door for its WebSocket connections. */
export interface ConversationActor extends ConversationApi {
  fetch(request: Request): Promise<Response>;
}

/** Finds actors by tenant and id. An actor is there even if nothing was created under its name. */
export interface Actors {
  agent(tenant: string, id: string): Promise<AgentApi>;
  conversation(tenant: string, id: string): Promise<ConversationActor>;
}

/** The ports of one request. */
export interface Services {
  actors: Actors;
  /** Throws `UNAVAILABLE` where there is none. */
  directory(): Directory;
  /** Creates what every fresh runtime has; does nothing once that is done. */
  seed(): Promise<void>;
}

export type HttpEnv = { Variables: Services & { principal: Principal } };

export type HttpRoutes = Hono<HttpEnv>;
