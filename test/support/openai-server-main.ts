/**
 * The loopback model server as a process: `node test/support/openai-server-main.ts --port 4010 --log calls.jsonl
 * --delay 20`. It prints its address when ready. Lines `!tool NAME {json}` in the last user message become tool calls,
 * once. After their results, and otherwise, it streams an answer word by word, with the delay (milliseconds) before
 * each. Every call is logged as one JSON line: `{number, time, model, messages, tools, lastUser}`.
 */
import { appendFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { type ChatRequest, type Reply, type Step, startOpenAIServer } from "./openai-server.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    log: { type: "string" },
    delay: { type: "string", default: "0" },
  },
});

const server = await startOpenAIServer({
  port: Number(values.port),
  script: ({ number, body }) => {
    const { messages = [], tools = [], model } = body;
    const line = {
      number,
      time: Date.now(),
      model,
      messages: messages.length,
      tools: tools.length,
      lastUser: lastUser(body).text,
    };
    if (values.log !== undefined) appendFileSync(values.log, `${JSON.stringify(line)}\n`);
    return ruleReply(body, Number(values.delay));
  },
});
console.log(`listening on ${server.baseUrl}`);
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void server.close());

function ruleReply(body: ChatRequest, delayMs: number): Reply {
  const { text, since } = lastUser(body);
  const calls = [...text.matchAll(/^!tool (\S+) *(.*)$/gm)].map(([, name = "", input = ""], index): Step => {
    return { toolCall: { index, id: `call_${since.length}_${index}`, name, arguments: input.trim() } };
  });
  const results = since.filter(({ role }) => role === "tool").map(({ content }) => content);
  if (calls.length > 0 && results.length === 0 && body.tool_choice !== "none") {
    return { kind: "stream", steps: [...calls, { finish: "tool_calls" }] };
  }
  const answer = results.length > 0 ? `The tools answered ${results.join(" and ")}.` : `You said: ${text}`;
  const words = answer.match(/\S+\s*/g) ?? [];
  const steps = words.flatMap((word): Step[] =>
    delayMs > 0 ? [{ delayMs }, { text: word }] : [{ text: word }],
  );
  return { kind: "stream", steps: [...steps, { finish: "stop" }] };
}

/** Returns the last user message and the messages after it. */
function lastUser({ messages = [] }: ChatRequest): {
  text: string;
  since: NonNullable<ChatRequest["messages"]>;
} {
  const index = messages.findLastIndex(({ role }) => role === "user");
  return { text: messages[index]?.content ?? "", since: messages.slice(index + 1) };
}
