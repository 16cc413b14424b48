/** The HTTP client against a loopback server: requests, responses, problem documents and streams. */
import { execFile } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createClient,
  type DramatisClient,
  DramatisClientError,
  type Frame,
} from "../../src/client/index.ts";

interface Received {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingMessage["headers"];
  body: string;
}

type Answer = (response: ServerResponse, request: Received) => void;

let server: Server;
let baseUrl: string;
let received: Received[];
let answer: Answer;

beforeEach(async () => {
  received = [];
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method, url, headers } = request;
    const seen = { method, url, headers, body: Buffer.concat(chunks).toString() };
    received.push(seen);
    answer(response, seen);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  // SAFETY: a server that listens on TCP has an address with a port.
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

function json(status: number, body: unknown, type = "application/json"): Answer {
  return (response) => {
    response.writeHead(status, { "content-type": type });
    response.end(JSON.stringify(body));
  };
}

async function failure(call: Promise<unknown>): Promise<DramatisClientError> {
  const error = await call.then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error instanceof DramatisClientError) return error;
  throw new Error("The call did not fail with a DramatisClientError.", { cause: error });
}

const time = "2026-03-01T10:00:00.000Z";
const frames: Frame[] = [
  { v: 1, seq: 1, type: "turn.started", turnId: "t1", time, data: { agentId: "guide" } },
  {
    v: 1,
    type: "message.delta",
    turnId: "t1",
    messageId: "m2",
    time,
    data: { offset: 0, text: "Grüße 👩‍🚀" },
  },
  { v: 1, seq: 3, type: "turn.completed", turnId: "t1", time, data: {} },
];

function sse(list: readonly Frame[]): string {
  const events = list.map(
    (frame) => `${frame.seq === undefined ? "" : `id: ${frame.seq}\n`}data: ${JSON.stringify(frame)}\n\n`,
  );
  return `: hello\n\n${events.join("")}`;
}

async function collect(stream: AsyncIterable<Frame>): Promise<Frame[]> {
  const all: Frame[] = [];
  for await (const frame of stream) all.push(frame);
  return all;
}

describe("requests", () => {
  const cases: [string, (client: DramatisClient) => Promise<unknown>, string, unknown][] = [
    ["agents.list", (client) => client.agents.list(), "GET /api/agents", undefined],
    ["agents.get", (client) => client.agents.get("a b"), "GET /api/agents/a%20b", undefined],
    ["agents.usage", (client) => client.agents.usage("a b"), "GET /api/agents/a%20b/usage", undefined],
    ["runs.trace", (client) => client.runs.trace("a b"), "GET /api/runs/a%20b/trace", undefined],
    [
      "memories.list",
      (client) =>
        client.memories.list("a b", {
          limit: 5,
          type: ["a", "b,c"],
          state: ["archived"],
          subject: { userId: "ann" },
          metadata: { n: 1 },
        }),
      "GET /api/agents/a%20b/memories?limit=5&state=archived&type=a&type=b%2Cc&userId=ann&metadata=%7B%22n%22%3A1%7D",
      undefined,
    ],
    [
      "memories.search",
      (client) => client.memories.search("guide", { query: "seats", limit: 3 }),
      "POST /api/agents/guide/memories/search",
      { query: "seats", limit: 3 },
    ],
    [
      "memories.searchAgents",
      (client) => client.memories.searchAgents(["guide", "clerk"], { query: "seats", type: "fact" }),
      "GET /api/memories/search?agents=guide%2Cclerk&q=seats&type=fact",
      undefined,
    ],
    [
      "memories.get",
      (client) => client.memories.get("guide", "mem_1"),
      "GET /api/agents/guide/memories/mem_1",
      undefined,
    ],
    [
      "memories.write",
      (client) => client.memories.write("guide", { content: "A fact." }),
      "POST /api/agents/guide/memories",
      { content: "A fact." },
    ],
    ["projects.list", (client) => client.projects.list({ limit: 5 }), "GET /api/projects?limit=5", undefined],
    ["projects.get", (client) => client.projects.get("shop"), "GET /api/projects/shop", undefined],
    [
      "projects.create",
      (client) => client.projects.create({ id: "shop", repositories: [{ id: "web" }] }),
      "POST /api/projects",
      { id: "shop", repositories: [{ id: "web" }] },
    ],
    [
      "workspaces.get",
      (client) => client.workspaces.get({ run: "run_1" }),
      "GET /api/runs/run_1/workspace",
      undefined,
    ],
    [
      "workspaces.files",
      (client) => client.workspaces.files({ conversation: "conv_1" }, { path: "src" }),
      "GET /api/conversations/conv_1/workspace/files?path=src",
      undefined,
    ],
    [
      "workspaces.file",
      (client) => client.workspaces.file({ run: "run_1" }, "a b.ts", { repo: "web", lines: 9 }),
      "GET /api/runs/run_1/workspace/file?path=a+b.ts&repo=web&lines=9",
      undefined,
    ],
    [
      "workspaces.diff",
      (client) => client.workspaces.diff({ run: "run_1" }, { against: "base" }),
      "GET /api/runs/run_1/workspace/diff?against=base",
      undefined,
    ],
    [
      "workspaces.commits",
      (client) => client.workspaces.commits({ run: "run_1" }, { limit: 3 }),
      "GET /api/runs/run_1/workspace/commits?limit=3",
      undefined,
    ],
    [
      "projects.update",
      (client) => client.projects.update("shop", { budget: null }),
      "PATCH /api/projects/shop",
      { budget: null },
    ],
    [
      "projects.fetch",
      (client) => client.projects.fetch("shop", "web", { url: "https://a.example/b.git" }),
      "POST /api/projects/shop/repos/web/fetch",
      { url: "https://a.example/b.git" },
    ],
    [
      "projects.push",
      (client) => client.projects.push("shop", "web", { url: "https://a.example/b.git", to: "topic" }),
      "POST /api/projects/shop/repos/web/push",
      { url: "https://a.example/b.git", to: "topic" },
    ],
    [
      "projects.secrets",
      (client) => client.projects.secrets("shop"),
      "GET /api/projects/shop/secrets",
      undefined,
    ],
    [
      "projects.putSecret",
      (client) => client.projects.putSecret("shop", "stock", { value: "a-secret", hosts: ["a.example"] }),
      "PUT /api/projects/shop/secrets/stock",
      { value: "a-secret", hosts: ["a.example"] },
    ],
    [
      "projects.addRepository",
      (client) => client.projects.addRepository("shop", { id: "web", defaultBranch: "trunk" }),
      "POST /api/projects/shop/repos",
      { id: "web", defaultBranch: "trunk" },
    ],
    [
      "projects.branches",
      (client) => client.projects.branches("a b", "web"),
      "GET /api/projects/a%20b/repos/web/branches",
      undefined,
    ],
    [
      "projects.writeFiles",
      (client) => client.projects.writeFiles("shop", "web", { files: { "a.md": "A", "b.md": null } }),
      "PUT /api/projects/shop/repos/web/files",
      { files: { "a.md": "A", "b.md": null } },
    ],
    [
      "workspaces.commit",
      (client) => client.workspaces.commit("conv_1", "Fix it", { repo: "web" }),
      "POST /api/conversations/conv_1/workspace/commit",
      { message: "Fix it", repo: "web" },
    ],
    [
      "workspaces.merge",
      (client) => client.workspaces.merge("conv_1", { strategy: "rebase" }),
      "POST /api/conversations/conv_1/workspace/merge",
      { strategy: "rebase" },
    ],
    [
      "artifacts.list",
      (client) => client.artifacts.list("shop", { limit: 5, path: "notes", type: "note", cursor: "a/b.md" }),
      "GET /api/projects/shop/artifacts?limit=5&cursor=a%2Fb.md&path=notes&type=note",
      undefined,
    ],
    [
      "artifacts.search",
      (client) => client.artifacts.search("shop", "who pays?", { limit: 3 }),
      "GET /api/projects/shop/artifacts?limit=3&q=who+pays%3F",
      undefined,
    ],
    [
      "artifacts.get",
      (client) => client.artifacts.get("shop", "a b/c.md", { version: "0f" }),
      "GET /api/projects/shop/artifact?path=a+b%2Fc.md&version=0f",
      undefined,
    ],
    [
      "artifacts.write",
      (client) => client.artifacts.write("shop", "c.md", { content: "# C", ifVersion: "0f" }),
      "PUT /api/projects/shop/artifact?path=c.md",
      { content: "# C", ifVersion: "0f" },
    ],
    [
      "memories.update",
      (client) => client.memories.update("guide", "mem_1", { speaker: null, ifVersion: 2 }),
      "PATCH /api/agents/guide/memories/mem_1",
      { speaker: null, ifVersion: 2 },
    ],
    [
      "memories.archive",
      (client) => client.memories.archive("guide", "mem_1"),
      "POST /api/agents/guide/memories/mem_1/archive",
      {},
    ],
    [
      "memories.why",
      (client) => client.memories.why("guide", "mem_1"),
      "GET /api/agents/guide/memories/mem_1/why",
      undefined,
    ],
    [
      "memories.status",
      (client) => client.memories.status("guide"),
      "GET /api/agents/guide/memory",
      undefined,
    ],
    [
      "conversations.list",
      (client) => client.conversations.list({ limit: 20, order: "desc", cursor: "a/b" }),
      "GET /api/conversations?limit=20&cursor=a%2Fb&order=desc",
      undefined,
    ],
    [
      "conversations.create",
      (client) => client.conversations.create({ agentId: "guide", title: "Numbers" }),
      "POST /api/conversations",
      { agentId: "guide", title: "Numbers" },
    ],
    [
      "conversations.get",
      (client) => client.conversations.get("a b"),
      "GET /api/conversations/a%20b",
      undefined,
    ],
    [
      "conversations.update",
      (client) => client.conversations.update("conv_1", { turns: "queued" }),
      "PATCH /api/conversations/conv_1",
      { turns: "queued" },
    ],
    [
      "turns.start",
      (client) => client.turns.start("conv_1", { content: "Hello", idempotencyKey: "k1" }),
      "POST /api/conversations/conv_1/turns",
      { content: "Hello", idempotencyKey: "k1" },
    ],
    [
      "turns.get",
      (client) => client.turns.get("conv_1", "t1"),
      "GET /api/conversations/conv_1/turns/t1",
      undefined,
    ],
    [
      "turns.cancel",
      (client) => client.turns.cancel("conv_1", "t/1", { reason: "Enough." }),
      "POST /api/conversations/conv_1/turns/t%2F1/cancel",
      { reason: "Enough." },
    ],
    [
      "conversations.cancel",
      (client) => client.conversations.cancel("conv_1"),
      "POST /api/conversations/conv_1/cancel",
      {},
    ],
    [
      "conversations.resume",
      (client) => client.conversations.resume("conv_1", { reason: "Back." }),
      "POST /api/conversations/conv_1/resume",
      { reason: "Back." },
    ],
    [
      "conversations.journal",
      (client) => client.conversations.journal("conv_1", { limit: 200, order: "desc" }),
      "GET /api/conversations/conv_1/journal?limit=200&order=desc",
      undefined,
    ],
    [
      "messages.list",
      (client) => client.messages.list("conv_1", { order: "desc" }),
      "GET /api/conversations/conv_1/messages?order=desc",
      undefined,
    ],
  ];

  it.each(cases)("%s", async (_, call, line, body) => {
    const value = { id: "x", agents: [], nextCursor: "next" };
    answer = json(200, value);
    expect(await call(createClient({ baseUrl: `${baseUrl}/`, token: "secret" }))).toEqual(value);
    const [request] = received;
    expect(`${request?.method} ${request?.url}`).toBe(line);
    expect(request?.headers).toMatchObject({ accept: "application/json", authorization: "Bearer secret" });
    expect(request?.headers["content-type"]).toBe(body === undefined ? undefined : "application/json");
    expect(request?.body).toBe(body === undefined ? "" : JSON.stringify(body));
  });

  it("returns the memories of a batch as a list, and undefined for a deleted memory", async () => {
    const client = createClient({ baseUrl });
    const memory = { id: "mem_1", content: "A fact." };
    answer = json(201, { memories: [memory] });
    expect(await client.memories.writeAll("guide", [{ content: "A fact." }])).toEqual([memory]);
    answer = (response) => response.writeHead(204).end();
    expect(await client.memories.delete("guide", "mem_1")).toBeUndefined();
    expect(await client.artifacts.delete("shop", "c.md", { ifVersion: "0f" })).toBeUndefined();
    await client.projects.deleteRepository("shop", "web");
    await client.projects.deleteSecret("shop", "stock");
    await client.projects.delete("shop");
    await client.workspaces.delete("run_1");
    expect(received.map(({ method, url, body }) => `${method} ${url} ${body}`)).toEqual([
      'POST /api/agents/guide/memories {"memories":[{"content":"A fact."}]}',
      "DELETE /api/agents/guide/memories/mem_1 ",
      "DELETE /api/projects/shop/artifact?path=c.md&ifVersion=0f ",
      "DELETE /api/projects/shop/repos/web ",
      "DELETE /api/projects/shop/secrets/stock ",
      "DELETE /api/projects/shop ",
      "DELETE /api/runs/run_1/workspace ",
    ]);
  });

  it("sends and returns the bundles of repositories", async () => {
    const client = createClient({ baseUrl });
    const branches = [{ name: "main", oid: "0f" }];
    answer = json(200, { branches });
    expect(await client.projects.importBundle("shop", "web", new Blob(["bundle"]))).toEqual({ branches });
    expect(received[0]).toMatchObject({
      ...{ method: "PUT", url: "/api/projects/shop/repos/web/bundle", body: "bundle" },
      headers: { "content-type": "application/octet-stream" },
    });
    answer = (response) => response.writeHead(200).end("exported");
    const stream = await client.projects.exportBundle("shop", "web");
    expect(await new Response(stream).text()).toBe("exported");
    expect(received[1]).toMatchObject({ method: "GET", url: "/api/projects/shop/repos/web/bundle" });
  });

  it("requests the token at each request, and sends no header without a token", async () => {
    answer = json(200, { agents: [] });
    let n = 0;
    const client = createClient({ baseUrl, token: async () => `token-${++n}` });
    await client.agents.list();
    await client.agents.list();
    await createClient({ baseUrl }).agents.list();
    expect(received.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer token-1",
      "Bearer token-2",
      undefined,
    ]);
  });

  it("uses the fetch it is given", async () => {
    const client = createClient({
      baseUrl: "http://nowhere.invalid",
      fetch: async () => Response.json({ agents: [] }),
    });
    expect(await client.agents.list()).toEqual({ agents: [] });
  });
});

describe("failures", () => {
  it("turns a problem document into an error with its code, detail and issues", async () => {
    const problem = {
      type: "about:blank",
      title: "Unprocessable",
      status: 422,
      detail: "Give agentId.",
      code: "INVALID_INPUT",
      errors: [{ path: "/agentId", message: "is missing" }, "not an issue"],
    };
    answer = json(422, problem, "application/problem+json");
    const error = await failure(createClient({ baseUrl }).conversations.create({ agentId: "" }));
    expect(error).toMatchObject({
      code: "INVALID_INPUT",
      status: 422,
      detail: "Give agentId.",
      message: "Give agentId.",
      errors: [{ path: "/agentId", message: "is missing" }],
      retriable: false,
    });
  });

  it.each([
    [429, true],
    [503, true],
    [500, true],
    [404, false],
    [409, false],
  ])("status %i: retriable is %s", async (status, retriable) => {
    answer = json(status, { code: "SOME_CODE", title: "A title" });
    const error = await failure(createClient({ baseUrl }).agents.list());
    expect(error).toMatchObject({ code: "SOME_CODE", status, detail: "A title", retriable });
  });

  it.each([
    ["7", 7_000],
    ["0", 0],
    ["Wed, 21 Oct 2026 07:28:00 GMT", null],
    ["soon", null],
    [undefined, null],
  ])("Retry-After %s: wait %s", async (header, retryAfter) => {
    answer = (response) => {
      if (header !== undefined) response.setHeader("retry-after", header);
      json(429, { code: "RATE_LIMITED" })(response, { method: "", url: "", headers: {}, body: "" });
    };
    expect(await failure(createClient({ baseUrl }).agents.list())).toMatchObject({ status: 429, retryAfter });
    answer = (response) =>
      response.writeHead(503, header === undefined ? {} : { "retry-after": header }).end();
    expect(await failure(createClient({ baseUrl }).agents.list())).toMatchObject({
      code: "HTTP",
      retryAfter,
    });
  });

  it("names the status of an answer that is no problem document", async () => {
    answer = (response) => response.writeHead(502).end("<h1>Bad gateway</h1>");
    const error = await failure(createClient({ baseUrl }).agents.list());
    expect(error).toMatchObject({ code: "HTTP", status: 502, detail: "HTTP 502 Bad Gateway" });
  });

  it("refuses a page instead of JSON", async () => {
    answer = (response) => response.end("<!doctype html>");
    const error = await failure(createClient({ baseUrl }).agents.list());
    expect(error).toMatchObject({ code: "HTTP", status: 200 });
    expect(error.detail).toContain(`${baseUrl}/api/agents`);
  });

  it("reports a missing answer", async () => {
    answer = (response) => void response.destroy();
    const error = await failure(createClient({ baseUrl }).agents.list());
    expect(error).toMatchObject({ code: "NETWORK", status: 0, retriable: true });
    expect(error.cause).toBeInstanceOf(Error);
  });

  it("keeps an abort by the caller unchanged", async () => {
    const controller = new AbortController();
    const reason = new Error("changed my mind");
    answer = () => controller.abort(reason);
    const call = createClient({ baseUrl }).agents.list({ signal: controller.signal });
    await expect(call).rejects.toBe(reason);
  });
});

describe("E23 RESUBSCRIBE-1 follow", () => {
  const event = (frame: object) =>
    `data: ${JSON.stringify({ v: 1, time: "2026-01-01T00:00:00Z", ...frame })}\n\n`;
  const delta = (offset: number, text: string) =>
    event({ type: "message.delta", messageId: "msg_1", data: { offset, text } });
  const durable = (seq: number) => event({ type: "turn.started", seq, data: { agentId: "a" } });

  it("E23 RESUBSCRIBE-1 resumes lost streams with the last number, without loss or repetition, and throws a final error", async () => {
    const streams = [
      [durable(4), delta(0, "Hel")],
      [],
      [delta(0, "Hello"), event({ type: "error", data: { code: "UNAUTHENTICATED", message: "Expired." } })],
      [
        event({ type: "message.completed", seq: 5, messageId: "msg_1", data: { content: "Hello" } }),
        durable(6),
      ],
    ];
    answer = (response) => {
      const stream = streams.shift();
      if (stream === undefined)
        return json(
          404,
          { code: "NOT_FOUND", detail: "Gone." },
          "application/problem+json",
        )(response, {} as Received);
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(":\n\n");
      for (const text of stream) response.write(text);
      response.end();
    };
    const got: unknown[] = [];
    const following = createClient({ baseUrl }).conversations.follow("conv_1", {
      from: 3,
      types: ["turn.started", "message.delta"],
    });
    const error = await failure(
      (async () => {
        for await (const { seq, data } of following) got.push(seq ?? data);
      })(),
    );
    expect(error.code).toBe("NOT_FOUND");
    expect(got).toEqual([4, { offset: 0, text: "Hel" }, { offset: 3, text: "lo" }, 5, 6]);
    const query = "types=turn.started%2Cmessage.delta";
    expect(received.map(({ url }) => url)).toEqual(
      [3, 4, 4, 4, 6].map((from) => `/api/conversations/conv_1/events?from=${from}&${query}`),
    );
  });

  it("E23 RESUBSCRIBE-1 ends when its signal aborts, also between two streams", async () => {
    const controller = new AbortController();
    answer = (response) => {
      response.writeHead(503);
      response.end();
      controller.abort(new Error("Enough."));
    };
    const following = createClient({ baseUrl }).conversations.follow("conv_1", { signal: controller.signal });
    await expect(collect(following)).rejects.toThrow("Enough.");
  });

  it("RESUBSCRIBE-2 a run is followed over lost streams and an expired token until its end", async () => {
    const entry = (seq: number) => event({ type: "task.started", seq });
    const streams = [
      [entry(1), entry(2)],
      [event({ type: "error", data: { code: "UNAUTHENTICATED" } })],
      [entry(3)],
    ];
    answer = (response) => {
      const stream = streams.shift();
      response.writeHead(stream === undefined ? 204 : 200, { "content-type": "text/event-stream" });
      for (const text of stream ?? []) response.write(text);
      response.end();
    };
    const [seqs, connections]: [number[], boolean[]] = [[], []];
    const onConnection = (isOpen: boolean) => connections.push(isOpen);
    for await (const { seq } of createClient({ baseUrl }).runs.follow("run_1", { onConnection }))
      seqs.push(seq);
    expect(seqs).toEqual([1, 2, 3]);
    expect(connections).toEqual([true, false, true, false, true, false]);
    expect(received.map(({ url }) => url)).toEqual(
      ["", "?from=2", "?from=2", "?from=3"].map((query) => `/api/runs/run_1/events${query}`),
    );
  });
});

describe("streamTurn", () => {
  it("yields the turn's frames, however the stream is split", async () => {
    answer = async (response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const byte of Buffer.from(sse(frames))) response.write(Buffer.from([byte]));
      response.end();
    };
    const stream = createClient({ baseUrl }).streamTurn("conv_1", { content: "Hi" });
    expect(await collect(stream)).toEqual(frames);
    const [request] = received;
    expect(`${request?.method} ${request?.url}`).toBe("POST /api/conversations/conv_1/turns");
    expect(request?.headers.accept).toBe("text/event-stream");
    expect(JSON.parse(request?.body ?? "")).toEqual({ content: "Hi" });
  });

  it("ends with the turn, even if the server keeps the stream open", async () => {
    const closed = new Promise<void>((resolve) => {
      answer = (response) => {
        response.on("close", resolve);
        response.write(sse(frames));
      };
    });
    expect(await collect(createClient({ baseUrl }).streamTurn("conv_1", { content: "Hi" }))).toHaveLength(3);
    await closed;
  });

  it("releases the connection when the reader leaves early", async () => {
    const closed = new Promise<void>((resolve) => {
      answer = (response) => {
        response.on("close", resolve);
        response.write(sse(frames.slice(0, 2)));
      };
    });
    for await (const frame of createClient({ baseUrl }).streamTurn("conv_1", { content: "Hi" })) {
      if (frame.type === "message.delta") break;
    }
    await closed;
  });

  it.each([
    ["ends", (response: ServerResponse) => void response.end()],
    ["breaks", (response: ServerResponse) => void setImmediate(() => response.destroy())],
  ])("fails with STREAM_INTERRUPTED if the stream %s before the turn", async (_, end) => {
    answer = (response) => {
      response.write(sse(frames.slice(0, 2)), () => end(response));
    };
    const seen: string[] = [];
    const read = async () => {
      for await (const { type } of createClient({ baseUrl }).streamTurn("c", { content: "Hi" }))
        seen.push(type);
    };
    expect(await failure(read())).toMatchObject({ code: "STREAM_INTERRUPTED", status: 0, retriable: true });
    expect(seen).toEqual(["turn.started", "message.delta"]);
  });

  it("fails with the problem if the turn is refused", async () => {
    answer = json(409, { code: "CONVERSATION_CLOSED", detail: "Begin another conversation." });
    const error = await failure(collect(createClient({ baseUrl }).streamTurn("conv_1", { content: "Hi" })));
    expect(error).toMatchObject({ code: "CONVERSATION_CLOSED", status: 409 });
  });

  it("passes over events that are no frames", async () => {
    answer = (response) => {
      response.end(`data: not json\n\ndata: {"v":2}\n\n${sse(frames)}`);
    };
    expect(await collect(createClient({ baseUrl }).streamTurn("c", { content: "Hi" }))).toEqual(frames);
  });
});

it.each([
  ["localhost:8931", "http://localhost:8931"],
  ["127.0.0.1:8931", "http://127.0.0.1:8931"],
  ["example.com", "http://example.com"],
  ["ws://example.com", "http://example.com"],
])("refuses the address %s, and says to write %s", (address, right) => {
  const create = () => createClient({ baseUrl: address });
  expect(create).toThrow(expect.objectContaining({ code: "INVALID_INPUT", retriable: false }));
  expect(create).toThrow(`is "${address}". Write "${right}"`);
  for (const fine of [right, `${right}/`, "", undefined])
    createClient(fine === undefined ? {} : { baseUrl: fine });
});

it("is imported by Node unchanged, which only strips types", async () => {
  const url = new URL("../../src/client/index.ts", import.meta.url);
  const script = `import(${JSON.stringify(url)}).then(({ createClient }) => console.log(typeof createClient))`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--eval", script]);
  expect(stdout.trim()).toBe("function");
});
