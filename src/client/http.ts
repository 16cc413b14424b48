/** The HTTP API as typed functions, for browsers, Workers and Node. A failed request throws `DramatisClientError`. */
import type { LoggedEvent } from "../protocol/event-log.ts";
import type { RunEvent } from "../protocol/run-schemas.ts";
import type { SignalResult } from "../protocol/signals.ts";
import { defined } from "../shared/defined.ts";
import type { DramatisClient } from "./api.ts";
import { errorFromResponse, noAnswer, notJson, streamInterrupted } from "./errors.ts";
import { eventsIn, framesOfTurn } from "./event-stream.ts";
import { follow, resumed } from "./follow.ts";
import { memoriesClient } from "./memories.ts";
import type { ClientOptions, PageRequest, RequestOptions, StopRequest } from "./options.ts";
import { projectsClient, workspacesClient } from "./projects.ts";
import { apiUrl, authorization, checkBaseUrl, pathOf, queryOf } from "./requests.ts";

/**
 * Creates a client of one server.
 *
 * @example
 * const client = createClient({ baseUrl: "http://127.0.0.1:8787" });
 * const { id } = await client.conversations.create({ agentId: "guide" });
 * for await (const frame of client.streamTurn(id, { content: "Hello" })) console.log(frame.type);
 */
export function createClient(options: ClientOptions = {}): DramatisClient {
  checkBaseUrl(options.baseUrl);
  const { baseUrl, token, fetch: send = (url: string, init: RequestInit) => fetch(url, init) } = options;

  async function request(path: string, init: RequestInit, accept = "application/json"): Promise<Response> {
    const type = init.body === undefined ? {} : { "content-type": contentType(init.body) };
    const headers = { accept, ...(await authorization(token)), ...type };
    const response = await send(apiUrl(baseUrl, path), { ...init, headers }).catch((cause: unknown) => {
      throw noAnswer(cause, init.signal ?? undefined);
    });
    if (!response.ok) throw await errorFromResponse(response);
    return response;
  }

  async function json<Value>(path: string, init: RequestInit): Promise<Value> {
    const response = await request(path, init);
    const body: unknown = await response.json().catch((cause: unknown) => {
      throw init.signal?.aborted === true ? cause : notJson(response, cause);
    });
    // SAFETY: the same definitions type the server's responses and these signatures.
    return body as Value;
  }

  const get = <Value>(path: string, { signal }: RequestOptions = {}) =>
    json<Value>(path, defined({ signal }));
  const list = <Value>(
    path: string,
    { limit, cursor, order, signal }: PageRequest = {},
    filter: Record<string, string | number | undefined> = {},
  ) => get<Value>(path + queryOf({ limit, cursor, order, ...filter }), defined({ signal }));
  const write = <Value>(method: string, path: string, body: unknown, { signal }: RequestOptions = {}) =>
    json<Value>(path, {
      method,
      body: body instanceof Blob ? body : JSON.stringify(body),
      ...defined({ signal }),
    });
  const post = <Value>(path: string, body: unknown, init?: RequestOptions) =>
    write<Value>("POST", path, body, init);

  const remove = async (path: string, { signal }: RequestOptions = {}) => {
    await request(path, { method: "DELETE", ...defined({ signal }) });
  };

  const put = async (path: string, { signal }: RequestOptions = {}) => {
    await request(path, { method: "PUT", ...defined({ signal }) });
  };

  const download = async (path: string, { signal }: RequestOptions = {}) => {
    const { body } = await request(
      path,
      defined({ signal }),
      "application/x-ndjson, application/octet-stream",
    );
    return body ?? new Blob([]).stream();
  };
  const upload = <Value>(path: string, file: Blob, { id, signal }: RequestOptions & { id?: string } = {}) =>
    write<Value>("POST", path + queryOf({ id }), file, defined({ signal }));
  const stop = <Value>(path: string, { reason, ...init }: StopRequest = {}) =>
    post<Value>(path, defined({ reason }), init);

  return {
    agents: {
      list: (page) => list("agents", page),
      get: (id, init) => get(pathOf("agents", id), init),
      usage: (id, init) => get(pathOf("agents", id, "usage"), init),
      delete: (id, init) => remove(pathOf("agents", id), init),
      export: (id, init) => download(pathOf("agents", id, "export"), init),
      import: (file, options) => upload(pathOf("agents", "import"), file, options),
    },
    memories: memoriesClient({ get, write, remove }),
    projects: projectsClient({ get, list, write, remove, download }),
    workspaces: workspacesClient({ get, list, write, remove, download }),
    artifacts: {
      list: (project, { path, type, ...page } = {}) =>
        list(pathOf("projects", project, "artifacts"), page, { path, type }),
      search: (project, q, { path, type, ...page } = {}) =>
        list(pathOf("projects", project, "artifacts"), page, { q, path, type }),
      get: (project, path, { version, ...init } = {}) =>
        get(pathOf("projects", project, "artifact") + queryOf({ path, version }), init),
      write: (project, path, body, init) =>
        write("PUT", pathOf("projects", project, "artifact") + queryOf({ path }), body, init),
      delete: (project, path, { ifVersion, ...init } = {}) =>
        remove(pathOf("projects", project, "artifact") + queryOf({ path, ifVersion }), init),
    },
    conversations: {
      list: ({ sort, pinned, archived, ...page } = {}) =>
        list("conversations", page, { sort, pinned: pinned?.toString(), archived: archived?.toString() }),
      pin: (id, init) => put(pathOf("conversations", id, "pin"), init),
      unpin: (id, init) => remove(pathOf("conversations", id, "pin"), init),
      archive: (id, init) => put(pathOf("conversations", id, "archive"), init),
      unarchive: (id, init) => remove(pathOf("conversations", id, "archive"), init),
      create: (input, init) => post("conversations", input, init),
      get: (id, init) => get(pathOf("conversations", id), init),
      projection: (id, name, { turn, ...page } = {}) =>
        list(pathOf("conversations", id, "projections", name), page, { turn }),
      causes: (id, seq, { direction, ...page } = {}) =>
        list(pathOf("conversations", id, "journal", `${seq}`, "causes"), page, { direction }),
      incidents: (id, { turn, correlation, ...page } = {}) =>
        list(pathOf("conversations", id, "incidents"), page, { turn, correlation }),
      journal: (id, { type, turn, ...page } = {}) =>
        list(pathOf("conversations", id, "journal"), page, { type, turn }),
      update: (id, changes, init) => write("PATCH", pathOf("conversations", id), changes, init),
      cancel: (id, options) => stop(pathOf("conversations", id, "cancel"), options),
      resume: (id, options) => stop(pathOf("conversations", id, "resume"), options),
      complete: (id, options) => stop(pathOf("conversations", id, "complete"), options),
      delete: (id, init) => remove(pathOf("conversations", id), init),
      export: (id, init) => download(pathOf("conversations", id, "export"), init),
      import: (file, options) => upload(pathOf("conversations", "import"), file, options),
      fork: (id, input = {}, init) => post(pathOf("conversations", id, "fork"), input, init),
      follow: (id, { types, deltas, ...options } = {}) => {
        const path = pathOf("conversations", id, "events");
        const filter = { types: types?.join(), deltas: deltas === false ? "false" : undefined };
        const open = (from: number | undefined) =>
          request(
            path + queryOf({ from, ...filter }),
            defined({ signal: options.signal }),
            "text/event-stream",
          );
        return follow(open, options);
      },
      erase: (id, entryId, init) => remove(pathOf("conversations", id, "events", entryId), init),
      async signal(id, signals, init) {
        const path = pathOf("conversations", id, "signals");
        const { results } = await post<{ results: SignalResult[] }>(path, signals, init);
        return results;
      },
      addParticipant: (id, participant, init) =>
        post(pathOf("conversations", id, "participants"), participant, init),
      removeParticipant: (id, { type, id: participant }, init) =>
        remove(pathOf("conversations", id, "participants", type, participant), init),
    },
    turns: {
      regenerate: (id, turnId, input = {}, init) =>
        post(pathOf("conversations", id, "turns", turnId, "regenerate"), input, init),
      edit: (id, turnId, input, init) =>
        post(pathOf("conversations", id, "turns", turnId, "edit"), input, init),
      list: ({ signal, limit, cursor, order, ...filter } = {}) =>
        list("turns", defined({ signal, limit, cursor, order }), filter),
      start: (id, input, init) => post(pathOf("conversations", id, "turns"), input, init),
      get: (id, turnId, init) => get(pathOf("conversations", id, "turns", turnId), init),
      prompt: (id, turnId, { call, ...init } = {}) =>
        get(pathOf("conversations", id, "turns", turnId, "prompt") + queryOf({ call }), init),
      trace: (id, turnId, init) => get(pathOf("conversations", id, "turns", turnId, "trace"), init),
      recording: (id, turnId, init) => get(pathOf("conversations", id, "turns", turnId, "recording"), init),
      replay: (id, turnId, init) => post(pathOf("conversations", id, "turns", turnId, "replay"), {}, init),
      cancel: (id, turnId, options) => stop(pathOf("conversations", id, "turns", turnId, "cancel"), options),
    },
    runs: {
      list: ({ status, workflow, text, ...page } = {}) => list("runs", page, { status, workflow, text }),
      start: (input, init) => post("runs", input, init),
      get: (id, init) => get(pathOf("runs", id), init),
      workflow: (id, init) => get(pathOf("runs", id, "workflow"), init),
      trace: (id, init) => get(pathOf("runs", id, "trace"), init),
      answer: (id, operationId, answer, init) =>
        post(pathOf("runs", id, "gates", operationId), { answer }, init),
      cancel: (id, options) => stop(pathOf("runs", id, "cancel"), options),
      retry: (id, { signal, ...options } = {}) =>
        post(pathOf("runs", id, "retry"), options, defined({ signal })),
      follow: (id, options = {}) =>
        resumed<RunEvent>(async (from) => {
          const { signal } = options;
          const path = pathOf("runs", id, "events") + queryOf({ from });
          const response = await request(path, defined({ signal }), "text/event-stream");
          return response.status === 204 ? null : eventsIn(response, signal);
        }, options),
    },
    me: (init) => get(pathOf("me"), init),
    approvals: {
      list: ({ kind, agent, conversation, run, since, ...page } = {}) =>
        list("approvals", page, { kind, agent, conversation, run, since }),
    },
    deadLetters: {
      list: (page) => list("dead-letters", page),
      redeliver: (id, init) => post(pathOf("dead-letters", id, "redeliver"), {}, init),
    },
    attachments: {
      upload(id, file, { name = nameOf(file), signal } = {}) {
        const path = pathOf("conversations", id, "attachments") + queryOf({ name });
        return post(path, file, defined({ signal }));
      },
    },
    messages: {
      list: (id, page) => list(pathOf("conversations", id, "messages"), page),
      search: ({ signal, limit, cursor, ...search }) =>
        list("search", defined({ signal, limit, cursor }), search),
    },
    events: {
      list: ({ signal, limit, cursor, order, ...filter } = {}) =>
        list("events", defined({ signal, limit, cursor, order }), filter),
      async *follow({ signal, ...filter } = {}) {
        const path = pathOf("events") + queryOf(filter);
        yield* eventsIn<LoggedEvent>(await request(path, defined({ signal }), "text/event-stream"), signal);
        throw streamInterrupted();
      },
    },
    operations: {
      submit: (id, operationId, outcome, init) =>
        post(pathOf("conversations", id, "operations", operationId, "result"), outcome, init),
      resolveApproval: (id, operationId, answer, init) =>
        post(pathOf("conversations", id, "operations", operationId, "approval"), answer, init),
      complete: (handle, outcome, init) => post(pathOf("operations", handle, "result"), outcome, init),
    },
    async *streamTurn(id, input, { signal } = {}) {
      const init = { method: "POST", body: JSON.stringify(input), ...defined({ signal }) };
      const response = await request(pathOf("conversations", id, "turns"), init, "text/event-stream");
      yield* framesOfTurn(response, signal);
    },
  };
}

function contentType(body: RequestInit["body"]): string {
  return body instanceof Blob ? body.type || "application/octet-stream" : "application/json";
}

function nameOf(file: Blob): string | undefined {
  return (file instanceof File && file.name) || undefined;
}
