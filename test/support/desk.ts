/** A desk that tools ask over HTTP: each path waits until the test answers it. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export class Desk {
  /** The bodies that each path got. */
  readonly #bodies = new Map<string, string[]>();
  readonly #waiting = new Map<string, ServerResponse[]>();
  readonly #server = createServer(async (request, response) => {
    const path = request.url ?? "";
    let body = "";
    for await (const piece of request) body += String(piece);
    this.#bodies.set(path, [...this.bodiesOf(path), body]);
    // Requests under `/now/` are answered at once.
    if (path.startsWith("/now/")) response.end("{}");
    else this.#waiting.set(path, [...(this.#waiting.get(path) ?? []), response]);
  });

  static async open(): Promise<Desk> {
    const desk = new Desk();
    await new Promise<void>((resolve) => desk.#server.listen(0, "127.0.0.1", resolve));
    return desk;
  }

  /** Returns the address of a path. One below `/now/` is answered at once. */
  url(path: string): string {
    // SAFETY: a server that listens on TCP has such an address.
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  bodiesOf(path: string): string[] {
    return this.#bodies.get(path) ?? [];
  }

  /** Answers the oldest request of a path that waits; returns whether there was one. */
  answer(path: string, text: string, status = 200): boolean {
    const [response, ...others] = this.#waiting.get(path) ?? [];
    this.#waiting.set(path, others);
    response?.writeHead(status).end(text);
    return response !== undefined;
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
