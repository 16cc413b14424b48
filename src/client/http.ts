/** The HTTP API as typed functions, for browsers, Workers and Node. Failures are `DramatisClientError`. */

import type { ContextMessage } from "../model/messages.ts";
import type { AgentIdentity } from "../protocol/agent-api.ts";
import type { StartedTurn, StartTurn, SubmittedResult } from "../protocol/conversation-api.ts";
import type { Frame } from "../protocol/frames.ts";
import type { ToolOutcome } from "../protocol/requests.ts";
import type {
  AgentUsage,
  AttachmentView,
  ConversationSummary,
  ConversationView,
  MessageView,
  TurnView,
} from "../protocol/views.ts";
import type { PageOptions } from "../shared/page.ts";
import { currentToken, type Token } from "./admission.ts";
import { errorFromResponse, noAnswer, notJson } from "./errors.ts";
import { framesOfTurn } from "./event-stream.ts";

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface ClientOptions {
  /** Address of the server, without a path; the page's own when absent. */
  baseUrl?: string;
  /** The runtime's own when absent. */
  fetch?: Fetch;
  /** Bearer token; a function is asked at each request. */
  token?: Token;
}

export interface RequestOptions {
  signal?: AbortSignal;
}

export type PageRequest = PageOptions & RequestOptions;

export interface ConversationInput {
  agentId: string;
  title?: string;
  projectId?: string;
  /** What was said elsewhere before: the model sees it, the transcript does not show it. */
  history?: ContextMessage[];
}

export interface UploadOptions extends RequestOptions {
  /** What the file is called; a `File` has its own name. */
  name?: string;
}

export interface DramatisClient {
  agents: {
    list(options?: PageRequest): Promise<{ agents: AgentIdentity[]; nextCursor?: string }>;
    /** What the model calls of an agent's conversations used. */
    usage(id: string, options?: RequestOptions): Promise<AgentUsage>;
  };
  conversations: {
    list(options?: PageRequest): Promise<{ conversations: ConversationSummary[]; nextCursor?: string }>;
    create(input: ConversationInput, options?: RequestOptions): Promise<ConversationView>;
    get(id: string, options?: RequestOptions): Promise<ConversationView>;
  };
  turns: {
    /** Starts a turn and returns at once; its answer comes over a live connection. */
    start(
      conversationId: string,
      input: StartTurn,
      options?: RequestOptions,
    ): Promise<Pick<StartedTurn, "turnId" | "messageId">>;
    get(conversationId: string, turnId: string, options?: RequestOptions): Promise<TurnView>;
  };
  attachments: {
    /** Uploads an image or a file: a `Blob` whose `type` says what it is. Its `url` names it in content. */
    upload(conversationId: string, file: Blob, options?: UploadOptions): Promise<AttachmentView>;
  };
  messages: {
    list(
      conversationId: string,
      options?: PageRequest,
    ): Promise<{ messages: MessageView[]; nextCursor?: string }>;
  };
  operations: {
    /** Gives the result of a tool that the client runs. The same once more is answered the same. */
    submit(
      conversationId: string,
      operationId: string,
      outcome: ToolOutcome,
      options?: RequestOptions,
    ): Promise<SubmittedResult>;
  };
  /**
   * Starts a turn and yields its frames up to `turn.completed` or `turn.failed`. Leaving the loop ends the stream,
   * not the turn. Throws `STREAM_INTERRUPTED` if the stream breaks off before.
   */
  streamTurn(conversationId: string, input: StartTurn, options?: RequestOptions): AsyncGenerator<Frame, void>;
}

/**
 * A client of one server.
 *
 * @example
 * const client = createClient({ baseUrl: "http://127.0.0.1:8787" });
 * const { id } = await client.conversations.create({ agentId: "guide" });
 * for await (const frame of client.streamTurn(id, { content: "Hello" })) console.log(frame.type);
 */
export function createClient(options: ClientOptions = {}): DramatisClient {
  const { baseUrl = "", token, fetch: send = (url: string, init: RequestInit) => fetch(url, init) } = options;

  async function request(path: string, init: RequestInit & { accept?: string }): Promise<Response> {
    const { accept = "application/json", ...rest } = init;
    const headers: Record<string, string> = { accept };
    const bearer = await currentToken(token);
    if (bearer !== undefined) headers.authorization = `Bearer ${bearer}`;
    if (rest.body !== undefined) headers["content-type"] = contentType(rest.body);
    const url = `${baseUrl.replace(/\/$/, "")}/api/${path}`;
    const response = await send(url, { ...rest, headers }).catch((cause: unknown) => {
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
    // SAFETY: the server's answers are typed by the same definitions as these signatures.
    return body as Value;
  }

  const get = <Value>(path: string, { signal }: RequestOptions = {}) =>
    json<Value>(path, withSignal({}, signal));
  const post = <Value>(path: string, body: unknown, { signal }: RequestOptions = {}) =>
    json<Value>(path, withSignal({ method: "POST", body: JSON.stringify(body) }, signal));

  return {
    agents: {
      list: (page = {}) => get(`agents${query(page)}`, page),
      usage: (id, init) => get(`agents/${encodeURIComponent(id)}/usage`, init),
    },
    conversations: {
      list: (page = {}) => get(`conversations${query(page)}`, page),
      create: (input, init) => post("conversations", input, init),
      get: (id, init) => get(`conversations/${encodeURIComponent(id)}`, init),
    },
    turns: {
      start: (id, input, init) => post(`conversations/${encodeURIComponent(id)}/turns`, input, init),
      get: (id, turnId, init) =>
        get(`conversations/${encodeURIComponent(id)}/turns/${encodeURIComponent(turnId)}`, init),
    },
    attachments: {
      upload: (id, file, { name = nameOf(file), signal } = {}) =>
        json(
          `conversations/${encodeURIComponent(id)}/attachments${name === undefined ? "" : `?${new URLSearchParams({ name })}`}`,
          withSignal({ method: "POST", body: file }, signal),
        ),
    },
    messages: {
      list: (id, page = {}) => get(`conversations/${encodeURIComponent(id)}/messages${query(page)}`, page),
    },
    operations: {
      submit: (id, operationId, outcome, init) =>
        post(
          `conversations/${encodeURIComponent(id)}/operations/${encodeURIComponent(operationId)}/result`,
          outcome,
          init,
        ),
    },
    async *streamTurn(id, input, { signal } = {}) {
      const init = { method: "POST", body: JSON.stringify(input), accept: "text/event-stream" };
      const path = `conversations/${encodeURIComponent(id)}/turns`;
      yield* framesOfTurn(await request(path, withSignal(init, signal)), signal);
    },
  };
}

function contentType(body: RequestInit["body"]): string {
  return body instanceof Blob ? body.type || "application/octet-stream" : "application/json";
}

function nameOf(file: Blob): string | undefined {
  return (file instanceof File && file.name) || undefined;
}

function withSignal<Init extends RequestInit>(init: Init, signal: AbortSignal | undefined): Init {
  return signal === undefined ? init : { ...init, signal };
}

function query({ limit, cursor, order }: PageOptions): string {
  const parameters = new URLSearchParams();
  if (limit !== undefined) parameters.set("limit", String(limit));
  if (cursor !== undefined) parameters.set("cursor", cursor);
  if (order !== undefined) parameters.set("order", order);
  return parameters.size === 0 ? "" : `?${parameters}`;
}
