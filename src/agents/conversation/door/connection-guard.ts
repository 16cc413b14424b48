/**
 * Stands before the SDK at the doors of a conversation: what clients send is weighed here first.
 *
 * GUARD-1  On the plain door nothing of the SDK's protocol is spoken, in or out: its frames are unknown types.
 * GUARD-2  On both doors a message counts against its connection's allowance before anything reads it.
 */
import type { WSMessage } from "agents";
import { LifecycleCapability } from "agents/lifecycle";
import type { Client } from "./connections.ts";

export interface ConnectionGuardPorts {
  /** The connection of a socket; `undefined` if it is closed, or none of ours. */
  connectionOf(socket: WebSocket): Client | undefined;
  isPlain(client: Client): boolean;
  admit(client: Client, message: WSMessage): boolean;
  receive(client: Client, message: WSMessage): Promise<void>;
}

export class ConnectionGuard extends LifecycleCapability {
  constructor(private readonly doors: ConnectionGuardPorts) {
    super("dramatis-connection-guard");
  }

  /** Answers whether the message is dealt with; if not, the SDK takes it. */
  async onWebSocketMessage(socket: WebSocket, message: WSMessage): Promise<boolean> {
    const client = this.doors.connectionOf(socket);
    if (client === undefined) return true;
    // Asked first: it is what makes the SDK hide its own marks in a connection's state after a wake.
    const isPlain = this.doors.isPlain(client);
    if (!this.doors.admit(client, message)) return true;
    if (!isPlain) return false;
    await this.doors.receive(client, message);
    return true;
  }
}
