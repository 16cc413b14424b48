/** Answers that several resources share. */

import type { Context } from "hono";
import { defined } from "../../shared/defined.ts";
import type { Page } from "../../shared/page.ts";
import type { HttpEnv, HttpRoutes } from "./context.ts";
import { keepAlive } from "./keep-alive.ts";
import { problem } from "./problem.ts";

const HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** JSON that no cache keeps. `location` is the path of what was created. */
export function json(body: object, status: 200 | 201 | 202 = 200, location?: string): Response {
  const headers = location === undefined ? HEADERS : { ...HEADERS, location };
  return Response.json(body, { status, headers });
}

/** A list: the items under the resource's name, and where the next page begins. */
export function page<Item>(resource: string, { items, nextCursor }: Page<Item>): Response {
  return json({ [resource]: items, ...defined({ nextCursor }) });
}

/** Server-sent events, unbuffered by proxies and kept alive. A `HEAD` gets the headers only, and no stream is opened for it. */
export async function events(
  context: Context<HttpEnv>,
  open: () => Promise<ReadableStream<Uint8Array>>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const body = context.req.method === "HEAD" ? null : keepAlive(await open(), context.var.clock);
  return new Response(body, {
    headers: { ...HEADERS, "content-type": "text/event-stream", "x-accel-buffering": "no", ...headers },
  });
}

/** Server-sent events made of payloads as they come; `payloads` is told by its signal that the reader has left. */
export function sse(
  context: Context<HttpEnv>,
  payloads: (signal: AbortSignal) => AsyncIterable<{ event?: string; data: string }>,
  headers?: Record<string, string>,
): Promise<Response> {
  const encoder = new TextEncoder();
  const reader = new AbortController();
  const open = async () => {
    const iterator = payloads(reader.signal)[Symbol.asyncIterator]();
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (reader.signal.aborted) return;
        if (done) return controller.close();
        const { event, data } = value;
        const name = event === undefined ? "" : `event: ${event}\n`;
        controller.enqueue(encoder.encode(`${name}data: ${data}\n\n`));
      },
      cancel: () => reader.abort(),
    });
  };
  return events(context, open, headers);
}

/** What there is nothing to say about. */
export function empty(): Response {
  return new Response(null, { status: 204, headers: HEADERS });
}

/** Registers the answer to every other method of a path. Call it after the path's handlers. */
export function refuseOtherMethods(app: HttpRoutes, path: string, allowed: readonly string[]): void {
  const allow = allowed.includes("GET") ? [...allowed, "HEAD"].join(", ") : allowed.join(", ");
  app.all(path, ({ req }) =>
    problem("METHOD_NOT_ALLOWED", `${req.method} is not possible here. Allowed: ${allow}.`, {
      headers: { allow },
    }),
  );
}

/** The answer for whatever does not exist, or is not the caller's. */
export function notFound(): Response {
  return problem("NOT_FOUND", "There is nothing here, or it is not yours.");
}
