/**
 * A WebSocket server on loopback for tests of clients, with unfragmented text messages of RFC 6455 only. Tests await
 * the client's actions.
 */
import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** A queue of values. Readers get them in the order of their requests. */
class Arrivals<Value> {
  readonly #ready: Value[] = [];
  readonly #waiting: ((value: Value) => void)[] = [];

  put(value: Value): void {
    const taker = this.#waiting.shift();
    if (taker === undefined) this.#ready.push(value);
    else taker(value);
  }

  take(): Promise<Value> {
    return new Promise((resolve) => {
      const [value] = this.#ready.splice(0, 1);
      if (value === undefined) this.#waiting.push(resolve);
      else resolve(value);
    });
  }
}

/** The server side of a client's connection. */
export class ServerSocket {
  readonly #messages = new Arrivals<string>();
  readonly closed: Promise<void>;
  #unread: Buffer = Buffer.alloc(0);

  constructor(
    readonly url: URL,
    /** Subprotocols that the client offers. */
    readonly protocols: readonly string[],
    readonly stream: Duplex,
  ) {
    this.closed = new Promise((resolve) => stream.once("close", resolve));
    stream.on("error", () => stream.destroy());
    stream.on("data", (bytes: Buffer) => this.#read(bytes));
  }

  /** Returns the client's next message. */
  next(): Promise<string> {
    return this.#messages.take();
  }

  send(text: string): void {
    this.#write(1, Buffer.from(text));
  }

  close(code: number): void {
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    this.#write(8, payload);
    this.stream.end();
  }

  /** Cuts the connection without a close frame. */
  cut(): void {
    this.stream.destroy();
  }

  #write(opcode: number, payload: Buffer): void {
    const long = payload.length > 125;
    const header = Buffer.alloc(long ? 4 : 2);
    header[0] = 0x80 | opcode;
    header[1] = long ? 126 : payload.length;
    if (long) header.writeUInt16BE(payload.length, 2);
    this.stream.write(Buffer.concat([header, payload]));
  }

  #read(bytes: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, bytes]);
    for (;;) {
      const long = (this.#unread[1] ?? 0) % 128 === 126;
      const start = long ? 8 : 6;
      if (this.#unread.length < start) return;
      const length = long ? this.#unread.readUInt16BE(2) : (this.#unread[1] ?? 0) % 128;
      if (this.#unread.length < start + length) return;
      const mask = this.#unread.subarray(start - 4, start);
      const payload = this.#unread
        .subarray(start, start + length)
        .map((byte, n) => byte ^ (mask[n % 4] ?? 0));
      const opcode = (this.#unread[0] ?? 0) % 16;
      this.#unread = this.#unread.subarray(start + length);
      if (opcode === 1) this.#messages.put(Buffer.from(payload).toString());
      if (opcode === 8) this.stream.end();
    }
  }
}

export class WebSocketServer {
  readonly #server: Server = createServer();
  readonly #connections = new Arrivals<ServerSocket>();
  readonly #streams = new Set<Duplex>();

  /** Listens on a free port. */
  static async listen(): Promise<WebSocketServer> {
    const server = new WebSocketServer();
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  private constructor() {
    this.#server.on("upgrade", (request, stream) => {
      const key = `${request.headers["sec-websocket-key"]}${GUID}`;
      const accept = createHash("sha1").update(key).digest("base64");
      const offers = request.headers["sec-websocket-protocol"]?.split(",") ?? [];
      const protocols = offers.map((offer) => offer.trim());
      const [protocol] = protocols;
      const lines = [
        "HTTP/1.1 101 Switching Protocols",
        "Upgrade: websocket",
        "Connection: Upgrade",
        `Sec-WebSocket-Accept: ${accept}`,
        ...(protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${protocol}`]),
      ];
      this.#streams.add(stream);
      stream.write(`${lines.join("\r\n")}\r\n\r\n`);
      this.#connections.put(new ServerSocket(new URL(request.url ?? "/", "ws://server"), protocols, stream));
    });
  }

  /** `127.0.0.1:port`. */
  get host(): string {
    // SAFETY: a server that listens on TCP has an address with a port.
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Returns the next connection. */
  connection(): Promise<ServerSocket> {
    return this.#connections.take();
  }

  async close(): Promise<void> {
    for (const stream of this.#streams) stream.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
