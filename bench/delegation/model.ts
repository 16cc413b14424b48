/** The scripted model of every system: a server on loopback that speaks Chat Completions and answers at once. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type ChatMessage, CLERK, MODEL_ID, replyTo } from "./workload.ts";

export interface Model {
  /** Address with the path `/v1`. */
  baseUrl: string;
  /** Number of requests so far. */
  calls(): number;
  close(): Promise<void>;
}

interface ChatRequest {
  stream?: boolean;
  messages: ChatMessage[];
  tools?: { function: { name: string; parameters: { properties?: object } } }[];
}

export async function startModel(): Promise<Model> {
  let calls = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    calls += 1;
    // SAFETY: the runner checks the answers, and they depend on these members.
    const body = JSON.parse(Buffer.concat(chunks).toString()) as ChatRequest;
    if (body.stream !== true) {
      response.writeHead(400).end("The scripted model only streams.");
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`${eventsOf(body).map(frame).join("")}data: [DONE]\n\n`);
  });
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  // SAFETY: a server that listens on a port has an `AddressInfo`.
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    calls: () => calls,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function eventsOf({ messages, tools = [] }: ChatRequest): object[] {
  const reply = replyTo(messages);
  const choice = (delta: object, finish_reason: string | null = null) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1_700_000_000,
    model: MODEL_ID,
    choices: [{ index: 0, delta, finish_reason }],
  });
  const usage = { ...choice({}), choices: [], usage: USAGE };
  if ("pieces" in reply) {
    return [
      choice({ role: "assistant", content: "" }),
      ...reply.pieces.map((content) => choice({ content })),
      choice({}, "stop"),
      usage,
    ];
  }
  const tool = tools.find(({ function: { name } }) => name.endsWith(CLERK))?.function;
  const field = "message" in (tool?.parameters.properties ?? {}) ? "message" : "prompt";
  const calls = reply.tasks.map((task, index) => ({
    index,
    id: `call_${crypto.randomUUID()}`,
    type: "function",
    function: { name: tool?.name, arguments: JSON.stringify({ [field]: task }) },
  }));
  return [
    choice({ role: "assistant", content: null }),
    ...calls.map((call) => choice({ tool_calls: [call] })),
    choice({}, "tool_calls"),
    usage,
  ];
}

const USAGE = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 };

function frame(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}
