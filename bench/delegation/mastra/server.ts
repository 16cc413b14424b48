/**
 * Mastra on Node, written as in its guide to subagents: the manager has the clerk in `agents`, and both have a `Memory` in a
 * libSQL file. Serves `POST /mastra/:actor/:operation` on 127.0.0.1, and writes its port to standard output.
 *
 * Arguments: the model's address, and the path of the database.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { LibSQLStore } from "@mastra/libsql";
import { Memory } from "@mastra/memory";
import { operate, type System } from "../protocol.ts";
import { CLERK, CLERK_DESCRIPTION, CLERK_PROMPT, MANAGER_PROMPT, MODEL_ID } from "../workload.ts";

const [baseURL = "", file = ""] = process.argv.slice(2);
const model = createOpenAI({ baseURL, apiKey: "none" }).chat(MODEL_ID);

const clerk = new Agent({
  id: CLERK,
  name: CLERK,
  description: CLERK_DESCRIPTION,
  instructions: CLERK_PROMPT,
  model,
  memory: new Memory(),
});

const manager = new Agent({
  id: "manager",
  name: "manager",
  instructions: MANAGER_PROMPT,
  model,
  agents: { [CLERK]: clerk },
  memory: new Memory(),
});

new Mastra({
  agents: { manager, clerk },
  storage: new LibSQLStore({ id: "storage", url: `file:${file}` }),
  logger: false,
});

const system: System = {
  async turn(actor, text) {
    const stream = await manager.stream(text, { memory: { thread: actor, resource: actor } });
    return stream.text;
  },
};

const server = createServer(async (request, response) => {
  try {
    const [, , actor = "", operation] = (request.url ?? "").split("/");
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const answer = await operate(system, { actor, operation, body: Buffer.concat(chunks).toString() });
    response.writeHead(answer === null ? 404 : 200).end(answer ?? "There is no such operation.");
  } catch (error) {
    response.writeHead(500).end(String(error));
  }
});
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => {
  // SAFETY: a server that listens on a port has an `AddressInfo`.
  console.log(`port ${(server.address() as AddressInfo).port}`);
});
