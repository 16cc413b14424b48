/** Connections that do not read. They use plain TCP, because HTTP clients and WebSockets read automatically. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

export interface IdleClient {
  /** Reads the waiting bytes, until the server ends the connection or `milliseconds` pass. `turnId` names the last turn. */
  drain(milliseconds: number, turnId: string): Promise<Drained>;
  close(): void;
}

export interface Drained {
  bytes: number;
  /** The response has only a head. */
  empty: boolean;
  /** The server ended the connection. */
  ended: boolean;
  /** The buffers of the system took every frame of the turn, so no frame waited at the server. */
  whole: boolean;
  /** The code of the WebSocket's close frame. */
  closeCode?: number;
}

/** Opens a WebSocket, or a stream of server-sent events, and reads only the first bytes. */
export async function openIdle(port: number, path: string, kind: "socket" | "stream"): Promise<IdleClient> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  const upgrade =
    kind === "socket"
      ? "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
      : "Accept: text/event-stream\r\n";
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n${upgrade}\r\n`);
  await once(socket, "readable");
  return {
    drain: (milliseconds, turnId) => drain(socket, kind, milliseconds, turnId),
    close: () => socket.destroy(),
  };
}

async function drain(
  socket: Socket,
  kind: "socket" | "stream",
  milliseconds: number,
  turnId: string,
): Promise<Drained> {
  const timer = setTimeout(() => socket.destroy(), milliseconds);
  const chunks: Buffer[] = [];
  let ended = false;
  socket.once("end", () => {
    ended = true;
  });
  socket.on("error", () => {
    ended = true;
  });
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  socket.resume();
  if (!socket.destroyed)
    await Promise.race([once(socket, "close").catch(() => undefined), untilClosed(socket)]);
  clearTimeout(timer);
  socket.destroy();
  const bytes = Buffer.concat(chunks);
  const last = new RegExp(`"turnId":"${turnId}"[^{}]*"turn\\.finalized"`);
  const closeCode = kind === "socket" ? closeCodeIn(bytes) : undefined;
  return {
    bytes: bytes.length,
    empty: bytes.length === bytes.indexOf("\r\n\r\n") + 4,
    ended,
    whole: last.test(bytes.subarray(-4_096).toString("latin1")),
    ...(closeCode === undefined ? {} : { closeCode }),
  };
}

function untilClosed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once("end", resolve));
}

/** Returns the close code in the bytes of an upgraded connection. */
function closeCodeIn(bytes: Buffer): number | undefined {
  let at = bytes.indexOf("\r\n\r\n") + 4;
  while (at + 2 <= bytes.length) {
    const opcode = (bytes[at] ?? 0) & 0x0f;
    let length = (bytes[at + 1] ?? 0) & 0x7f;
    at += 2;
    if (length === 126) {
      length = bytes.readUInt16BE(at);
      at += 2;
    } else if (length === 127) {
      length = Number(bytes.readBigUInt64BE(at));
      at += 8;
    }
    if (opcode === 8) return length >= 2 ? bytes.readUInt16BE(at) : 1005;
    at += length;
  }
  return undefined;
}
