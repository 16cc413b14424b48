/**
 * Connections to MCP servers. A connection lives for one piece of work, because a Worker cannot share it between requests. The facts of a
 * session stay in the isolate, so the next connection continues the session without a handshake.
 *
 * MCPCON-1  Both families of revisions work: 2026-07-28, and the older revisions with `initialize`.
 * MCPCON-2  If the server has lost a session, the client begins a new session and sends the request again: the server has not run it.
 * MCPCON-3  A call that gets no answer fails with an error that may be retried. The connection itself never repeats it.
 * MCPCON-4  Errors have no secret. The access token is a secret, too.
 * MCPCON-7  Only the configured issuer gets the secret of a client.
 * MCPCON-6  The facts of sessions have a limit of memory. A session beyond it begins again.
 * MCPCON-5  Tokens have the configured scope only, whatever scope the server asks for.
 */
import type {
  Client,
  ClientCredentialsProvider,
  DiscoverResult,
  PriorDiscovery,
} from "@modelcontextprotocol/client";
import { ToolError } from "../library/tools/tool-error.ts";
import type { Clock } from "../ports/clock.ts";
import { sleepWith } from "../ports/deadline.ts";
import { DramatisError } from "../shared/errors.ts";
import { redactSecrets } from "../shared/redact.ts";
import { cut } from "../shared/text.ts";
import { VERSION } from "../shared/version.ts";
import { mcpRequests, type Requests } from "./requests.ts";
import type { Credentials, McpServerOptions } from "./servers.ts";

/** Loaded with the first connection, because the SDK is large. */
const sdk = () => import("@modelcontextprotocol/client");
type Sdk = Awaited<ReturnType<typeof sdk>>;

/** The facts of a session that continue in another connection. */
interface Session {
  sessionId?: string;
  protocolVersion?: string;
  prior?: PriorDiscovery;
}

export interface McpUse {
  tenant: string;
  id: string;
  server: McpServerOptions;
  credentials: Credentials;
}

interface Work<Value> {
  signal: AbortSignal;
  timeoutMs: number;
  /** Most bytes of all responses. */
  maxBytes: number;
  run(client: Client): Promise<Value>;
  onListChanged(): void;
}

const MAX_MESSAGE = 2_000;
/** Sessions that an isolate keeps, and characters of one as JSON. */
const MAX_SESSIONS = 500;
const MAX_SESSION = 8_000;
/** Codes of JSON-RPC. */
const [METHOD_NOT_FOUND, INVALID_PARAMS] = [-32_601, -32_602];

/** Make one per isolate. It keeps facts of sessions and tokens, and no connection. */
export class McpConnections {
  readonly #sessions = new Map<string, Session>();
  readonly #tokens = new Map<string, { secret: string; provider: ClientCredentialsProvider }>();

  constructor(private readonly clock: Pick<Clock, "timer">) {}

  /** Connects, runs `work`, and closes the connection. Throws `ToolError`. */
  async with<Value>(use: McpUse, work: Work<Value>): Promise<Value> {
    const { tenant, id } = use;
    const key = JSON.stringify([tenant, id]);
    const session = this.#sessions.get(key);
    try {
      return await this.#attempt(use, key, session, work);
    } catch (error) {
      if (!(error instanceof LostSession)) throw error;
      // The kind of the server is still known.
      this.#sessions.set(key, session?.prior ? { prior: session.prior } : {});
      return this.#attempt(use, key, this.#sessions.get(key), work);
    }
  }

  async #attempt<Value>(
    { id, server, credentials }: McpUse,
    key: string,
    session: Session | undefined,
    { signal, timeoutMs, maxBytes, run, onListChanged }: Work<Value>,
  ): Promise<Value> {
    const { Client, StreamableHTTPClientTransport, ...errors } = await sdk();
    const url = new URL(server.url);
    const { headers } = credentials;
    const requests = mcpRequests(url, {
      ...{ headers, issuer: server.oauth?.issuer, maxBytes },
      // The SDK would send a request again until the time limit.
      onEnd: () => void client.close(),
    });
    const { sessionId, protocolVersion, prior } = session ?? {};
    const authProvider = this.#provider(id, server, credentials, errors);
    const transport = new StreamableHTTPClientTransport(url, {
      fetch: (input, init) => {
        const { access_token: token } = authProvider?.tokens() ?? {};
        if (token !== undefined && !credentials.secrets.includes(token)) credentials.secrets.push(token);
        return requests.fetch(input, init);
      },
      ...(authProvider && { authProvider }),
      ...(sessionId !== undefined && { sessionId }),
      ...(protocolVersion !== undefined && { protocolVersion }),
    });
    const client = new Client(
      { name: "dramatis", version: VERSION },
      { versionNegotiation: { mode: "auto" }, inputRequired: { autoFulfill: false } },
    );
    client.setNotificationHandler("notifications/tools/list_changed", onListChanged);
    try {
      const options = { signal, timeout: timeoutMs };
      await client.connect(transport, { ...options, ...(prior !== undefined && { prior }) });
      const value = await run(client);
      const discover = client.getDiscoverResult();
      const version = client.getNegotiatedProtocolVersion() ?? protocolVersion;
      this.#keep(key, {
        prior: discover === undefined ? { kind: "legacy" } : { kind: "modern", discover: short(discover) },
        ...(transport.sessionId !== undefined && { sessionId: transport.sessionId }),
        ...(version !== undefined && { protocolVersion: version }),
      });
      return value;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const isHttp = error instanceof errors.SdkHttpError;
      if (sessionId !== undefined && isHttp && error.status === 404) throw new LostSession();
      // The stored facts about the server may be wrong.
      if (!(error instanceof ToolError || error instanceof errors.ProtocolError)) this.#sessions.delete(key);
      throw toolError(error, { id, requests, secrets: credentials.secrets, errors });
    } finally {
      // The SDK sends the notice of a cancellation soon, and does not wait for it.
      if (signal.aborted) await sleepWith(this.clock.timer, 0);
      await requests.sent();
      await client.close();
    }
  }

  /** Keeps the facts of a session, as far as there is room (MCPCON-6). */
  #keep(key: string, session: Session): void {
    this.#sessions.delete(key);
    if (JSON.stringify(session).length > MAX_SESSION) return;
    this.#sessions.set(key, session);
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > MAX_SESSIONS && oldest !== undefined) this.#sessions.delete(oldest);
  }

  /** Returns the provider of tokens, which keeps a token until it expires. */
  #provider(
    id: string,
    { oauth }: McpServerOptions,
    { clientSecret }: Credentials,
    { ClientCredentialsProvider }: Pick<Sdk, "ClientCredentialsProvider">,
  ): ClientCredentialsProvider | undefined {
    if (oauth === undefined || clientSecret === undefined) return undefined;
    const known = this.#tokens.get(id);
    if (known?.secret === clientSecret) return known.provider;
    const { issuer: expectedIssuer, clientId, scope } = oauth;
    const provider = new ClientCredentialsProvider({
      ...{ clientId, clientSecret, expectedIssuer },
      ...(scope !== undefined && { scope }),
    });
    // The server must not choose the scope.
    const prepare = provider.prepareTokenRequest.bind(provider);
    provider.prepareTokenRequest = () => prepare(scope);
    this.#tokens.set(id, { secret: clientSecret, provider });
    return provider;
  }
}

/** Returns the facts of a server without its instructions, which nothing reads. */
function short({ instructions: _, ...discover }: DiscoverResult): DiscoverResult {
  return discover;
}

/** The server does not know the session. */
class LostSession extends Error {}

interface Failure {
  id: string;
  requests: Requests;
  secrets: readonly string[];
  errors: Pick<Sdk, "SdkHttpError" | "SdkError" | "ProtocolError" | "UnauthorizedError" | "OAuthError">;
}

/** Returns an error of the SDK as an error for the model (MCPCON-3, MCPCON-4). */
function toolError(error: unknown, { id, requests, secrets, errors }: Failure): unknown {
  if (error instanceof ToolError || error instanceof DramatisError) return error;
  const problem = requests.problem();
  if (problem !== undefined) return problem;
  const name = `The MCP server "${id}"`;
  const quoted = (text: unknown) => cut(redactSecrets(String(text), secrets), MAX_MESSAGE);
  if (error instanceof errors.ProtocolError) {
    const code = error.code === INVALID_PARAMS ? "INVALID_INPUT" : "EXECUTION_FAILED";
    const hint = error.code === METHOD_NOT_FOUND ? " It has no tools." : "";
    return new ToolError(`${name} refused the request: ${quoted(error.message)}${hint}`, { code });
  }
  if (error instanceof errors.UnauthorizedError || error instanceof errors.OAuthError)
    return new ToolError(`${name} did not accept the credentials in its configuration.`, {
      code: "PERMISSION_DENIED",
    });
  if (error instanceof errors.SdkHttpError) {
    const { status } = error;
    if (status === 401 || status === 403)
      return new ToolError(`${name} did not accept the credentials in its configuration (${status}).`, {
        code: "PERMISSION_DENIED",
      });
    const retriable = status === 408 || status === 429 || status >= 500;
    return new ToolError(`${name} answered with ${status}.`, { retriable });
  }
  if (error instanceof errors.SdkError && error.code === "UNSUPPORTED_RESULT_TYPE")
    return new ToolError(`${name} asks for input of a person, which calls of agents do not have.`);
  if (error instanceof errors.SdkError && error.code === "INVALID_RESULT")
    return new ToolError(`${name} gave an answer that is not valid: ${quoted(error.message)}`);
  return new ToolError(`${name} did not answer.`, { retriable: true, cause: error });
}
