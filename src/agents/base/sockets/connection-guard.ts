/**
 * Handles WebSocket messages before the SDK does.
 *
 * GUARD-1  Plain connections do not support the SDK's protocol, in or out: the SDK's frames are unknown types there.
 * GUARD-2  On both paths a message counts against its connection's allowance before it is read.
 * GUARD-3  On both paths a message is measured before it is parsed (JSON-1). The SDK does not receive refused messages.
 */
import type { WSMessage } from "agents";
import { LifecycleCapability } from "agents/lifecycle";
import type { Client } from "./client.ts";

export interface ConnectionGuardPorts {
  /** Returns the connection of a socket. Returns `undefined` if it is closed or not a socket of the SDK. */
  connectionOf(socket: WebSocket): Client | undefined;
  /** Reports whether a connection gets our frames only. */
  isPlain(client: Client): boolean;
  /** Reports whether a message is small enough to be parsed. Absent if every connection is plain. */
  isReadable?(message: WSMessage): boolean;
  /** Reports whether a message may be read: it closes a connection that has expired or exceeds its allowance. */
  admit(client: Client, message: WSMessage): boolean;
  /** Handles a message that was admitted. */
  receive(client: Client, message: WSMessage): void | Promise<void>;
}

export class ConnectionGuard extends LifecycleCapability {
  constructor(private readonly ports: ConnectionGuardPorts) {
    super("dramatis-connection-guard");
  }

  /** Returns whether the message was handled; if not, the SDK handles it. */
  async onWebSocketMessage(socket: WebSocket, message: WSMessage): Promise<boolean> {
    const client = this.ports.connectionOf(socket);
    if (client === undefined) return true;
    // First, because it makes the SDK hide its own marks in a connection's state after a wake.
    const isPlain = this.ports.isPlain(client);
    if (!this.ports.admit(client, message)) return true;
    const isOurs = isPlain || this.ports.isReadable?.(message) !== true;
    if (isOurs) await this.ports.receive(client, message);
    return isOurs;
  }
}
