/** The official client of A2A on the Worker, over each binding. */
import { exports } from "cloudflare:workers";
import { Role, type StreamResponse, type Task } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import type { Principal } from "../../src/shared/principal.ts";
import { post } from "./http-client.ts";

export const ADA: Principal = { subject: "ada", tenant: "a2a", roles: ["admin"] };
export const MEL: Principal = { subject: "mel", tenant: "a2a", roles: ["member"] };
export const EVE: Principal = { subject: "ada", tenant: "a2a-other", roles: ["admin"] };

export const fetchAs =
  (principal: Principal): typeof fetch =>
  async (input, init) => {
    const request = new Request(input, init);
    request.headers.set("x-test-principal", JSON.stringify(principal));
    return exports.default.fetch(request);
  };

export const BINDINGS = { "JSON-RPC": JsonRpcTransportFactory, REST: RestTransportFactory };
export type Binding = keyof typeof BINDINGS;

export function clientOf(agent: string, principal = ADA, binding: Binding = "JSON-RPC"): Promise<Client> {
  const fetchImpl = fetchAs(principal);
  const factory = new ClientFactory({
    transports: [new BINDINGS[binding]({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return factory.createFromUrl(`http://dramatis.test/a2a/${agent}/`);
}

type Content = { text: string } | { data: unknown };

export function request(
  content: Content,
  ids: { contextId?: string; taskId?: string; messageId?: string } = {},
) {
  const body =
    "text" in content
      ? { $case: "text" as const, value: content.text }
      : { $case: "data" as const, value: content.data };
  const part = { content: body, metadata: undefined, filename: "", mediaType: "" };
  const message = {
    ...{ messageId: crypto.randomUUID(), contextId: "", taskId: "", ...ids },
    ...{ role: Role.ROLE_USER, parts: [part], metadata: undefined, extensions: [], referenceTaskIds: [] },
  };
  return { tenant: "", message, configuration: undefined, metadata: undefined };
}

export const named = (id: string) => ({ tenant: "", id, metadata: undefined });

export async function sent(client: Client, given: ReturnType<typeof request>): Promise<Task> {
  const result = await client.sendMessage(given);
  if (!("status" in result)) throw new Error("The answer is not a task.");
  return result;
}

export const textsOf = (parts: Task["artifacts"][number]["parts"] = []) =>
  parts.flatMap(({ content }) => (content?.$case === "text" ? [content.value] : []));
export const repliesOf = ({ artifacts }: Task) => artifacts.map(({ parts }) => textsOf(parts).join(""));
export const stateOf = ({ status }: Task) => status?.state;

export const requestIdsOf = ({ status }: Task) =>
  (status?.message?.parts ?? []).flatMap(({ content }) =>
    content?.$case === "data" ? [String(Reflect.get(Object(content.value), "id"))] : [],
  );

/** Reads a stream as a client does: the task, with all updates. */
export async function collect(events: AsyncIterable<StreamResponse>) {
  const kinds: string[] = [];
  let task: Task | undefined;
  for await (const { payload } of events) {
    if (payload === undefined) throw new Error("An event has no payload.");
    if (kinds.at(-1) !== payload.$case) kinds.push(payload.$case);
    if (payload.$case === "task") task = payload.value;
    if (task === undefined) throw new Error("The stream begins without a task.");
    if (payload.$case === "statusUpdate") task.status = payload.value.status;
    if (payload.$case === "artifactUpdate" && payload.value.artifact !== undefined) {
      const { artifact, append } = payload.value;
      const known = task.artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId);
      if (known < 0) task.artifacts.push(artifact);
      else if (append) task.artifacts[known]?.parts.push(...artifact.parts);
      else task.artifacts[known] = artifact;
    }
  }
  if (task === undefined) throw new Error("The stream is empty.");
  return { kinds, task };
}

/** Creates agents of the test library for tenants. */
export async function createAgents(
  tenants: readonly Principal[],
  personas: readonly string[],
): Promise<void> {
  for (const tenant of tenants)
    for (const persona of personas) {
      const { status } = await post("/api/agents", { id: persona, persona: `test/${persona}` }, tenant);
      // Another file of the runtime may have created the agent.
      if (status !== 201 && status !== 409)
        throw new Error(`The agent ${persona} was not created: ${status}.`);
    }
}
