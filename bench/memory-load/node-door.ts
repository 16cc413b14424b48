/**
 * The HTTP server of stores on Node: `POST /memory/write/AGENT` with a list of inputs, `POST /memory/search/AGENT` with a
 * question. There is one agent.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Found } from "./protocol.ts";

/** A store under comparison. */
export interface ComparedStore {
  write(texts: readonly string[]): Promise<void>;
  /** Returns the ten best texts. */
  search(question: string): Promise<string[]>;
}

/** Serves on 127.0.0.1, and writes the port to standard output. */
export function open(store: ComparedStore): void {
  const server = createServer(async (request, response) => {
    try {
      const [, , operation] = (request.url ?? "").split("/");
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const body = Buffer.concat(chunks).toString();
      let answer: number | Found;
      if (operation === "write") {
        // SAFETY: only the runner of the benchmark calls this server.
        const texts = (JSON.parse(body) as { content: string }[]).map(({ content }) => content);
        await store.write(texts);
        answer = texts.length;
      } else {
        answer = { found: await store.search(body) };
      }
      response.writeHead(200).end(JSON.stringify(answer));
    } catch (error) {
      response.writeHead(500).end(error instanceof Error ? error.stack : String(error));
    }
  });
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1", () => {
    // SAFETY: a server that listens on a port has an `AddressInfo`.
    console.log(`port ${(server.address() as AddressInfo).port}`);
  });
}
