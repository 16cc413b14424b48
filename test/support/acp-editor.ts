/**
 * An editor: the official client of ACP, with `dramatis acp` as a child process. It checks each message of the command against the official
 * JSON Schemas.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import {
  type AnyMessage,
  type ClientContext,
  client,
  ndJsonStream,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";
import { type Schema, Validator } from "@cfworker/json-schema";

const ROOT = join(import.meta.dirname, "../..");
const MAIN = join(ROOT, "src/cli/main.ts");
const SCHEMA = join(ROOT, "node_modules/@agentclientprotocol/sdk/schema/v1/schema.json");

/** The answer of a person, or a promise of it. */
type Decide = (asked: RequestPermissionRequest, signal: AbortSignal) => Promise<RequestPermissionResponse>;

export const allow: Decide = async () => ({ outcome: { outcome: "selected", optionId: "allow" } });
export const reject: Decide = async () => ({ outcome: { outcome: "selected", optionId: "reject" } });

interface Settings {
  url: string;
  agent?: string;
  token?: string;
  /** Arguments of the command instead of the address and the agent. */
  args?: string[];
  decide?: Decide;
}

export class Editor {
  readonly child: ChildProcessWithoutNullStreams;
  readonly agent: ClientContext;
  readonly updates: SessionUpdate[] = [];
  readonly asked: RequestPermissionRequest[] = [];
  /** The messages of the command that the schemas do not allow. */
  readonly faults: string[] = [];
  /** All output of the command. */
  output = "";
  errors = "";

  constructor({ decide = allow, ...settings }: Settings) {
    this.child = startAcp(settings);
    this.child.stderr.on("data", (chunk) => {
      this.errors += chunk;
    });
    this.child.stdout.on("data", (chunk) => {
      this.output += chunk;
    });
    const { readable, writable } = ndJsonStream(
      Writable.toWeb(this.child.stdin) as WritableStream<Uint8Array>,
      Readable.toWeb(this.child.stdout) as unknown as ReadableStream<Uint8Array>,
    );
    const methods = new Map<unknown, string>();
    const sent = new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => {
        if ("method" in message && "id" in message) methods.set(message.id, message.method);
        controller.enqueue(message);
      },
    });
    const received = new TransformStream<AnyMessage, AnyMessage>({
      transform: (message, controller) => {
        this.faults.push(...faultsOf(message, methods));
        controller.enqueue(message);
      },
    });
    void sent.readable.pipeTo(writable).catch(() => undefined);
    const connection = client({ name: "test" })
      .onNotification("session/update", ({ params }) => void this.updates.push(params.update))
      .onRequest("session/request_permission", ({ params, signal }) => {
        this.asked.push(params);
        return decide(params, signal);
      })
      .connect({ readable: readable.pipeThrough(received), writable: sent.writable });
    this.agent = connection.agent;
  }

  initialize() {
    return this.agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  }

  /** Begins a session. */
  async begin(): Promise<string> {
    await this.initialize();
    const { sessionId } = await this.agent.request("session/new", { cwd: "/project", mcpServers: [] });
    return sessionId;
  }

  prompt(sessionId: string, text: string) {
    return this.agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }

  load(sessionId: string) {
    return this.agent.request("session/load", { sessionId, cwd: "/project", mcpServers: [] });
  }

  /** The text of the agent's messages so far, by message. */
  texts(kind = "agent_message_chunk"): string[] {
    const texts = new Map<unknown, string>();
    for (const update of this.updates) {
      if (update.sessionUpdate !== kind || !("content" in update) || !("messageId" in update)) continue;
      const { content, messageId } = update;
      if (content !== null && typeof content === "object" && "text" in content)
        texts.set(messageId, (texts.get(messageId) ?? "") + content.text);
    }
    return [...texts.values()];
  }

  /** The updates of calls so far. */
  calls() {
    return this.updates.filter(
      (update) => update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update",
    );
  }

  /** Closes the editor: the command ends with its input. Returns its exit code. */
  async close(): Promise<number | null> {
    const exit = once(this.child, "exit");
    this.child.stdin.end();
    return (await exit)[0];
  }
}

/** Starts the command. */
export function startAcp({ url, agent = "clerk", token, args }: Omit<Settings, "decide">) {
  const { DRAMATIS_TOKEN: _token, DRAMATIS_URL: _url, FORCE_COLOR: _color, ...env } = process.env;
  return spawn(process.execPath, [MAIN, ...(args ?? ["acp", "--url", url, "--agent", agent])], {
    env: { ...env, ...(token !== undefined && { DRAMATIS_TOKEN: token }) },
  });
}

const definitions: Record<string, Schema> = JSON.parse(readFileSync(SCHEMA, "utf8")).$defs;
const validators = new Map<string, Validator>();

/** Returns the schema of a method's parameters or of its result. */
function definitionOf(method: string, side: "Request" | "Response" | "Notification"): string {
  const found = Object.entries(definitions).find(
    ([name, schema]) => schema["x-method"] === method && name.endsWith(side),
  );
  if (found === undefined) throw new Error(`The schema has no ${side} of ${method}.`);
  return found[0];
}

function faultsOf(message: AnyMessage, methods: ReadonlyMap<unknown, string>): string[] {
  if ("error" in message) return check("Error", message.error);
  if ("method" in message) {
    if (message.method === "$/cancel_request") return [];
    return check(definitionOf(message.method, "id" in message ? "Request" : "Notification"), message.params);
  }
  return check(definitionOf(methods.get(message.id) ?? "", "Response"), message.result);
}

/** Returns the faults of a value under a definition of the official schema. */
export function check(name: string, value: unknown): string[] {
  const validator =
    validators.get(name) ?? new Validator({ $ref: `#/$defs/${name}`, $defs: definitions }, "2020-12");
  validators.set(name, validator);
  return validator
    .validate(value)
    .errors.map(({ instanceLocation, error }) => `${name}${instanceLocation}: ${error}`);
}
