/**
 * The requests of the MCP client.
 *
 * MCPREQ-1  Requests reach only the origin of the server, and the issuer of its tokens. This includes redirects and addresses that a server
 *           names. A refusal has the rule `network`.
 * MCPREQ-2  The configured headers go only to the server.
 * MCPREQ-3  The responses of a connection have at most `maxBytes` together.
 * MCPREQ-5  A connection sends at most `MAX_REQUESTS` requests, however often the server ends a stream or asks back.
 * MCPREQ-4  The notice that a call was cancelled is sent even though the call has ended.
 */
import type { FetchLike } from "@modelcontextprotocol/client";
import { ToolError } from "../library/tools/tool-error.ts";

const MAX_REQUESTS = 100;

export interface Requests {
  fetch: FetchLike;
  /** Resolves when all notices are sent. */
  sent(): Promise<void>;
  /** The reason why the requests failed, in place of the error of the SDK. */
  problem(): ToolError | undefined;
}

export function mcpRequests(
  server: URL,
  {
    headers,
    issuer,
    maxBytes,
    onEnd,
  }: {
    headers: Readonly<Record<string, string>>;
    issuer: string | undefined;
    maxBytes: number;
    /** There have been too many requests. */
    onEnd(): void;
  },
): Requests {
  const origins = new Set([server.origin, ...(issuer === undefined ? [] : [new URL(issuer).origin])]);
  const notices: Promise<unknown>[] = [];
  let bytes = 0;
  let count = 0;
  let problem: ToolError | undefined;
  const fail = (error: ToolError) => {
    problem = error;
    return error;
  };
  return {
    async fetch(input, init = {}) {
      const url = new URL(input);
      if (!origins.has(url.origin))
        throw fail(
          new ToolError(
            `The server must not lead to "${url.host}". Only its own address and the \`issuer\` in its configuration are allowed.`,
            { code: "PERMISSION_DENIED", rule: "network" },
          ),
        );
      count += 1;
      if (count > MAX_REQUESTS) {
        onEnd();
        throw fail(
          new ToolError(`The server causes more than ${MAX_REQUESTS} requests. The call has ended.`),
        );
      }
      const isServer = url.origin === server.origin;
      const own = new Headers(init.headers);
      // A stream without a request would only bring notices, and hold the connection.
      if (isServer && init.method === "GET" && own.get("accept") === "text/event-stream")
        if (!own.has("last-event-id")) return new Response(null, { status: 405 });
      if (isServer) for (const [name, value] of Object.entries(headers)) own.set(name, value);
      const isNotice = typeof init.body === "string" && init.body.includes('"notifications/cancelled"');
      const { signal, ...rest } = init;
      const sending = fetch(url, {
        ...rest,
        headers: own,
        redirect: "manual",
        ...(signal && !isNotice && { signal }),
      });
      if (isNotice) notices.push(sending.catch(() => undefined));
      return counted(await sending, (length) => {
        bytes += length;
        if (bytes > maxBytes)
          throw fail(new ToolError(`The response of the server has more than ${maxBytes} bytes.`));
      });
    },
    async sent() {
      await Promise.all(notices);
    },
    problem: () => problem,
  };
}

/** Returns a response that reports the length of each chunk. It ends with the error that `count` throws. */
function counted(response: Response, count: (bytes: number) => void): Response {
  const reader = response.body?.getReader();
  if (reader === undefined) return response;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      try {
        count(value.byteLength);
      } catch (error) {
        await reader.cancel();
        throw error;
      }
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, response);
}
