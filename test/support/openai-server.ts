/**
 * A Chat Completions server on loopback with scripted responses. It uses no code of the package, so it can also run as
 * a process (`openai-server-main.ts`).
 *
 * A script defines the response of each request. A step that waits for a promise lets a test order events without
 * sleeping.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** A step of a streamed reply. */
export type Step =
  | { text: string }
  | { reasoning: string }
  | { toolCall: { index?: number; id?: string; name?: string; arguments?: string } }
  | { finish: string }
  | { usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number } }
  /** A payload, sent as JSON. */
  | { event: unknown }
  /** Raw bytes. */
  | { raw: string | Uint8Array }
  /** Waits for the promise. */
  | { gate: Promise<unknown> }
  | { delayMs: number }
  /** Breaks the connection. */
  | { cut: true };

export type Reply =
  /** `status` is 200 by default. */
  | { kind: "stream"; status?: number; steps: Step[] }
  | { kind: "body"; status: number; headers: Record<string, string>; body: string | Uint8Array }
  /** Never answers. */
  | { kind: "hang" };

/** A received request. */
export interface RecordedRequest {
  /** Number of the request, from 0. */
  number: number;
  path: string;
  headers: Record<string, string>;
  body: ChatRequest;
  /** Resolves when the exchange is over: completed, or aborted by either side. */
  closed: Promise<void>;
}

/** The parts of a request that scripts read. */
export interface ChatRequest {
  model?: string;
  messages?: { role: string; content?: string | null; tool_call_id?: string; tool_calls?: unknown[] }[];
  tools?: { function: { name: string } }[];
  tool_choice?: unknown;
  stream?: boolean;
  [key: string]: unknown;
}

export interface OpenAIServer extends AsyncDisposable {
  /** Base URL for a model profile: `http://127.0.0.1:PORT/v1`. */
  readonly baseUrl: string;
  /** All requests so far. */
  readonly requests: readonly RecordedRequest[];
  /** Queues replies, one per request. */
  reply(...replies: Reply[]): void;
  /** Resolves once the request with this number (from 0) has arrived. */
  request(number: number): Promise<RecordedRequest>;
  close(): Promise<void>;
}

export interface OpenAIServerOptions {
  /** 0, the default, selects a free port. */
  port?: number;
  /** Reply when no reply is queued; status 500 by default. */
  script?: (request: RecordedRequest) => Reply;
  /** Answers requests that it does not record and does not serve from the queue, such as `nothingLearned`. */
  aside?: (body: ChatRequest) => Reply | undefined;
}

/** Answers an agent's question about lessons of a turn with an empty list. */
export function nothingLearned({ messages = [] }: ChatRequest): Reply | undefined {
  return messages.at(-1)?.content?.includes("\nTranscript:\n") === true
    ? textReply('{"memories":[]}')
    : undefined;
}

/** Creates a gate for a script: `wait` resolves when `open` is called. */
export function newGate(): { wait: Promise<void>; open: () => void } {
  let open = () => {};
  const wait = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { wait, open };
}

export function textReply(...chunks: string[]): Reply {
  return { kind: "stream", steps: [...chunks.map((text) => ({ text })), { finish: "stop" }] };
}

/** A reply that calls tools, all in one message. */
export function toolReply(...calls: { id?: string; name: string; arguments: unknown }[]): Reply {
  const steps = calls.map(({ id, name, arguments: input }, index): Step => {
    return { toolCall: { index, id: id ?? `call_${index}`, name, arguments: JSON.stringify(input) } };
  });
  return { kind: "stream", steps: [...steps, { finish: "tool_calls" }] };
}

/** A JSON body, such as a reply that is not streamed. */
export function jsonReply(body: unknown, status = 200, headers: Record<string, string> = {}): Reply {
  return {
    kind: "body",
    status,
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
}

/** An error as OpenAI reports it. */
export function errorReply(
  status: number,
  error: { message: string; type?: string; code?: string },
  headers: Record<string, string> = {},
): Reply {
  return jsonReply({ error }, status, headers);
}

export async function startOpenAIServer(options: OpenAIServerOptions = {}): Promise<OpenAIServer> {
  const requests: RecordedRequest[] = [];
  const queue: Reply[] = [];
  const arrived = new Map<number, RecordedRequest>();
  const waiting: { number: number; resolve: (request: RecordedRequest) => void }[] = [];

  // An idle connection stays open. Otherwise a client may use it at the moment of its end, and repeat its call.
  const server = createServer({ keepAliveTimeout: 0 }, (incoming, response) => {
    handle(incoming, response).catch((error: unknown) => {
      // Many tests abort requests. Any other error is a mistake in a test.
      if (!response.destroyed) console.error(error);
      response.destroy();
    });
  });

  async function handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const closed = new Promise<void>((resolve) => response.once("close", resolve));
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const body: ChatRequest = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const beside = options.aside?.(body);
    if (beside !== undefined) return answer(beside, -1, response);
    const number = requests.length;
    const request: RecordedRequest = {
      number,
      path: incoming.url ?? "",
      headers: Object.fromEntries(
        Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]),
      ),
      body,
      closed,
    };
    requests.push(request);
    arrived.set(number, request);
    for (const waiter of waiting) if (waiter.number === number) waiter.resolve(request);
    const unscripted = () => errorReply(500, { message: `Nothing is scripted for request ${number}.` });
    const reply = queue.shift() ?? options.script?.(request) ?? unscripted();
    await answer(reply, number, response);
  }

  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const close = async () => {
    const isClosed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await isClosed;
  };
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    reply: (...replies) => void queue.push(...replies),
    request: async (number) =>
      arrived.get(number) ?? (await new Promise((resolve) => void waiting.push({ number, resolve }))),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function answer(reply: Reply, number: number, response: ServerResponse): Promise<void> {
  switch (reply.kind) {
    case "hang":
      return;
    case "body":
      response.writeHead(reply.status, reply.headers);
      response.end(reply.body);
      return;
    case "stream":
      response.writeHead(reply.status ?? 200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      for (const step of reply.steps) {
        if (response.destroyed) return;
        if ("cut" in step) {
          response.destroy();
          return;
        }
        await perform(step, number, response);
      }
      if (!response.destroyed) response.end("data: [DONE]\n\n");
      return;
    default:
      reply satisfies never;
  }
}

async function perform(
  step: Exclude<Step, { cut: true }>,
  number: number,
  response: ServerResponse,
): Promise<void> {
  if ("gate" in step) {
    await Promise.race([step.gate, once(response, "close")]);
  } else if ("delayMs" in step) {
    await sleep(step.delayMs);
  } else {
    const bytes = "raw" in step ? step.raw : `data: ${JSON.stringify(payload(step, number))}\n\n`;
    await new Promise<void>((resolve) => void response.write(bytes, () => resolve()));
  }
}

function payload(
  step: Exclude<Step, { cut: true } | { gate: unknown } | { delayMs: number } | { raw: unknown }>,
  number: number,
): unknown {
  if ("event" in step) return step.event;
  const chunk = { id: `chatcmpl-${number}`, object: "chat.completion.chunk" };
  if ("usage" in step) return { ...chunk, choices: [], usage: step.usage };
  if ("finish" in step) {
    return { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: step.finish }] };
  }
  return { ...chunk, choices: [{ index: 0, delta: delta(step), finish_reason: null }] };
}

function delta(
  step: Extract<Step, { text: string } | { reasoning: string } | { toolCall: unknown }>,
): unknown {
  if ("text" in step) return { content: step.text };
  if ("reasoning" in step) return { reasoning_content: step.reasoning };
  const { index = 0, id, name, arguments: input } = step.toolCall;
  return {
    tool_calls: [
      { index, ...(id === undefined ? {} : { id, type: "function" }), function: { name, arguments: input } },
    ],
  };
}
