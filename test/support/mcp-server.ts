/**
 * MCP servers on loopback for tests that run in another process. `/NAME` is a server. Names that begin with `session` keep sessions of an older
 * revision, names that begin with `raw` are no correct servers, all others speak the newest revision. The rest of the port is for the tests:
 *
 *   POST /control/NAME                  sets the tools and faults of a server
 *   GET  /control/NAME/seen?count=N     returns the requests of a server, once there are N of these methods (`of=`)
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import {
  type CallToolResult,
  createMcpHandler,
  inputRequired,
  Server,
  type ServerContext,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { McpFaults, SeenRequest, ServedTool } from "./mcp-script.ts";

interface Message {
  id?: unknown;
  method?: string;
  params?: SeenRequest["params"];
}

class Served {
  state: McpFaults = { tools: [{ name: "echo", inputSchema: { type: "object" } }] };
  readonly sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  readonly seen: SeenRequest[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #modern = createMcpHandler(() => this.#server());

  constructor(private readonly name: string) {}

  note(request: SeenRequest): void {
    this.seen.push(request);
    for (const check of this.#waiting) check();
  }

  reach(method: string, count: number): Promise<SeenRequest[]> {
    return new Promise((resolve) => {
      const check = () => {
        const found = this.seen.filter((request) => request.method === method);
        if (found.length < count) return;
        this.#waiting.delete(check);
        resolve(found);
      };
      this.#waiting.add(check);
      check();
    });
  }

  async answer(request: Request): Promise<Response> {
    const { redirect, status } = this.state;
    // SAFETY: clients send messages.
    const body = (request.method === "POST" ? await request.clone().json() : {}) as Message;
    for (const { method = "answer", params } of request.method === "POST" ? [body].flat() : [])
      this.note({ method, params: params ?? {}, headers: Object.fromEntries(request.headers) });
    if (redirect !== undefined) return new Response(null, { status: 307, headers: { location: redirect } });
    if (status !== undefined) return new Response("No.", { status });
    if (this.name.startsWith("raw")) return this.#raw(body);
    if (!this.name.startsWith("session")) return this.#modern.fetch(request);
    if (body.method === "server/discover") return new Response("No such method.", { status: 400 });
    const id = request.headers.get("mcp-session-id");
    const known = this.sessions.get(id ?? "");
    if (id !== null && known === undefined) return new Response("No such session.", { status: 404 });
    return (known ?? (await this.#begin())).handleRequest(request);
  }

  async #begin(): Promise<WebStandardStreamableHTTPServerTransport> {
    const transport: WebStandardStreamableHTTPServerTransport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void this.sessions.set(id, transport),
    });
    await this.#server().connect(transport);
    return transport;
  }

  #server(): Server {
    const server = new Server(
      { name: this.name, version: "1.0.0" },
      { capabilities: { tools: { listChanged: true } } },
    );
    server.setRequestHandler("tools/list", (_, { http }) => {
      const authorization = String(http?.req?.headers.get("authorization"));
      const tools = JSON.stringify(listed(this.state.tools ?? [])).replaceAll(
        "{authorization}",
        authorization,
      );
      return { tools: JSON.parse(tools) } as never;
    });
    server.setRequestHandler("tools/call", ({ params: { name, arguments: input = {} } }, context) => {
      const tool = (this.state.tools ?? []).find((one) => one.name === name);
      return this.#run(tool, input, context) as never;
    });
    return server;
  }

  async #run(tool: ServedTool | undefined, input: Record<string, unknown>, context: ServerContext) {
    const { mcpReq, http } = context;
    switch (tool?.does) {
      case "hang":
        await new Promise((resolve) => mcpReq.signal.addEventListener("abort", resolve));
        this.note({ method: "aborted", params: {}, headers: {} });
        return text("Too late.");
      case "big":
        return text("x".repeat(Number(input.size)));
      case "headers":
        return text(String(http?.req?.headers.get("authorization")));
      case "leak":
        throw new Error(`Not with ${http?.req?.headers.get("authorization")}.`);
      case "fail":
        return { ...text("The shelf is empty."), isError: true };
      case "picture":
        return {
          content: [
            { type: "text", text: "A dot." },
            { type: "image", data: "AAAAAAAA", mimeType: "image/png" },
          ],
        };
      case "structured":
        return { ...text(JSON.stringify(input)), structuredContent: { got: input } };
      case "change":
        await mcpReq.notify({ method: "notifications/tools/list_changed" });
        return text("Changed.");
      case "report":
        await mcpReq.notify({
          method: "notifications/progress",
          params: {
            ...{ progressToken: Object(mcpReq._meta).progressToken, progress: 1, total: 2 },
            message: String(http?.req?.headers.get("authorization")),
          },
        });
        return text("Reported.");
      case "ask":
        return ask(this.name, input, context);
      default:
        return text(JSON.stringify(input));
    }
  }

  /** Answers without any check, as a hostile server does. */
  async #raw(body: Message): Promise<Response> {
    const { id, method } = body;
    const answer = (result: unknown) => Response.json({ jsonrpc: "2.0", id, result });
    if (method === "initialize")
      return answer({
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "raw", version: "1" },
      });
    if (id === undefined) return new Response(null, { status: 202 });
    const tools = this.state.tools ?? [];
    const { error: message } = this.state;
    if (method === "tools/list" && message !== undefined)
      return Response.json({ jsonrpc: "2.0", id, error: { code: -32_603, message } });
    if (method === "tools/list") return answer({ tools: listed(tools) });
    if (method !== "tools/call") return new Response("No.", { status: 400 });
    const tool = tools.find(({ name }) => name === body.params?.name);
    if (tool?.does === "drop") throw new Error("The connection breaks.");
    if (tool?.does === "flood") return flood();
    return answer(text("Raw."));
  }
}

/** Asks the question of the input. Answers with the response of the client. */
async function ask(name: string, { text: kind }: Record<string, unknown>, { mcpReq }: ServerContext) {
  const sure = {
    message: "Sure?",
    requestedSchema: {
      type: "object" as const,
      properties: { sure: { type: "boolean" as const } },
      required: ["sure"],
    },
  };
  if (name.startsWith("session")) return text(JSON.stringify(await mcpReq.elicitInput(sure)));
  const { inputResponses } = mcpReq;
  if (kind === "hollow") return inputRequired({ requestState: "again" });
  if (kind === "busy" && mcpReq.requestState() === undefined) return inputRequired({ requestState: "later" });
  if (kind === "busy") return text(`Repeated with "${mcpReq.requestState()}".`);
  if (inputResponses !== undefined && kind !== "endless")
    return text(JSON.stringify({ inputResponses, state: mcpReq.requestState() }));
  const url = { message: "Sign in.", url: "https://login.example.com/x?secret=1" };
  if (kind === "url")
    return inputRequired({ inputRequests: { login: inputRequired.elicitUrl(url) }, requestState: "s" });
  if (kind === "confirm") {
    const plain = {
      message: "Go on?\nIt costs 5.",
      requestedSchema: { type: "object" as const, properties: {} },
    };
    return inputRequired({ inputRequests: { plain: inputRequired.elicit(plain) } });
  }
  if (kind === "large")
    return inputRequired({
      inputRequests: { sure: inputRequired.elicit(sure) },
      requestState: "x".repeat(9_000),
    });
  if (kind === "sample")
    return inputRequired({
      inputRequests: {
        text: inputRequired.createMessage({
          messages: [{ role: "user", content: { type: "text", text: "Hi." } }],
          maxTokens: 10,
        }),
      },
    });
  return inputRequired({ inputRequests: { sure: inputRequired.elicit(sure) }, requestState: "s" });
}

/** An answer without an end. */
export function flood(): Response {
  const chunk = new TextEncoder().encode("x".repeat(1_000_000));
  const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(chunk) });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

function text(content: string): CallToolResult {
  return { content: [{ type: "text", text: content }] };
}

function listed(tools: readonly ServedTool[]): object[] {
  return tools.map(({ does: _, ...tool }) => tool);
}

/** Starts the servers. */
export async function startMcpServers(): Promise<{ url: string; close(): Promise<void> }> {
  const servers = new Map<string, Served>();
  const serverOf = (name = "") => {
    const server = servers.get(name) ?? new Served(name);
    servers.set(name, server);
    return server;
  };
  const answer = async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url);
    const [first, name, seen] = pathname.slice(1).split("/");
    if (first !== "control") return serverOf(first).answer(request);
    const server = serverOf(name);
    if (seen === "seen") {
      const count = Number(searchParams.get("count"));
      return Response.json(await server.reach(searchParams.get("of") ?? "", count));
    }
    server.state = (await request.json()) as McpFaults;
    if (server.state.lost) server.sessions.clear();
    return Response.json({});
  };
  const http = createServer((incoming, outgoing) => {
    bridge(incoming, outgoing, answer).catch(() => outgoing.destroy());
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async close() {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}

/** Answers a request of Node by a function of requests and responses. */
export async function bridge(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  answer: (request: Request) => Promise<Response>,
): Promise<void> {
  const { method = "GET", url = "/", headers } = incoming;
  const gone = new AbortController();
  outgoing.on("close", () => gone.abort());
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const response = await answer(
    new Request(`http://${headers.host}${url}`, {
      method,
      headers: Object.entries(headers).map(([name, value]) => [name, String(value)]),
      signal: gone.signal,
      ...(chunks.length > 0 && { body: Buffer.concat(chunks) }),
    }),
  );
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) outgoing.end();
  else
    Readable.fromWeb(response.body as never)
      .on("error", () => outgoing.destroy())
      .pipe(outgoing);
}
