/** Names, keys, ids and addresses of the MCP server, and the texts of progress. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { TurnProgress } from "../../src/compat/mcp/progress.ts";
import { promptResult } from "../../src/compat/mcp/prompts.ts";
import { approvalOf, gateAnswerOf, givenAnswer, questionKey } from "../../src/compat/mcp/questions.ts";
import { artifactUri, parseArtifactUri } from "../../src/compat/mcp/resources.ts";
import { createdTask, isOfTask, parseTaskId } from "../../src/compat/mcp/tasks.ts";
import { agentOfTool, askToolName, runToolName, workflowOfTool } from "../../src/compat/mcp/tools.ts";
import type { Frame } from "../../src/protocol/frames.ts";

const ULID = "01JD0000000000000000000000";
const TURN = { conversationId: `conv_${ULID}_eu`, turnId: `turn_${ULID}`, operationId: `op_${ULID}` };
const GATE = { runId: `run_${ULID}`, operationId: "gate:of:a:task" };

const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_-]{0,20}$/);

test("MCP-1 the name of a tool resolves to its agent or its workflow, unless a library has two underscores", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,20}$/), name, name, (agent, library, id) => {
      expect(agentOfTool(askToolName(agent))).toBe(agent);
      const isPlain = !`${library}_`.includes("__");
      const found = workflowOfTool(runToolName({ library, id }));
      if (isPlain && !id.startsWith("_")) expect(found).toEqual({ library, id });
      expect(agentOfTool(runToolName({ library, id }))).toBeUndefined();
    }),
  );
  expect([agentOfTool("ask_"), agentOfTool("ask_A!"), workflowOfTool("run_x")]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("MCP-3 the texts of a message are its text, also if frames are repeated and the model is called again", () => {
  const delta = (offset: number, text: string) => ({
    messageId: "m",
    type: "message.delta",
    data: { offset, text },
  });
  const reset = { messageId: "m", type: "message.reset", data: { reason: "interrupted" } };
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.nat(), fc.nat(), (text, first, second) => {
      const [a, b] = [first % (text.length + 1), second % (text.length + 1)];
      const frames = [
        ...[delta(0, text.slice(0, a)), delta(0, text.slice(0, a)), reset, delta(0, text.slice(0, b))],
        { messageId: "m", type: "message.completed", data: { agentId: "a", content: text } },
      ];
      const progress = new TurnProgress();
      // SAFETY: the reader reads these members only.
      expect(frames.map((frame) => progress.push(frame as unknown as Frame)).join("")).toBe(text);
    }),
  );
});

test("MCP-7 the key of a question names its operation, and other keys and answers are ignored", () => {
  for (const place of [TURN, GATE]) {
    const given = givenAnswer(questionKey(place), { action: "accept", content: { approved: true } });
    expect(given).toEqual({ place, action: "accept", content: { approved: true } });
  }
  fc.assert(
    fc.property(fc.anything(), fc.anything(), (key, result) => {
      expect(givenAnswer(key, result)).toBeUndefined();
      expect(givenAnswer(questionKey(TURN), result)?.place ?? TURN).toEqual(TURN);
    }),
  );
});

test("MCP-8 only an accepted form approves, and a closed form answers nothing", () => {
  const answer = (action: "accept" | "decline" | "cancel", content: Record<string, unknown> = {}) =>
    ({ place: TURN, action, content }) as const;
  expect(approvalOf(answer("accept", { approved: true }))).toEqual({ approved: true });
  for (const approved of [false, "true", 1, undefined])
    expect(approvalOf(answer("accept", { approved }))).toEqual({ approved: false });
  expect(approvalOf(answer("decline", { approved: true, reason: "No." }))).toEqual({
    approved: false,
    reason: "No.",
  });
  expect(approvalOf(answer("cancel", { approved: true }))).toBeUndefined();
  expect(gateAnswerOf(answer("accept", { amount: 5 }))).toEqual({ amount: 5 });
  expect([gateAnswerOf(answer("decline")), gateAnswerOf(answer("cancel"))]).toEqual([undefined, undefined]);
});

test("MCP-11 the id of a task names its turn or run, and takes only the answers of its own questions", () => {
  const { operationId: _, ...turn } = TURN;
  const run = { runId: GATE.runId };
  for (const place of [turn, run])
    expect(parseTaskId(String(createdTask(place, "2026-07-28T00:00:00Z").taskId))).toEqual(place);
  expect([isOfTask(TURN, turn), isOfTask(GATE, run), isOfTask(TURN, run), isOfTask(GATE, turn)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  fc.assert(fc.property(fc.string(), (id) => parseTaskId(id) === undefined));
});

test("the address of an artifact resolves to its project and path", () => {
  const part = fc.string({ minLength: 1, unit: "grapheme" }).filter((text) => !text.includes("/"));
  fc.assert(
    fc.property(name, fc.array(part, { minLength: 1, maxLength: 3 }), (project, parts) => {
      const place = { project, path: parts.join("/") };
      expect(parseArtifactUri(artifactUri(place))).toEqual(place);
    }),
  );
  expect([parseArtifactUri("other://x"), parseArtifactUri("dramatis://artifacts/%")]).toEqual([
    undefined,
    undefined,
  ]);
});

test("the arguments of a prompt are texts, and values of its schema", () => {
  const requires = { properties: { n: { type: "number" }, text: { type: "string" } }, required: ["n"] };
  const prompt = { template: "{{ n | plus: 1 }} {{ text }}", requires };
  const [message] = promptResult(prompt, { n: "1", text: "2" }).messages;
  expect(message?.content).toEqual({ type: "text", text: "2 2" });
  for (const wrong of [{}, { n: "many" }])
    expect(() => promptResult(prompt, wrong)).toThrow("The arguments are not valid");
  expect(() => promptResult({ template: "{{ n | divided_by: 0 }}" }, { n: "1" })).toThrow("not valid");
});
