/** MCP on a real server, and the client: the conformance suite in both of its released lines, and `kill -9`. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Bundle, buildBundle } from "../../bench/harness/bundle.ts";
import { type Server, serve } from "../../bench/harness/workerd.ts";
import { defined } from "../../src/shared/defined.ts";

const APPLICATION = join(import.meta.dirname, "mcp");
const EXPECTED = ["--expected-failures", join(APPLICATION, "expected-failures.yaml")];
const folder = mkdtempSync(join(tmpdir(), "dramatis-mcp-"));
let bundle: Bundle;
let server: Server;

const start = (directory: string, port = 0) =>
  serve(bundle, join(folder, directory), { port, variables: { DRAMATIS_LOCAL: "1" } });

/** Runs a line of the suite on the server. Returns its exit code, and its summary for the message of a failure. */
function run(line: string, ...args: string[]): Promise<{ code: unknown; summary: string }> {
  return suite(line, "server", "--url", `http://localhost:${server.port}/mcp`, ...args);
}

function suite(line: string, ...args: string[]): Promise<{ code: unknown; summary: string }> {
  const program = createRequire(import.meta.url).resolve(`${line}/dist/index.js`);
  const all = [program, ...args, "--output-dir", join(folder, "results")];
  return new Promise((resolve) => {
    execFile(process.execPath, all, { cwd: folder, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      const text = stdout + stderr;
      resolve({
        code: error === null ? 0 : error.code,
        summary: text.slice(text.search(/=== SUMMARY|Test Results:/)),
      });
    });
  });
}

beforeAll(async () => {
  bundle = await buildBundle(join(folder, "bundle"), join(APPLICATION, "wrangler.json"));
  server = await start("suite");
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("I10 the conformance suite of MCP has no unexpected failure", () => {
  it.each([
    ["the released line, for the older revisions", "@modelcontextprotocol/conformance", EXPECTED],
    [
      "the next line, as 2025-11-25 requires",
      "mcp-conformance-next",
      ["--requirements", "2025-11-25", ...EXPECTED],
    ],
    ["the next line, as 2026-07-28 requires", "mcp-conformance-next", ["--requirements", "2026-07-28"]],
  ])("in %s", async (_, line, args) => {
    const { code, summary } = await run(line, ...args);
    expect(code, summary).toBe(0);
    expect(summary).toMatch(/Total: [1-9]\d* passed/);
  });
});

/** The scenarios of clients without a browser. */
const CLIENT = ["initialize", "tools_call", "sse-retry", "auth/client-credentials-basic"];
/** Scenarios of the newest revision. */
const NEWEST = [
  ...["request-metadata", "http-standard-headers", "http-custom-headers", "http-invalid-tool-headers"],
  "json-schema-ref-no-deref",
];

describe("I11 MCPCON-1 MCPTOOL-5 the client passes the scenarios of the conformance suite", () => {
  const program = join(import.meta.dirname, "../support/mcp-client-main.ts");
  const command = `"${process.execPath}" --experimental-transform-types --disable-warning=ExperimentalWarning "${program}"`;
  it.each([
    ...CLIENT.map((scenario) => [scenario, "@modelcontextprotocol/conformance"]),
    ...[...CLIENT, ...NEWEST].map((scenario) => [scenario, "mcp-conformance-next"]),
  ])("I11 %s of %s", async (scenario, line) => {
    const { code, summary } = await suite(line, "client", "--command", command, "--scenario", scenario);
    expect(code, summary).toBe(0);
    expect(summary).toMatch(/Passed: [1-9]\d*\/\d+, 0 failed/);
  });
});

describe("I10 H1 MCP-4 kill -9 during a tool call of an agent", () => {
  it("a client that repeats its call gets one answer, and the tool has one effect", async () => {
    const effects: (string | undefined)[] = [];
    const reached = Promise.withResolvers<void>();
    const shop = createServer(({ headers }, response) => {
      effects.push(String(headers["idempotency-key"]));
      reached.resolve();
      if (effects.length > 1) response.end("Reserved.");
    });
    await once(shop.listen(0, "127.0.0.1"), "listening");
    const { port } = shop.address() as AddressInfo;
    const message = `!tool reserve {"url": "http://127.0.0.1:${port}"}`;

    let killed = await start("kill");
    const connect = async () => {
      const client = new Client({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode: "auto" } });
      const headers = { "idempotency-key": "one table" };
      const address = new URL(`http://localhost:${killed.port}/mcp`);
      await client.connect(new StreamableHTTPClientTransport(address, { requestInit: { headers } }));
      return client;
    };
    const seen: string[] = [];
    const ask = async (signal?: AbortSignal) => {
      const call = { name: "ask_clerk", arguments: { message } };
      const onprogress = ({ message: text = "" }) => void seen.push(text);
      return (await connect()).callTool(call, { onprogress, timeout: 100_000, ...defined({ signal }) });
    };
    const leave = new AbortController();
    const broken = ask(leave.signal).catch((error: unknown) => error);
    await reached.promise;
    await killed.stop();
    leave.abort();
    expect(await broken).toBeInstanceOf(Error);
    killed = await start("kill", killed.port);
    seen.length = 0;
    const { structuredContent } = await ask();
    const { answer } = Object(structuredContent);
    expect(answer).toContain("Reserved.");
    expect(seen.join("").split(answer)).toHaveLength(2);
    expect((await ask()).structuredContent).toEqual(structuredContent);
    expect(new Set(effects).size).toBe(1);
    await killed.stop();
    shop.close();
  });
});
