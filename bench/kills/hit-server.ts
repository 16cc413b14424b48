/**
 * The outside world on loopback: a model that speaks Chat Completions with slow streams, and the endpoint of the tools.
 * It records requests by message and operation. It emits events, so that kills can be aimed.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import type { History, Hit, ModelRequest } from "./history.ts";
import { OUTSIDE_SERVER } from "./outside-server.ts";
import { callName, piecesOf, type Script, scriptOf, TOOL_EFFECTS } from "./script.ts";

/** `piece`: a delta of a model's reply was sent. `ended`: the response was completed or cut off. */
export type HitEvent = { type: "began" | "piece" | "ended"; hit: Hit };

const messageSchema = z.object({ role: z.string(), content: z.unknown() });
type ChatMessage = z.output<typeof messageSchema>;
const chatSchema = z.object({ messages: z.array(messageSchema) });

export class HitServer {
  readonly #hits: Hit[];
  readonly #requests: ModelRequest[];
  readonly #listeners = new Set<(event: HitEvent) => void>();
  readonly #server = createServer(OUTSIDE_SERVER, (request, response) => {
    this.#handle(request, response).catch((error: unknown) => {
      // A killed caller is expected. Any other error is an error of a script.
      if (!response.destroyed) console.error(error);
      response.destroy();
    });
  });

  /** Records every request. */
  constructor({ hits, requests }: Pick<History, "hits" | "requests">) {
    this.#hits = hits;
    this.#requests = requests;
  }

  async start(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get baseUrl(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("The hit server is not started.");
    return `http://127.0.0.1:${address.port}`;
  }

  /** Calls the listener at each event. Returns a function that unsubscribes it. */
  listen(listener: (event: HitEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves synchronously at the next event that meets the condition. */
  next(condition: (event: HitEvent) => boolean, signal: AbortSignal): Promise<HitEvent> {
    return new Promise((resolve, reject) => {
      const give = () => {
        stop();
        reject(signal.reason);
      };
      const stop = this.listen((event) => {
        if (!condition(event)) return;
        stop();
        signal.removeEventListener("abort", give);
        resolve(event);
      });
      if (signal.aborted) give();
      else signal.addEventListener("abort", give, { once: true });
    });
  }

  /** Resolves when the whole answer to a message has been sent. */
  async answered({ key, rounds }: Script, signal: AbortSignal): Promise<void> {
    const isLast = (hit: Hit) =>
      hit.kind === "model" && hit.key === key && hit.call === rounds.length && hit.answered;
    if (!this.#hits.some(isLast)) await this.next(({ hit }) => isLast(hit), signal);
  }

  async close(): Promise<void> {
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
      await this.#answerAsModel(JSON.parse(Buffer.concat(chunks).toString()), response);
    } else {
      await this.#act(url, String(request.headers["idempotency-key"]), response);
    }
  }

  async #answerAsModel(body: unknown, response: ServerResponse): Promise<void> {
    const { messages } = chatSchema.parse(body);
    if (isOrder(messages.at(-1))) return this.#summarise(messages.slice(0, -1), response);
    const asked = messages.findLastIndex(isScript);
    const script = scriptOf(messages[asked]?.content);
    this.#requests.push({ key: script.key, ...knownIn(messages) });
    const call = messages.slice(asked).filter(({ role }) => role === "assistant").length;
    const hit = this.#begin({ ...unended(script.key), kind: "model", call }, response);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const content of piecesOf(script, call)) {
      await pause(script.pieceMs);
      if (response.destroyed) return;
      response.write(chunk({ content }, null));
      this.#tell({ type: "piece", hit });
    }
    const effects = script.rounds[call];
    const toolCalls = effects?.map((effect, index) => {
      const name = callName(script, call, index);
      const url = `${this.baseUrl}/${effect}?${new URLSearchParams({ call: name, ms: String(script.toolMs) })}`;
      return {
        index,
        id: name,
        type: "function",
        function: { name: effect, arguments: JSON.stringify({ url }) },
      };
    });
    if (toolCalls !== undefined) response.write(chunk({ tool_calls: toolCalls }, null));
    response.write(chunk({}, toolCalls === undefined ? "stop" : "tool_calls"));
    this.#answer(hit, response, "data: [DONE]\n\n");
  }

  /** Answers with the keys of all messages that the summary covers. */
  async #summarise(messages: readonly ChatMessage[], response: ServerResponse): Promise<void> {
    const { summarised, shown } = knownIn(messages);
    const [key = ""] = shown;
    this.#requests.push({ key, summarised, shown });
    const hit = this.#begin({ ...unended(key), kind: "summary" }, response);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const content of [SUMMARISED, ...summarised, ...shown]) {
      await pause(SUMMARY_PIECE_MS);
      if (response.destroyed) return;
      response.write(chunk({ content: content === SUMMARISED ? content : ` ${content}` }, null));
      this.#tell({ type: "piece", hit });
    }
    response.write(chunk({}, "stop"));
    this.#answer(hit, response, "data: [DONE]\n\n");
  }

  async #act({ pathname, searchParams }: URL, operationId: string, response: ServerResponse): Promise<void> {
    const effect = z.enum(TOOL_EFFECTS).parse(pathname.slice(1));
    const call = searchParams.get("call") ?? "";
    const key = call.split("/")[0] ?? "";
    const hit = this.#begin({ ...unended(key), kind: "tool", effect, call, operationId }, response);
    await pause(Number(searchParams.get("ms")));
    if (response.destroyed) return;
    response.writeHead(200, { "content-type": "application/json" });
    this.#answer(hit, response, JSON.stringify({ done: call }));
  }

  #begin(hit: Hit, response: ServerResponse): Hit {
    this.#hits.push(hit);
    response.once("close", () => this.#end(hit, false));
    this.#tell({ type: "began", hit });
    return hit;
  }

  #answer(hit: Hit, response: ServerResponse, rest: string): void {
    response.end(rest);
    // Records the end before the last byte, because a caller may hang up when it has read enough.
    this.#end(hit, true);
  }

  #end(hit: Hit, answered: boolean): void {
    if (Number.isFinite(hit.endedAt)) return;
    hit.endedAt = Date.now();
    hit.answered = answered;
    this.#tell({ type: "ended", hit });
  }

  #tell(event: HitEvent): void {
    for (const listener of this.#listeners) listener(event);
  }
}

/** The beginning of an order to summarise. */
const ORDER = "This is an order of the platform";
/** The beginning of a summary. Keys follow. */
const SUMMARISED = "Summarised:";
const SUMMARY_PIECE_MS = 20;

/** Reports whether a message comes from a user. Some notes of the platform also have the role `user`. */
function isScript({ role, content }: ChatMessage): boolean {
  return role === "user" && String(content).startsWith("{");
}

function isOrder(message: ChatMessage | undefined): boolean {
  return message?.role === "user" && String(message.content).startsWith(ORDER);
}

/** Returns the keys of the messages that a summary covers, and of the messages in full. */
function knownIn(messages: readonly ChatMessage[]): Omit<ModelRequest, "key"> {
  const summaries = messages.slice(1).flatMap(({ role, content }) => {
    const [, keys = ""] = role === "assistant" ? [] : String(content).split(SUMMARISED);
    return keys.split(" ").filter((key) => key !== "");
  });
  const said = messages.filter(isScript);
  return { summarised: summaries, shown: said.map(({ content }) => scriptOf(content).key) };
}

function unended(key: string) {
  return { key, at: Date.now(), endedAt: Number.POSITIVE_INFINITY, answered: false };
}

function chunk(delta: object, reason: string | null): string {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  return `data: ${JSON.stringify({ id: "chatcmpl", object: "chat.completion.chunk", choices })}\n\n`;
}
