/** Responses that several routes share. */
import type { Context } from "hono";
import { accepts } from "hono/accepts";
import { defined } from "../../shared/defined.ts";
import { type DramatisError, notFound } from "../../shared/errors.ts";
import { isAgentId } from "../../shared/identifiers.ts";
import type { Page } from "../../shared/page.ts";
import { shorten } from "../../shared/text.ts";
import type { HttpEnv } from "./context.ts";
import { keepAlive } from "./keep-alive.ts";
import { HEADERS, problemOf } from "./problem.ts";

/** JSON that caches do not store. `location` is the path of a created resource. */
export function json(body: object, status: 200 | 201 | 202 = 200, location?: string): Response {
  return Response.json(body, { status, headers: { ...HEADERS, ...defined({ location }) } });
}

/**
 * JSON that takes time. The answer begins at once, so the server notices that its client leaves: then the signal of `body` aborts. If `body`
 * rejects, the answer breaks off.
 */
export function jsonLater(body: (signal: AbortSignal) => Promise<object>): Response {
  const reader = new AbortController();
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const value = await body(reader.signal);
      if (reader.signal.aborted) return;
      controller.enqueue(new TextEncoder().encode(JSON.stringify(value)));
      controller.close();
    },
    cancel: () => reader.abort(),
  });
  return new Response(stream, { headers: { ...HEADERS, "content-type": "application/json" } });
}

/** One page of a list: the items under the name `resource`, and the cursor of the next page. */
export function page<Item>(resource: string, { items, nextCursor }: Page<Item>): Response {
  return json({ [resource]: items, ...defined({ nextCursor }) });
}

/** Reports whether a client prefers server-sent events to JSON. */
export function wantsEvents(context: Context<HttpEnv>): boolean {
  const supports = ["application/json", "text/event-stream"];
  return (
    accepts(context, { header: "Accept", supports, default: "application/json" }) === "text/event-stream"
  );
}

/**
 * Returns server-sent events without proxy buffering. `HEAD` returns only the headers and does not call `open`. If
 * `open` returns `null`, the stream is over: the status 204 stops an `EventSource` from reconnecting. The Worker
 * passes an actor's stream unchanged, including its comments, so the platform transfers it without a script.
 */
export async function events(
  context: Context<HttpEnv>,
  open: () => Promise<ReadableStream<Uint8Array> | null>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const isHead = context.req.method === "HEAD";
  const body = isHead ? null : await open();
  if (body === null && !isHead) return empty();
  return new Response(body, {
    headers: { ...HEADERS, "content-type": "text/event-stream", "x-accel-buffering": "no", ...headers },
  });
}

/** Server-sent events from payloads. The signal of `payloads` aborts when the client leaves. */
export function sse(
  context: Context<HttpEnv>,
  payloads: (signal: AbortSignal) => AsyncIterable<{ event?: string; data: string }>,
  headers?: Record<string, string>,
): Promise<Response> {
  const encoder = new TextEncoder();
  const reader = new AbortController();
  const open = async () => {
    const iterator = payloads(reader.signal)[Symbol.asyncIterator]();
    const events = new ReadableStream<Uint8Array>({
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
    return keepAlive(events, context.var.clock);
  };
  return events(context, open, headers);
}

/** An answer without content. */
export function empty(): Response {
  return new Response(null, { status: 204, headers: HEADERS });
}

/** Answers paths that do not exist. Sends a browser at `/agents/ID` to the agent's page if the static files of the Worker have this page. */
export async function noOperation(context: Context): Promise<Response> {
  const { method, path } = context.req;
  const [, agent = ""] = /^\/agents\/([^/]+)$/.exec(path) ?? [];
  const isBrowser = method === "GET" && context.req.header("accept")?.includes("text/html");
  if (isAgentId(agent) && isBrowser) {
    const page = new URL(`/a/${agent}`, context.req.url);
    const shown = await context.env?.ASSETS?.fetch(page, { method: "HEAD" });
    if (shown?.ok) return context.redirect(page.pathname);
  }
  const message = `There is no operation \`${method} ${path}\`. Check the method and the path: /docs lists them.`;
  return problemOf(notFound(message), "");
}

export function nothingNamed(kind: string, id: string): DramatisError {
  return notFound(`The ${kind} "${shorten(id, MAX_SHOWN_ID)}" was not found. Check the id and your access.`);
}

export function noConversation(id: string): DramatisError {
  return notFound(`There is no conversation "${shorten(id, MAX_SHOWN_ID)}".`);
}

/** Length of an id from a path in a message. */
const MAX_SHOWN_ID = 100;
