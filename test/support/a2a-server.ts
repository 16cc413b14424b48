/**
 * Agents of the official SDK of A2A on loopback, for tests that run in another process. `/NAME` is the address of an agent. Its messages are
 * commands, such as `say hello`. The rest of the port is for the tests:
 *
 *   POST /control/NAME                       sets the faults of an agent
 *   POST /control/NAME/finish                completes the tasks that `wait`
 *   GET  /control/NAME/seen?of=METHOD&count=N   returns the requests, once there are N of this method
 *   GET  /control/NAME/runs                  returns the messages that the agent has run
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout } from "node:timers/promises";
import { AgentCard, Task } from "@a2a-js/sdk";
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  ServerCallContext,
} from "@a2a-js/sdk/server";
import { askingStatus } from "../../src/compat/a2a/tasks.ts";
import type { A2aFaults, SeenA2a } from "./a2a-script.ts";
import { bridge, flood } from "./mcp-server.ts";

const VERSION = "1.0";

class Served implements AgentExecutor {
  faults: A2aFaults = {};
  readonly seen: SeenA2a[] = [];
  /** The texts of executed messages. */
  readonly runs: string[] = [];
  readonly #listeners = new Set<() => void>();
  /** The next requests for approval of each task. */
  readonly #confirms = new Map<string, string[]>();
  readonly #waiting = new Map<string, () => void>();
  /** Answers by message id. */
  readonly #answers = new Map<string, Promise<unknown>>();
  readonly #card: AgentCard;
  readonly #rpc: JsonRpcTransportHandler;

  constructor(
    private readonly name: string,
    private readonly url: string,
  ) {
    this.#card = AgentCard.fromJSON(this.card());
    this.#rpc = new JsonRpcTransportHandler(
      new DefaultRequestHandler(this.#card, new InMemoryTaskStore(), this),
    );
  }

  card() {
    const { endpoint = `${this.url}/${this.name}`, version = VERSION } = this.faults;
    return {
      ...{ name: this.name, description: "An agent of the tests.", version: "1" },
      supportedInterfaces: [{ url: endpoint, protocolBinding: "JSONRPC", protocolVersion: version }],
      capabilities: { streaming: false, pushNotifications: false },
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [],
    };
  }

  reach(method: string, count: number): Promise<SeenA2a[]> {
    return new Promise((resolve) => {
      const check = () => {
        const found = this.seen.filter((request) => request.method === method);
        if (found.length < count) return;
        this.#listeners.delete(check);
        resolve(found);
      };
      this.#listeners.add(check);
      check();
    });
  }

  finish(): void {
    for (const end of this.#waiting.values()) end();
    this.#waiting.clear();
  }

  async answer(request: Request): Promise<Response> {
    const { redirect, status, lose, slow } = this.faults;
    if (redirect !== undefined) return new Response(null, { status: 302, headers: { location: redirect } });
    if (request.method === "GET") {
      this.#note({ method: "card", params: {}, headers: Object.fromEntries(request.headers) });
      return Response.json(this.card());
    }
    const body = (await request.json()) as SeenA2a & Record<string, unknown>;
    const { method, params } = body;
    this.#note({ method, params, headers: Object.fromEntries(request.headers) });
    const failure = status ?? this.faults.statusOf?.[method];
    if (failure !== undefined) return new Response("No.", { status: failure });
    if (this.faults.refusal !== undefined)
      return Response.json({
        jsonrpc: "2.0",
        id: 1,
        error: { code: this.faults.code ?? -32_602, message: this.faults.refusal },
      });
    if (this.faults.html)
      return new Response("<h1>Back soon</h1>", { headers: { "content-type": "text/html" } });
    if (this.faults.flood) return flood();
    const id = params.message?.messageId;
    const known = id === undefined || this.faults.forgetful ? undefined : this.#answers.get(id);
    const context = new ServerCallContext({ requestedVersion: VERSION });
    const asked = this.faults.lostTasks ? { ...body, params: { ...params, id: "lost" } } : body;
    const answered = known ?? this.#rpc.handle(asked, context);
    if (id !== undefined) this.#answers.set(id, answered);
    const answer = await answered;
    if (slow?.method === method) await setTimeout(slow.ms);
    if (lose?.method === method && lose.times > 0) {
      lose.times -= 1;
      throw new Error("The connection breaks.");
    }
    const { taskId } = this.faults;
    const task = Object(Reflect.get(Object(answer), "result")).task;
    if (taskId !== undefined && task !== undefined) task.id = taskId;
    return Response.json(answer);
  }

  async execute({ taskId, contextId, userMessage }: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const text = userMessage.parts
      .map(({ content }) => {
        if (content?.$case === "text") return content.value;
        const { id, approved } = content?.$case === "data" ? Object(content.value) : {};
        return approved === undefined ? "" : `${approved ? "approve" : "deny"} ${id}`;
      })
      .join("");
    this.runs.push(text);
    const [, command = "", rest = ""] = /^(\S+) ?(.*)$/s.exec(text) ?? [];
    const publish = (state: string, more: object = {}) =>
      bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, contextId, status: { state }, ...more })));
    const artifact = (...parts: object[]) => ({ artifacts: [{ artifactId: "1", name: "Answer", parts }] });
    const said = (parts: object[]) => ({
      message: { messageId: crypto.randomUUID(), taskId, contextId, role: "ROLE_AGENT", parts },
    });
    const ended = (state: string, words: string) =>
      publish(state, { status: { state, ...said([{ text: words }]) } });
    const idOf = (asked: string) => `op_${asked.slice(0, 9)}`;
    /** Asks the first request of the task that waits. Returns whether there is one. */
    const confirm = () => {
      const [asked] = this.#confirms.get(taskId) ?? [];
      if (asked === undefined) return false;
      const place = { conversationId: "conv_far", turnId: "turn_far", operationId: idOf(asked) };
      const { message } = askingStatus(place, [{ place, message: asked, form: undefined }], "");
      publish("TASK_STATE_INPUT_REQUIRED", {
        status: { state: "TASK_STATE_INPUT_REQUIRED", ...said(message?.parts ?? []) },
      });
      return true;
    };
    switch (command) {
      case "wait":
        publish("TASK_STATE_WORKING");
        await new Promise<void>((resolve) => this.#waiting.set(taskId, resolve));
        publish("TASK_STATE_COMPLETED", artifact({ text: rest }));
        break;
      case "ask":
        ended("TASK_STATE_INPUT_REQUIRED", rest);
        break;
      case "confirm":
        this.#confirms.set(taskId, rest.split("|"));
        confirm();
        break;
      // An answer to another request has no effect, as at a Dramatis server.
      case "approve":
        if (rest.endsWith(idOf(this.#confirms.get(taskId)?.[0] ?? ""))) this.#confirms.get(taskId)?.shift();
        if (!confirm()) publish("TASK_STATE_COMPLETED", artifact({ text }));
        break;
      case "fail":
        ended("TASK_STATE_FAILED", rest);
        break;
      case "decline":
        ended("TASK_STATE_REJECTED", rest);
        break;
      case "parts":
        publish(
          "TASK_STATE_COMPLETED",
          artifact(
            { text: "A dot." },
            { data: { dots: 1 } },
            { raw: "AAAA", filename: "dot.png", mediaType: "image/png" },
          ),
        );
        break;
      case "big":
        publish("TASK_STATE_COMPLETED", artifact({ text: "x".repeat(Number(rest)) }));
        break;
      case "status":
        ended("TASK_STATE_COMPLETED", rest);
        break;
      default:
        publish("TASK_STATE_COMPLETED", artifact({ text: text.replace(/^say /, "") }));
    }
    bus.finished();
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.#waiting.delete(taskId);
    bus.publish(AgentEvent.task(Task.fromJSON({ id: taskId, status: { state: "TASK_STATE_CANCELED" } })));
    bus.finished();
  }

  #note(request: SeenA2a): void {
    this.seen.push(request);
    for (const check of this.#listeners) check();
  }
}

/** Starts the agents. */
export async function startA2aServer(): Promise<{ url: string; close(): Promise<void> }> {
  const agents = new Map<string, Served>();
  let url = "";
  const agentOf = (name = "") => {
    const agent = agents.get(name) ?? new Served(name, url);
    agents.set(name, agent);
    return agent;
  };
  const answer = async (request: Request): Promise<Response> => {
    const { pathname, searchParams } = new URL(request.url);
    const [first, name, part] = pathname.slice(1).split("/");
    if (first !== "control") return agentOf(first).answer(request);
    const agent = agentOf(name);
    if (part === "seen")
      return Response.json(
        await agent.reach(searchParams.get("of") ?? "", Number(searchParams.get("count"))),
      );
    if (part === "runs") return Response.json(agent.runs);
    if (part === "finish") agent.finish();
    else agent.faults = (await request.json()) as A2aFaults;
    return Response.json({});
  };
  const http = createServer((incoming, outgoing) => {
    bridge(incoming, outgoing, answer).catch(() => outgoing.destroy());
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  const { port } = http.address() as AddressInfo;
  url = `http://127.0.0.1:${port}`;
  return {
    url,
    async close() {
      http.closeAllConnections();
      http.close();
      await once(http, "close");
    },
  };
}
