/** The descriptions of MCP servers and the consent to them, as pure functions. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { mcpReference, modelName, toolReferenceSchema } from "../../src/library/definitions/mcp-reference.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { McpConnections } from "../../src/mcp/connections.ts";
import { type ListedTool, readTools, toolId } from "../../src/mcp/descriptor.ts";
import { McpTools } from "../../src/mcp/mcp-tools.ts";
import { consented, type McpList, merged, stateOf } from "../../src/mcp/pins.ts";
import { mcpRequests } from "../../src/mcp/requests.ts";
import { credentialsOf, mcpServersOf } from "../../src/mcp/servers.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { PinnedTool } from "../../src/protocol/definitions.ts";
import { DEFINITION_ID } from "../../src/shared/identifiers.ts";
import { startMcpServers } from "../support/mcp-server.ts";

const SERVER = "a".repeat(32);
const schema = { type: "object" };
const listed = (names: Record<string, string>) =>
  readTools(
    "desk",
    Object.entries(names).map(([name, description]) => ({ name, description, inputSchema: schema })),
  );
const states = (list: McpList) =>
  Object.fromEntries(Object.entries(list.tools).map(([id, pin]) => [id, stateOf(pin)]));

describe("I11 names", () => {
  it("I11 MCPTOOL-1 each name becomes a name that providers accept, and a good name stays", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 128 }), (name) => {
        const id = toolId(SERVER, name);
        expect(id).toMatch(DEFINITION_ID);
        expect(modelName(SERVER, id)).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
        expect(toolId(SERVER, name)).toBe(id);
      }),
    );
    expect(toolId("desk", "search_notes")).toBe("search_notes");
    expect(toolId("desk", "a.b")).not.toBe(toolId("desk", "a/b"));
  });

  it("I11 MCPREF-1 references name a server and a tool, or all tools", () => {
    expect(mcpReference("mcp:desk/notes.read")).toEqual({ server: "desk", tool: "notes.read" });
    expect(mcpReference("mcp:desk/*")).toEqual({ server: "desk", tool: "*" });
    for (const other of ["desk/read", "mcp:Desk/read", "mcp:desk/", "mcp:desk/a b", "mcp:/a"])
      expect(mcpReference(other)).toBeUndefined();
    expect(toolReferenceSchema.safeParse("mcp:desk/*").success).toBe(true);
    expect(toolReferenceSchema.safeParse("mcp:Desk/*").success).toBe(false);
  });
});

it("I11 the answer of a call does not wait for the store of a changed list", async () => {
  const server = await startMcpServers();
  onTestFinished(() => server.close());
  // A server that keeps sessions reports its changes.
  const url = `${server.url}/session`;
  const body = JSON.stringify({ tools: [{ name: "pay", does: "change" }] });
  await fetch(`${server.url}/control/session`, { method: "POST", body });
  const list = merged(null, await readTools("desk", [{ name: "pay", inputSchema: schema }]), Date.now());
  let finds = 0;
  const tools = new McpTools({
    ...{ servers: mcpServersOf({ desk: { url } }), connections: new McpConnections(systemClock) },
    ...{ pauses: new Map(), variable: () => undefined, clock: systemClock },
    lists: {
      find: () => (finds++ === 0 ? Promise.resolve({ rev: 1, list }) : new Promise(() => {})),
      put: async () => true,
    },
  });
  const call = {
    ...{ operationId: "op_1", attempt: 1, toolCallId: "", timeoutMs: 5_000, input: {} },
    tool: { library: "mcp:desk", id: "pay", version: 1 },
    context: { tenant: "t", projectId: "default", runId: "r", node: "n" },
  };
  const signal = AbortSignal.timeout(10_000);
  expect(await tools.call(call, "desk", { signal, progress: () => {} })).toBe("Changed.");
  expect(finds).toBe(2);
});

describe("I11 MCPREQ-1 MCPREQ-2 requests", () => {
  it("I11 MCPREQ-2 reach the server with its headers, the issuer without them, and no other address", async () => {
    const seen: (string | undefined)[] = [];
    const start = async () => {
      const http = createServer(({ headers, url = "" }, response) => {
        seen.push(headers.authorization);
        response.end(url.length > 10 ? "x".repeat(20) : "{}");
      });
      await once(http.listen(0, "127.0.0.1"), "listening");
      onTestFinished(() => void http.close());
      return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
    };
    const [server, issuer, other] = [await start(), await start(), await start()];
    const headers = { authorization: "Bearer t0ken" };
    const requests = mcpRequests(new URL(server), { headers, issuer, maxBytes: 10, onEnd: () => {} });
    await requests.fetch(`${server}/mcp`, { method: "POST", body: "{}" });
    await requests.fetch(`${issuer}/token`, { method: "POST", body: "{}" });
    await expect(requests.fetch(`${other}/mcp`)).rejects.toMatchObject({ rule: "network" });
    expect(seen).toEqual(["Bearer t0ken", undefined]);
    expect(requests.problem()).toMatchObject({ code: "PERMISSION_DENIED" });
    const long = await requests.fetch(`${server}/${"x".repeat(20)}`, { method: "POST", body: "{}" });
    await expect(long.text()).rejects.toThrow("more than 10 bytes");
    expect(requests.problem()?.message).toContain("more than 10 bytes");
  });
});

describe("I11 descriptions", () => {
  it("I11 MCPTOOL-4 the hash changes with each part that is used, and with no other part", async () => {
    const tool = { name: "a", description: "A.", inputSchema: schema };
    const hashOf = async (more: object) => {
      const [read] = await readTools("desk", [{ ...tool, ...more }]);
      return read !== undefined && "hash" in read ? read.hash : undefined;
    };
    const hash = await hashOf({});
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    for (const same of [
      { title: "B" },
      { icons: [] },
      { annotations: {} },
      { outputSchema: schema },
      { _meta: { a: 1 } },
    ])
      expect(await hashOf(same)).toBe(hash);
    for (const other of [
      { name: "b" },
      { description: "B." },
      { inputSchema: { ...schema, required: ["a"] } },
      { annotations: { readOnlyHint: true } },
    ])
      expect(await hashOf(other)).not.toBe(hash);
  });
});

describe("I11 consent", () => {
  const texts = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("one", "two"));

  it("I11 MCPPIN-1 MCPPIN-2 only the first list and consent accept a description, in any order of lists", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(texts, { minLength: 1, maxLength: 6 }), async (lists) => {
        let list: McpList | null = null;
        const accepted = new Map<string, string>();
        for (const [index, names] of lists.entries()) {
          const tools = await listed(names);
          list = merged(list, tools, index);
          if (index === 0) for (const tool of tools) if ("hash" in tool) accepted.set(tool.id, tool.hash);
          for (const [id, pin] of Object.entries(list.tools)) {
            expect(pin.accepted?.hash).toBe(accepted.get(id));
            const now = tools.find((tool) => tool.id === id) as { hash: string } | undefined;
            const expected =
              now === undefined
                ? "missing"
                : now.hash === accepted.get(id)
                  ? "accepted"
                  : accepted.has(id)
                    ? "changed"
                    : "new";
            expect(stateOf(pin)).toBe(expected);
          }
          for (const { id } of tools) expect(list.tools[id]).toBeDefined();
        }
      }),
    );
  });

  it("I11 MCPPIN-3 consent to another description than the offered one changes nothing", async () => {
    const first = merged(null, await listed({ a: "one" }), 1);
    const changed = merged(first, await listed({ a: "two" }), 2);
    expect(states(changed)).toEqual({ a: "changed" });
    const hash = String(first.tools.a?.accepted?.hash);
    expect(() => consented(changed, [{ id: "a", hash }], "olga")).toThrow(/Read the list again/);
    const offered = String(changed.tools.a?.offered?.hash);
    const done = consented(changed, [{ id: "a", hash: offered }], "olga");
    expect(states(done)).toEqual({ a: "accepted" });
    expect(states(merged(done, await listed({ a: "two" }), 3))).toEqual({ a: "accepted" });
    expect(states(merged(done, await listed({ a: "one" }), 3))).toEqual({ a: "changed" });
    expect(states(changed)).toEqual({ a: "changed" });
  });

  it("I11 MCPTOOL-3 any list of a server is read, and only whole descriptions are offered", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.anything(), { maxLength: 20 }), async (tools) => {
        const read: ListedTool[] = await readTools("desk", tools);
        for (const tool of read)
          expect(tool.problem === undefined ? tool.descriptor.inputSchema.type : "object").toBe("object");
        expect(new Set(read.map(({ id }) => id)).size).toBe(read.length);
      }),
    );
  });
});

describe("I11 personas", () => {
  it("I11 CHAIN-4 tools that have no room in a conversation are withheld, and a name counts once", async () => {
    const tool = (index: number): PinnedTool => ({
      ...{ library: "mcp:desk", id: `tool-${index}`, version: 1, hash: "" },
      definition: {
        ...{ name: `mcp__desk__tool-${index}`, description: "x".repeat(9_000), inputSchema: schema },
        ...{ effect: "once", timeoutMs: 1_000 },
      },
    });
    const tools = Array.from({ length: 200 }, (_, index) => tool(index));
    const mcp = { check: () => {}, resolve: async () => ({ tools, withheld: { other: "It is gone." } }) };
    const registry = new Registry(new DeployedCode([]), undefined, mcp);
    const toolIds = ["mcp:desk/*", "mcp:desk/tool-0"];
    const persona = { identity: { systemPrompt: "x" }, tools: { toolIds } };
    const chain = await resolveChain(registry, persona, { provider: "offline", modelId: "offline-1" });
    const names = chain.tools.map(({ id }) => id);
    expect(new Set(names).size).toBe(names.length);
    expect(names.length).toBeGreaterThan(100);
    expect(JSON.stringify(chain).length).toBeLessThan(1_300_000);
    const { other, ...large } = chain.withheld ?? {};
    expect(other).toBe("It is gone.");
    expect(Object.keys(large)).toHaveLength(200 - names.length);
  });
});

describe("I11 configuration", () => {
  it("I11 MCPCONF-1 a server has an address, and names its secrets", () => {
    const url = "https://mcp.example.com/mcp";
    for (const server of [
      { url: "http://mcp.example.com" },
      { url: "https://user:secret@mcp.example.com" },
      { url, headers: { authorization: { secret: "not a name" } } },
      { url, allow: [] },
      { url, more: 1 },
    ])
      expect(() => mcpServersOf({ desk: server } as never)).toThrow(/desk/);
    expect(() => mcpServersOf({ Desk: { url } })).toThrow(/small letters/);
    const headers = { authorization: { secret: "TOKEN", prefix: "Bearer " }, "x-plain": "1" };
    const servers = mcpServersOf({ desk: { url, headers }, local: { url: "http://localhost:9000/mcp" } });
    const desk = servers.get("desk");
    if (desk === undefined) throw new Error("There is no desk.");
    expect(credentialsOf("desk", desk, () => "t0ken")).toEqual({
      headers: { authorization: "Bearer t0ken", "x-plain": "1" },
      secrets: ["t0ken"],
    });
    expect(() => credentialsOf("desk", desk, () => undefined)).toThrow(/`TOKEN`/);
  });
});
