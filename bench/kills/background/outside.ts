/** The outside world of the scenario `background`, on loopback: a model, the endpoint of the tools, and a payment provider. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { OUTSIDE_SERVER } from "../outside-server.ts";
import type { BackgroundHistory } from "./history.ts";
import { BACKGROUND_TOOLS, type BackgroundScript, callName, scriptIn } from "./script.ts";

const messageSchema = z.object({ role: z.string(), content: z.unknown() });
const chatSchema = z.object({ messages: z.array(messageSchema) });
type ChatMessage = z.output<typeof messageSchema>;

const PIECE_MS = 20;
const PIECES = 4;
/** Time between two attempts to deliver a result, in milliseconds. */
const RETRY_MS = 300;

export class Outside {
  /** Address of the server under test. */
  target = "";
  readonly #history: Pick<BackgroundHistory, "hits" | "given" | "answers">;
  readonly #ended = new AbortController();
  readonly #server = createServer(OUTSIDE_SERVER, (request, response) => {
    this.#handle(request, response).catch((error: unknown) => {
      // A killed caller is expected.
      if (!response.destroyed) console.error(error);
      response.destroy();
    });
  });

  constructor(history: Pick<BackgroundHistory, "hits" | "given" | "answers">) {
    this.#history = history;
  }

  async start(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get baseUrl(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("The outside is not started.");
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    this.#ended.abort();
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", this.baseUrl);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    if (url.pathname === "/v1/chat/completions") {
      const { messages } = chatSchema.parse(JSON.parse(Buffer.concat(chunks).toString()));
      await this.#answer(messages, response);
    } else await this.#act(url, String(request.headers["idempotency-key"]), response);
  }

  /** The first reply calls the tools of the script. Later replies record the known results. */
  async #answer(messages: readonly ChatMessage[], response: ServerResponse): Promise<void> {
    const asked = messages.findLastIndex(
      ({ role, content }) => role === "user" && scriptIn(content) !== null,
    );
    const script = scriptIn(messages[asked]?.content);
    if (script === null) throw new Error("A request has no script.");
    const own = messages.slice(asked + 1);
    const isFirst = !own.some(({ role }) => role === "assistant");
    const knows = own.flatMap(({ role, content }) => {
      if (role === "assistant" || role === "tool") return [];
      return [...JSON.stringify(content).matchAll(/The operation (op_\w+) /g)].flatMap(([, id]) => id ?? []);
    });
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (let piece = 0; piece < PIECES; piece++) {
      await pause(PIECE_MS);
      if (response.destroyed) return;
      response.write(chunk({ content: `${script.key} ` }, null));
    }
    const calls = isFirst ? script.calls : [];
    if (calls.length > 0) response.write(chunk({ tool_calls: this.#callsOf(script) }, null));
    else this.#history.answers.push({ key: script.key, knows });
    response.write(chunk({}, calls.length > 0 ? "tool_calls" : "stop"));
    response.end("data: [DONE]\n\n");
  }

  #callsOf({ key, calls, ms }: BackgroundScript): object[] {
    return calls.map((name, index) => {
      const call = callName(key, index);
      const url = `${this.baseUrl}/${name}?${new URLSearchParams({ call, ms: String(ms) })}`;
      return { index, id: call, type: "function", function: { name, arguments: JSON.stringify({ url }) } };
    });
  }

  async #act({ pathname, searchParams }: URL, operationId: string, response: ServerResponse): Promise<void> {
    const tool = z.enum(BACKGROUND_TOOLS).parse(pathname.slice(1));
    const [call, ms] = [searchParams.get("call") ?? "", Number(searchParams.get("ms"))];
    this.#history.hits.push({ tool, call, operationId });
    const handle = searchParams.get("handle");
    if (handle === null) await pause(ms);
    else void this.#pay({ handle, call, operationId, ms });
    if (response.destroyed) return;
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ done: call }));
  }

  /** Delivers the result later, and repeats the delivery until it has an answer. Every third result is delivered twice. */
  async #pay(payment: { handle: string; call: string; operationId: string; ms: number }): Promise<void> {
    const { signal } = this.#ended;
    const { call, operationId, ms } = payment;
    for (let left = ms % 3 === 0 ? 2 : 1; left > 0 && !signal.aborted; ) {
      await pause(ms, undefined, { signal }).catch(() => undefined);
      const status = await this.#give(payment).catch(() => 500);
      this.#history.given.push({ call, operationId, status });
      if (status < 500 && status !== 429) left -= 1;
      else await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #give({ handle, call }: { handle: string; call: string }): Promise<number> {
    const response = await fetch(`${this.target}/api/operations/${encodeURIComponent(handle)}/result`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ result: { paid: call } }),
      signal: AbortSignal.any([this.#ended.signal, AbortSignal.timeout(10_000)]),
    });
    await response.text();
    return response.status;
  }
}

function chunk(delta: object, reason: string | null): string {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  return `data: ${JSON.stringify({ id: "chatcmpl", object: "chat.completion.chunk", choices })}\n\n`;
}
