/** The HTTP server of systems on Node. `POST /run/GRAPH` runs a graph with the input in its body, and responds with its output. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Graph, RunInput } from "./workload.ts";

/** Serves on 127.0.0.1, and writes the port to standard output. `POST /none` responds without a run. */
export function open(run: (graph: Graph, input: RunInput) => Promise<unknown>): void {
  const server = createServer(async (request, response) => {
    try {
      const [, door, graph] = (request.url ?? "").split("/");
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const input: unknown = JSON.parse(Buffer.concat(chunks).toString());
      // SAFETY: only the runner of the benchmark calls this server.
      const output = door === "none" ? null : await run(graph as Graph, input as RunInput);
      response.writeHead(200).end(JSON.stringify(output));
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
