/** The platform's lower bound: a Durable Object without our code, with hibernatable WebSockets and byte streams. */
import { DurableObject } from "cloudflare:workers";

const PIECE = 16 * 1024;
/** Buffered bytes of a stream. */
const HIGH_WATER_MARK = 32 * 1024;

interface Env {
  BARE: DurableObjectNamespace<BareReaders>;
}

export class BareReaders extends DurableObject<Env> {
  override async fetch(request: Request): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const piece = "x".repeat(PIECE);
    if (pathname === "/send") {
      const bytes = Number(searchParams.get("bytes"));
      for (const socket of this.ctx.getWebSockets())
        for (let sent = 0; sent < bytes; sent += PIECE) socket.send(piece);
      return new Response(null, { status: 204 });
    }
    if (pathname === "/socket") {
      const [client, server] = Object.values(new WebSocketPair());
      if (client === undefined || server === undefined) throw new Error("A pair has two sockets.");
      this.ctx.acceptWebSocket(server);
      server.send("hello");
      return new Response(null, { status: 101, webSocket: client });
    }
    const encoded = new TextEncoder().encode(piece);
    const source = {
      pull: (controller: ReadableStreamDefaultController<Uint8Array>) => controller.enqueue(encoded.slice()),
    };
    const size = ({ byteLength }: Uint8Array) => byteLength;
    return new Response(new ReadableStream(source, { highWaterMark: HIGH_WATER_MARK, size }));
  }
}

export default {
  fetch: (request, env) => env.BARE.get(env.BARE.idFromName("readers")).fetch(request),
} satisfies ExportedHandler<Env>;
