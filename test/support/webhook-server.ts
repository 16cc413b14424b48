/** A server that takes notices of webhooks. Tests set its answers, and read its requests. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that came to a webhook. */
export interface WebhookRecord {
  path: string;
  headers: Record<string, string>;
  body: unknown;
}

/** The next answers of a webhook, in order. Later answers have the status 204. */
export interface WebhookAnswer {
  status: number;
  location?: string;
  /** The answer waits until a test releases the webhook. */
  held?: boolean;
}

/** `POST /hooks/KEY` is a webhook. `GET`, `POST /control/KEY` reads its requests, or sets its answers. `DELETE` releases held answers. */
export async function startWebhookServer(): Promise<{ url: string; close(): Promise<void> }> {
  const records = new Map<string, WebhookRecord[]>();
  const answers = new Map<string, WebhookAnswer[]>();
  const held = new Map<string, (() => void)[]>();
  const answer = (response: ServerResponse, { status, location }: WebhookAnswer) => {
    response.writeHead(status, location === undefined ? {} : { location });
    response.end();
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      const body: unknown = text === "" ? null : JSON.parse(text);
      const [, kind, key = ""] = (request.url ?? "").split("/");
      if (kind === "hooks") {
        const headers = Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
        );
        records.set(key, [...(records.get(key) ?? []), { path: request.url ?? "", headers, body }]);
        const [next = { status: 204 }, ...rest] = answers.get(key) ?? [];
        answers.set(key, rest);
        if (next.held !== true) return answer(response, next);
        held.set(key, [...(held.get(key) ?? []), () => answer(response, next)]);
        return undefined;
      }
      // SAFETY: only tests of this repository call the control.
      if (request.method === "POST") answers.set(key, body as WebhookAnswer[]);
      if (request.method === "DELETE") for (const release of held.get(key) ?? []) release();
      response.end(JSON.stringify(records.get(key) ?? []));
      return undefined;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // SAFETY: the server listens on a port.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
