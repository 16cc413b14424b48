/**
 * The requests of the client of A2A.
 *
 * A2ACALL-1  Requests reach only the host of the agent's address. Redirects are never followed. A refusal has the rule `network`. A posted tool
 *            reaches only hosts in the deployer's list, under the rules of `http.request`.
 * A2ACALL-2  A response has at most `MAX_RESPONSE_BYTES`, and arrives within 30 seconds.
 * A2ACALL-3  Requests carry the secrets of the project for the host. No result and no error has them.
 */
import type { z } from "zod";
import { checkResolved, type ResolveHost } from "../library/tasks/resolver.ts";
import { ToolError } from "../library/tools/tool-error.ts";
import type { Clock } from "../ports/clock.ts";
import { withDeadline } from "../ports/deadline.ts";
import { A2A_VERSION } from "../protocol/remote-call.ts";
import { bytesOf } from "../shared/byte-buffer.ts";
import { addressProblem, unlistedHosts } from "../shared/host-rules.ts";
import { type Json, parseJson } from "../shared/json.ts";
import { redactSecrets, withoutValues } from "../shared/redact.ts";
import { exactHost, serverHost } from "../shared/server-address.ts";
import { cut } from "../shared/text.ts";
import { rpcAnswerSchema } from "./wire.ts";

const REQUEST_MS = 30_000;
const MAX_RESPONSE_BYTES = 10 * 1024 * 1024;
const MAX_MESSAGE = 2_000;
const MAY_PASS: ReadonlySet<number> = new Set([408, 425, 429]);
/** The codes of JSON-RPC for an internal error, and for an error of the server without a code of its own. */
const SERVER_ERRORS: ReadonlySet<number> = new Set([-32_603, -32_000]);

/** A header with a secret. `secret` is the part of its value that must not be shown. */
interface Credential {
  header: string;
  value: string;
  secret: string;
}

export interface RequestPorts {
  clock: Pick<Clock, "timer">;
  /** Reports whether posted tools may send requests to a host, given as lists of hosts name it. */
  mayReach(host: string): boolean;
  /** Resolves public hosts before requests. Absent: they are not resolved. */
  resolve?: ResolveHost;
}

/** The agent refused a request. */
export class Refusal extends ToolError {}

/** An answer has more than `MAX_RESPONSE_BYTES`. */
export class TooLarge extends ToolError {}

/** The requests to one agent, within one attempt of a call. */
export class AgentRequests {
  readonly #secrets: string[] = [];
  readonly #url: URL;

  constructor(
    private readonly ports: RequestPorts,
    private readonly agent: {
      url: string;
      /** The application declares the tool in code. */
      isDeployed: boolean;
      credentials(url: URL): Promise<readonly Credential[]>;
    },
  ) {
    this.#url = new URL(agent.url);
  }

  /** Returns the checked JSON at an address. Throws `ToolError`. */
  async read<Schema extends z.ZodType>(url: URL, schema: Schema, what: string): Promise<z.output<Schema>> {
    return this.#checked(schema, await this.#fetch(url, { method: "GET" }), what);
  }

  /** Calls a method, and returns its checked result. Throws `ToolError`, and `Refusal` if the agent refuses. */
  async call<Schema extends z.ZodType>(
    { endpoint, tenant }: { endpoint: string; tenant?: string },
    method: string,
    params: object,
    schema: Schema,
  ): Promise<z.output<Schema>> {
    const body = JSON.stringify({
      ...{ jsonrpc: "2.0", id: 1, method },
      params: { ...(tenant !== undefined && { tenant }), ...params },
    });
    const what = `The answer to ${method}`;
    const answer = this.#checked(
      rpcAnswerSchema,
      await this.#fetch(new URL(endpoint), { method: "POST", body }),
      what,
    );
    if (!("error" in answer)) return this.#checked(schema, answer.result, what);
    const { code, message } = answer.error;
    throw new Refusal(
      `The remote agent refused ${method}: ${cut(redactSecrets(message, this.#secrets), MAX_MESSAGE)} (${code})`,
      {
        retriable: SERVER_ERRORS.has(code),
      },
    );
  }

  /** Returns the result of `work`. The errors that leave it have no secret of the requests (A2ACALL-3). */
  async redacting<Value>(work: () => Promise<Value>): Promise<Value> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      const { message, code, retriable, rule, cause } = error;
      throw new ToolError(redactSecrets(message, this.#secrets), { code, retriable, rule, cause });
    }
  }

  /** Throws `ToolError` for an id with a secret: an id is stored and shown, and it must be sent back as it is (A2ACALL-3). */
  checkIds(ids: readonly (string | undefined)[]): void {
    if (ids.every((id) => id === undefined || this.clean(id) === id)) return;
    throw new ToolError(
      "The remote agent gave an id with a secret of the project. The task was not followed.",
    );
  }

  /** Returns a value without the secrets of the requests (A2ACALL-3). */
  clean(value: Json): Json {
    return withoutValues(value, this.#secrets);
  }

  #checked<Schema extends z.ZodType>(schema: Schema, value: unknown, what: string): z.output<Schema> {
    const parsed = schema.safeParse(value);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw new ToolError(`${what} is not A2A ${A2A_VERSION}: /${issue?.path.join("/")}: ${issue?.message}`);
  }

  async #fetch(url: URL, { method, body }: { method: string; body?: string }): Promise<Json> {
    const { host } = url;
    const late = () =>
      new ToolError(`"${host}" did not answer within ${REQUEST_MS} ms.`, {
        code: "TIMEOUT",
        retriable: true,
      });
    return withDeadline(
      this.ports.clock,
      REQUEST_MS,
      async (signal) => {
        this.checkAddress(url);
        await checkResolved(url.hostname, this.ports.resolve, signal);
        const headers = new Headers({ accept: "application/json", "a2a-version": A2A_VERSION });
        if (body !== undefined) headers.set("content-type", "application/json");
        for (const { header, value, secret } of await this.agent.credentials(url)) {
          headers.set(header, value);
          this.#secrets.push(secret);
        }
        const options = { method, headers, redirect: "manual", signal } as const;
        const response = await this.#answered(
          url,
          { ...options, ...(body !== undefined && { body }) },
          signal,
        );
        const tooLong = () =>
          new TooLarge(`The answer of "${host}" has more than ${MAX_RESPONSE_BYTES} bytes.`);
        const bytes = await this.#whole(url, () => bytesOf(response.body, MAX_RESPONSE_BYTES, tooLong));
        const parsed = parseJson(new TextDecoder().decode(bytes));
        if (parsed === undefined) throw new ToolError(`The answer of "${host}" is not JSON.`);
        return parsed;
      },
      { reason: late },
    );
  }

  /** Throws `PERMISSION_DENIED` for an address that the agent must not reach (A2ACALL-1). */
  checkAddress(url: URL): void {
    const denied = (message: string) =>
      new ToolError(message, { code: "PERMISSION_DENIED", rule: "network" });
    const own = [this.#url.hostname, exactHost(this.#url)];
    const hosts = this.agent.isDeployed ? own : own.filter((host) => this.ports.mayReach(host));
    if (hosts.length === 0) throw denied(unlistedHosts("tools", [serverHost(this.#url)]));
    if (addressProblem(url, hosts) !== null)
      throw denied(
        `The remote agent must not lead to another address. Only "${this.#url.host}", the host of its address, is allowed.`,
      );
  }

  async #answered(url: URL, options: RequestInit, signal: AbortSignal): Promise<Response> {
    const response = await this.#whole(url, () => fetch(url, options));
    signal.throwIfAborted();
    const { status } = response;
    if (response.ok) return response;
    await response.body?.cancel();
    if (status >= 300 && status < 400)
      throw new ToolError(
        `"${url.host}" redirects, and redirects are not followed. Use the final address of the agent as \`target.a2a\`.`,
        { code: "PERMISSION_DENIED", rule: "network" },
      );
    if (status === 401 || status === 403)
      throw new ToolError(
        `"${url.host}" did not accept the credentials (${status}). Add a secret for this host to the project.`,
        { code: "PERMISSION_DENIED" },
      );
    if (status === 404)
      throw new ToolError(`There is no agent at "${url.host}${url.pathname}" (404).`, { code: "NOT_FOUND" });
    throw new ToolError(`"${url.host}" answered with ${status}.`, {
      retriable: status >= 500 || MAY_PASS.has(status),
    });
  }

  /** Returns the result of `work`. Throws a retriable error if the connection breaks. */
  async #whole<Value>(url: URL, work: () => Promise<Value>): Promise<Value> {
    try {
      return await work();
    } catch (cause) {
      if (cause instanceof ToolError) throw cause;
      throw new ToolError(`"${url.host}" did not answer. The request may have arrived.`, {
        retriable: true,
        cause,
      });
    }
  }
}
