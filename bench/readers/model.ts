/** A model on loopback that speaks Chat Completions. A message `answer N` gets N characters, in pieces. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const PIECE = 16 * 1024;

export interface LoopbackModel {
  baseUrl: string;
  close(): Promise<void>;
}

export async function startModel(): Promise<LoopbackModel> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as { messages: { content: unknown }[] };
    const length = Number(/^answer (\d+)/.exec(String(messages.at(-1)?.content))?.[1] ?? 2);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let left = length; left > 0; left -= PIECE) {
      const content = "x".repeat(Math.min(left, PIECE));
      if (!response.write(chunk({ content }, null))) await once(response, "drain");
    }
    response.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
  });
  // If the server closed an idle connection while a client uses it again, a call would fail.
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // SAFETY: a server that listens on a port has an `AddressInfo`.
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function chunk(delta: object, finish_reason: string | null): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
}
