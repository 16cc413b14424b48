/** The parts of the command line that need no server. */
import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { ACT_COMMANDS } from "../../src/cli/acts.ts";
import { callPath, operationsOf } from "../../src/cli/call.ts";
import type { Cli } from "../../src/cli/command.ts";
import { DOCTOR_COMMANDS } from "../../src/cli/doctor.ts";
import { EVAL_COMMANDS } from "../../src/cli/evals.ts";
import { CommandFailure, requestFailure } from "../../src/cli/failure.ts";
import { AnswerPrinter, frameLine } from "../../src/cli/frames.ts";
import { INSPECT_COMMANDS } from "../../src/cli/inspect.ts";
import { COMMANDS, createProgram } from "../../src/cli/program.ts";
import { expiryOf, serverUrl, tokenOf, withoutToken } from "../../src/cli/settings.ts";
import {
  clean,
  count,
  DEFAULT_WIDTH,
  dollars,
  duration,
  facts,
  heading,
  jsonText,
  shown,
  table,
} from "../../src/cli/text.ts";
import { waterfall } from "../../src/cli/waterfall.ts";
import { DramatisClientError } from "../../src/client/errors.ts";
import { parseFrame } from "../../src/protocol/frames.ts";
import type { SpanView } from "../../src/protocol/trace.ts";
import { VERSION } from "../../src/shared/version.ts";

const ID = "conv_01JD0000000000000000000000";
const COLUMNS = [{ title: "ID" }, { title: "TITLE", free: true }] as const;

test("each module of the command line loads in Node without a build", () => {
  const modules = globSync("src/cli/*.ts").filter((file) => !/\/(?:create|main)\.ts$/.test(file));
  const imports = modules.map((file) => `import ${JSON.stringify(pathToFileURL(file).href)};`);
  execFileSync(process.execPath, ["--input-type=module", "--eval", imports.join("\n")]);
});

test("G23 CLITEXT-1 a table fits the terminal, and shortens free text only", () => {
  const lines = table(COLUMNS, [[ID, "long ".repeat(40)]]).split("\n");
  expect(lines.at(-1)).toMatch(/^conv_01JD0{22} {2}long .*…$/);
  for (const line of lines) expect(clean(line).length).toBeLessThanOrEqual(DEFAULT_WIDTH + 8);
});

test("G23 CLITEXT-1 ids stay whole if they do not fit side by side", () => {
  const id = "x".repeat(79);
  expect(table(COLUMNS, [[id, "A title"]])).toBe(`id     ${id}\ntitle  A title`);
});

test("G23 CLITEXT-2 text cannot steer the terminal", () => {
  expect(clean("a\u001b[2Jb\u0007\u202ec\nd\te")).toBe("a[2Jbc\nd\te");
  expect(table(COLUMNS, [[ID, "a\u001b]0;x\u0007"]])).not.toContain("\u001b]");
  expect(facts([["title", "a\u001b[31m"]])).toBe("title  a[31m");
});

test("G23 CLITEXT-2 an answer keeps the bold of its headings, and no other control character", () => {
  const hostile = "\u001b]0;owned\u0007\u001b[2J\u202e";
  const text = `${heading("Turn turn_1")}\nmodel ${hostile}\n${heading(hostile)}`;
  expect(shown(text)).toBe(`${heading("Turn turn_1")}\nmodel ]0;owned[2J\n${heading("]0;owned[2J")}`);
});

test("G23 CLITEXT-1 a short column leaves its room to longer columns", () => {
  const columns = [
    { title: "A", free: true },
    { title: "B", free: true },
  ] as const;
  expect(table(columns, [["ada", "word ".repeat(14).trim()]], 80)).toContain("word ".repeat(14).trim());
});

test.each([
  ["http://127.0.0.1:8787", "ok"],
  ["http://localhost:8787", "ok"],
  ["http://127.evil.example", "warning"],
  ["http://localhost.evil.example", "warning"],
  ["https://a.example", "ok"],
])("G23 the doctor says whether a token to %s crosses the network unencrypted", async (url, status) => {
  // SAFETY: the command uses these members only.
  const cli = {
    ...{ url, hasToken: true, width: 80, signal: new AbortController().signal },
    request: async () => Response.json({ version: VERSION }),
    client: { me: async () => ({ subject: "ada", tenant: "t", roles: [] }) },
  } as unknown as Cli;
  const { value } = (await DOCTOR_COMMANDS[0]?.run(cli, [], {})) ?? {};
  expect(value).toMatchObject({
    checks: expect.arrayContaining([expect.objectContaining({ name: "token", status })]),
  });
});

test("G23 an address has a scheme and no password", () => {
  expect(serverUrl(undefined, undefined)).toBe("http://localhost:8787");
  expect(serverUrl("https://a.example/x/", "http://b.example")).toBe("https://a.example/x");
  for (const url of ["127.0.0.1:8787", "ftp://a.example", "https://me:pass@a.example"])
    expect(() => serverUrl(url, undefined)).toThrow(CommandFailure);
});

test("G23 CLITEXT-2 the reason of a scorer cannot steer the terminal", async () => {
  const folder = mkdtempSync(join(tmpdir(), "dramatis-eval-"));
  try {
    const file = join(folder, "bad.eval.ts");
    const kit = join(import.meta.dirname, "../../src/testing/evals/eval.ts");
    const score = 'score: () => ({ score: 0, reason: "no \\u001b]0;x\\u0007\\u202e" })';
    writeFileSync(
      file,
      `import { defineEval } from ${JSON.stringify(kit)};
export default defineEval({
  name: "bad", data: [{ input: "a" }], run: async () => "b", scorers: [{ name: "judge", ${score} }],
});`,
    );
    const answer = await EVAL_COMMANDS[0]?.run({} as Cli, [file], {});
    expect(answer?.text).toContain("no ]0;x");
    expect(answer?.text).toBe(clean(answer?.text ?? ""));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("G23 a replay counts entries in English", async () => {
  const replay = ACT_COMMANDS.find(({ name }) => name === "replay");
  const client = { turns: { replay: async () => ({ calls: 0, divergence: null, partial: [3, 4] }) } };
  // SAFETY: the command uses these members only.
  const cli = { client, signal: new AbortController().signal } as unknown as Cli;
  expect((await replay?.run(cli, ["a", "b"], {}))?.text).toContain("2 entries taken as recorded");
});

test("G23 the page of the command line names each option of each command", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/cli.md"), "utf8");
  const rows = page.split("\n").filter((line) => line.startsWith("|"));
  const missing = COMMANDS.flatMap(({ name, options = {} }) =>
    Object.keys(options).flatMap((flags) => {
      const [flag = ""] = flags.split(" ");
      const ofCommand = rows.filter((line) => line.includes(`\`${name.split(" ")[0]}`));
      const isNamed = ofCommand.some((line) => line.includes(flag));
      return isNamed || ["--limit", "--cursor"].includes(flag) ? [] : [`${name} ${flag}`];
    }),
  );
  expect(missing).toEqual([]);
});

test("G23 CLITEXT-2 JSON for programs has the same value without control characters", () => {
  const value = { title: "hi\u009b31m\u009d0;x\u009c\u202egnp\u001b[0m\n" };
  const text = jsonText(value, 2);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the test looks for them.
  expect(text).not.toMatch(/[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]/);
  expect(JSON.parse(text)).toEqual(value);
});

test.each([
  ["before the command", ["--url", "http://localhost:1", "--json", "doctor"]],
  ["after the command", ["doctor", "--url", "http://localhost:1", "--json"]],
])("G23 takes the address and the form of the output %s", async (_, words) => {
  const given: object[] = [];
  const ignore = () => undefined;
  const program = createProgram({
    write: ignore,
    writeError: ignore,
    done: async () => undefined,
    open(options) {
      given.push(options);
      throw new CommandFailure("The test ends here.");
    },
  });
  await expect(program.parseAsync(words, { from: "user" })).rejects.toThrow("The test ends here.");
  expect(given).toEqual([{ url: "http://localhost:1", json: true }]);
});

test("G23 CLITOKEN-1 output does not contain the token", () => {
  expect(withoutToken("Bearer secret-token.", "secret-token")).toBe("Bearer [DRAMATIS_TOKEN].");
  expect(() => tokenOf("two words")).toThrow(/^DRAMATIS_TOKEN contains(?!.*two words)/);
  expect(tokenOf(" abc\n")).toBe("abc");
});

test("G23 a token says when it expires", () => {
  const payload = Buffer.from(JSON.stringify({ exp: 12 })).toString("base64url");
  expect(expiryOf(`a.${payload}.b`)).toBe(12_000);
  expect(expiryOf("opaque")).toBeUndefined();
});

test("G23 CLITEXT-1 a table fits a wide and a narrow terminal", () => {
  const row = [ID, "A title of some words"];
  expect(table(COLUMNS, [row], 200)).toContain("A title of some words");
  expect(table(COLUMNS, [row], 45)).toMatch(/ A title of…$/);
  expect(table(COLUMNS, [row], 20)).toMatch(/^id {5}conv_01JD0{22}\ntitle {2}A title of\n {7}some words$/);
});

test("G23 durations, amounts and counts are readable", () => {
  expect([0, 999, 3_249, 59_960, 3_599_000, 11_040_000].map(duration)).toEqual([
    "0 ms",
    "999 ms",
    "3.2 s",
    "1 min 0 s",
    "59 min 59 s",
    "3 h 4 min",
  ]);
  expect([dollars(0), dollars(0.00123), dollars(12.5)]).toEqual(["$0.00", "$0.0012", "$12.50"]);
  expect([count(1, "call"), count(2, "call")]).toEqual(["1 call", "2 calls"]);
});

const AT = Date.parse("2026-03-01T10:00:00.000Z");

function span(
  spanId: string,
  name: string,
  from: number,
  to: number,
  more: Partial<SpanView> = {},
): SpanView {
  const [startedAt, endedAt] = [new Date(AT + from).toISOString(), new Date(AT + to).toISOString()];
  return { spanId, name, kind: "internal", startedAt, endedAt, attributes: {}, ...more };
}

test("G23 CLITRACE-1 the waterfall has a line per span, with its place, its parent and its facts", () => {
  const spans = [
    span("a", "invoke_agent clerk", 0, 1_600),
    span("b", "chat m-1", 0, 800, {
      parentSpanId: "a",
      error: "rate_limit",
      attributes: { "dramatis.attempts": 3, "http.response.status_code": 429 },
    }),
    span("c", "chat m-1", 800, 1_600, {
      parentSpanId: "a",
      attributes: {
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 2,
        "dramatis.cost.usd": 0.5,
      },
    }),
    span("d", "await_approval pay", 1_600, 1_600, {
      parentSpanId: "a",
      attributes: { "dramatis.approval.outcome": "denied" },
    }),
  ];
  expect(clean(waterfall(spans, 100)).replaceAll(/\[\d+m/g, "")).toBe(
    [
      " START    TOOK",
      "  0 ms   1.6 s  ████████████████  agent clerk",
      "  0 ms  800 ms  ████████            model m-1, FAILED rate_limit HTTP 429, 3 attempts",
      "800 ms  800 ms          ████████    model m-1, 12 tokens, $0.5000",
      " 1.6 s    0 ms                 █    wait for approval of pay, denied",
    ].join("\n"),
  );
  expect(waterfall([], 80)).toBe("");
});

test("G23 CLITRACE-1 a span beside a wait of days has a line and a mark, also in a cycle of parents", () => {
  const days = 3 * 24 * 3_600_000;
  const spans = [
    span("a", "chat m-1", 0, 5, { parentSpanId: "b" }),
    span("b", "await_approval pay", 5, days, { parentSpanId: "a" }),
  ];
  const lines = waterfall(spans, 80).split("\n");
  expect(lines).toHaveLength(3);
  for (const line of lines.slice(1)) expect(line).toContain("█");
});

test("G23 an answer streams each letter once, also after a restart of the model", () => {
  const frame = (type: string, data: object) => parseFrame(JSON.stringify({ v: 1, type, time: "t", data }));
  const printer = new AnswerPrinter(ID);
  const printed = [
    frame("message.delta", { offset: 0, text: "Hel" }),
    frame("message.delta", { offset: 2, text: "llo\u001b[2J" }),
    frame("message.reset", { reason: "retry" }),
    frame("message.delta", { offset: 0, text: "Good " }),
    frame("message.completed", { agentId: "a", content: "Good day" }),
    frame("message.completed", { agentId: "a", content: "Whole" }),
    frame("message.completed", { agentId: "a", content: "", interim: true }),
  ].map((frame) => (frame === null ? "" : printer.print(frame).text));
  expect(printed.join("")).toBe("Hello[2J\nGood day\nWhole\n");
});

test("G23 a line of a frame has its time, and fits the terminal", () => {
  const frame = parseFrame(
    JSON.stringify({
      ...{ v: 1, type: "message.completed", time: "2026-03-01T10:00:00.000Z" },
      data: { agentId: "a", content: "word ".repeat(50) },
    }),
  );
  const line = frame && frameLine(frame, ID, 40);
  expect(line).toMatch(/^10:00:00 a: word .*…$/);
  expect(line?.length).toBeLessThanOrEqual(40);
});

test("G23 the line of a request for approval is a command that can be copied", () => {
  const frame = parseFrame(
    JSON.stringify({
      ...{ v: 1, type: "approval.requested", time: "2026-03-01T10:00:00.000Z", operationId: "op_1" },
      data: { name: "pay", input: {} },
    }),
  );
  expect(frame && frameLine(frame, ID, 120)).toContain(`dramatis approve ${ID} op_1`);
});

test("G23 ELICIT-5 the inbox and the line of a request show the question of a server, and approve sends its values", async () => {
  const elicitation = { message: "How many?", schema: { type: "object" }, round: 2 };
  const frame = parseFrame(
    JSON.stringify({
      ...{ v: 1, type: "approval.requested", time: "2026-03-01T10:00:00.000Z", operationId: "op_1" },
      data: { name: "order", input: {}, elicitation },
    }),
  );
  expect(frame && frameLine(frame, ID, 200)).toMatch(/op_1 asks \(--round 2\): How many\?$/);
  const approval = { kind: "tool", conversationId: ID, operationId: "op_1", name: "order", elicitation };
  const sent: unknown[] = [];
  const client = {
    approvals: { list: async () => ({ approvals: [approval] }) },
    operations: { resolveApproval: async (...request: unknown[]) => sent.push(request[2]) },
  };
  // SAFETY: the commands use these members only.
  const cli = { client, width: 180 } as unknown as Cli;
  const run = (name: string, args: string[], options: object) =>
    COMMANDS.find((command) => command.name === name)?.run(cli, args, { ...options });
  expect((await run("list approvals", [], {}))?.text).toContain("order asks (--round 2): How many?");
  await run("approve", [ID, "op_1"], { values: '{"count": 3}', round: "2" });
  expect(sent).toEqual([{ approved: true, values: { count: 3 }, round: 2 }]);
  await expect(run("approve", [ID, "op_1"], { values: "3", round: "2" })).rejects.toThrow(/--values must be/);
});

test("G23 A70 a list of turns has the agent and the message, and tells failed, stopped and incomplete work apart", async () => {
  const turn = {
    ...{ id: "turn_1", conversationId: ID, agentId: "assistant", userId: "ada" },
    ...{ createdAt: "2026-03-01T10:00:00.000Z", completedAt: "2026-03-01T10:00:03.200Z" },
    messages: [{ id: "m", role: "user", text: "Where is my refund?" }],
  };
  const turns = [
    { ...turn, status: "failed", errorCode: "MODEL_FAILED" },
    { ...turn, status: "failed", errorCode: "CANCELLED" },
    { ...turn, status: "completed", issues: { toolFailures: 1 } },
  ];
  const asked: object[] = [];
  const list = async (request: object) => {
    asked.push(request);
    return { turns };
  };
  // SAFETY: the command uses these members only.
  const cli = { client: { turns: { list } }, width: 180 } as unknown as Cli;
  const command = COMMANDS.find(({ name }) => name === "list turns");
  const answer = await command?.run(cli, [], { status: "failed", issues: "tool" });
  expect(asked).toMatchObject([{ status: "failed", issues: "tool" }]);
  expect(answer?.text.split("\n").slice(1)).toEqual([
    expect.stringMatching(
      /turn_1 .* 3\.2 s {2}assistant {2}ada .*failed MODEL_FAILED .*Where is my refund\?/,
    ),
    expect.stringMatching(/ stopped .*Where is my refund\?/),
    expect.stringMatching(/completed, 1 failed tool call {2}Where is my refund\?/),
  ]);
});

test("G23 the summary of a turn names missing prices, attempts of model calls, and the turn that replaced it", async () => {
  const turn = {
    ...{ id: "turn_1", conversationId: ID, agentId: "assistant", status: "failed", moves: [], cost: null },
    ...{ caller: { type: "user", userId: "ada" }, createdAt: "2026-03-01T10:00:00.000Z", latencyMs: 3200 },
    ...{ error: { code: "MODEL_FAILED", message: "It is overloaded.", retriable: true }, input: "Hello" },
    spent: { usd: 0, tokens: 1220, modelCalls: 4, toolCalls: 1 },
  };
  const summary = async (members: object) => {
    const turns = { get: async () => ({ ...turn, ...members }), trace: async () => ({ spans: [] }) };
    // SAFETY: the command uses these members only.
    const cli = { client: { turns }, width: Number.POSITIVE_INFINITY } as unknown as Cli;
    return (await INSPECT_COMMANDS[0]?.run(cli, [ID, "turn_1"], {}))?.text;
  };
  const open = await summary({});
  expect(open).toMatch(/^cost +no prices, 1220 tokens, 4 model attempts, 1 tool call$/m);
  expect(open).toMatch(/^retry +may succeed later$/m);
  const replaced = await summary({ replacedBy: "turn_2", cost: 0 });
  expect(replaced).toMatch(/^replaced by +turn_2$/m);
  expect(replaced).toMatch(/^cost +\$0\.00, /m);
  expect(replaced).not.toMatch(/^retry/m);
});

test("G23 a refusal that no role can lift does not advise to look at roles", () => {
  const line = (detail: string) =>
    requestFailure(
      new DramatisClientError({ code: "FORBIDDEN", detail, status: 403 }),
      "http://localhost:8787",
    );
  const own = "Only the author of a message may replace its turn. Send a message of your own.";
  expect(line(own)).toBe(`FORBIDDEN: ${own}`);
  expect(line("Only operators may read this.")).toContain("dramatis doctor");
});

test("G23 an agent that is not there is named with the server, because another server may have it", () => {
  const detail = 'There is no agent "asistant". Did you mean "assistant"? Known agents: assistant.';
  const line = (text: string) =>
    requestFailure(
      new DramatisClientError({ code: "NOT_FOUND", detail: text, status: 404 }),
      "http://localhost:8787",
    );
  expect(line(detail)).toBe(
    'NOT_FOUND: There is no agent "asistant" at http://localhost:8787. Did you mean "assistant"? Known agents: assistant.',
  );
  expect(line('The turn "turn_x" was not found.')).toBe('NOT_FOUND: The turn "turn_x" was not found.');
});

const OPERATIONS = operationsOf({
  paths: {
    "/api/things/{id}": {
      get: {
        operationId: "getThing",
        parameters: [
          { name: "id", in: "path" },
          { name: "limit", in: "query" },
        ],
      },
    },
  },
});

test("G23 CLICALL-1 a call fills the path and the query, and names the known parameters", () => {
  const [operation] = OPERATIONS;
  if (operation === undefined) throw new Error("There must be an operation.");
  expect(callPath(operation, ["id=a/b", "limit=1"])).toBe("/api/things/a%2Fb?limit=1");
  for (const given of [[], ["id="], ["id=a", "x=1"], ["id"]])
    expect(() => callPath(operation, given)).toThrow(/Parameters: id, limit\.$/);
});

test("G23 a replay with a difference fails the command, and shows both entries", async () => {
  const divergence = { seq: 7, expected: { type: "tool.requested" }, actual: null };
  const replay = ACT_COMMANDS.find(({ name }) => name === "replay");
  // SAFETY: the command uses these members only.
  const cli = { client: { turns: { replay: async () => ({ calls: 0, divergence }) } } } as unknown as Cli;
  const answer = await replay?.run(cli, ["conv_1", "turn_1"], {});
  expect(answer).toMatchObject({ failed: true, value: { divergence } });
  expect(answer?.text).toContain('recorded  {"type":"tool.requested"}\ntoday     no entry');
});
