/**
 * The tools of MCP servers: for conversations that begin, for calls, and for operators.
 *
 * MCP-20  A conversation pins the accepted tools of its servers. Other tools that its persona names are withheld, with the reason.
 * MCP-21  A list is read again after five minutes, or when the server reports a change. If a server does not answer, its accepted tools stay.
 * MCP-22  A call runs only if the newest description of its tool is accepted. A refusal has the rule `mcp-consent`.
 * MCP-23  A call that is cancelled, or that ends by its time limit, is cancelled at the server.
 */
import type { Client } from "@modelcontextprotocol/client";
import { z } from "zod";
import type { D1McpLists } from "../d1/mcp-lists.ts";
import { type McpReference, mcpLibrary, modelName } from "../library/definitions/mcp-reference.ts";
import type { McpSource, NamedMcpTools } from "../library/registry/mcp-source.ts";
import { Asked } from "../library/tools/continued.ts";
import type { ToolContext } from "../library/tools/tool.ts";
import { ToolError } from "../library/tools/tool-error.ts";
import { DEFAULT_TOOL_TIMEOUT_MS } from "../library/tools/tool-schema.ts";
import { mayUseMcpServer } from "../policy/project-settings.ts";
import type { Clock } from "../ports/clock.ts";
import { withDeadline } from "../ports/deadline.ts";
import type { PinnedTool } from "../protocol/definitions.ts";
import { MAX_ELICITATIONS } from "../protocol/elicitation.ts";
import type { ToolInvocation } from "../protocol/executor-api.ts";
import type { McpConsent, McpServerView } from "../protocol/mcp-servers.ts";
import type { ProjectSettings } from "../protocol/projects.ts";
import { defined } from "../shared/defined.ts";
import { DramatisError, errorText, notFound, unavailable } from "../shared/errors.ts";
import type { CallContext } from "../shared/identifiers.ts";
import type { Json } from "../shared/json.ts";
import { listIds } from "../shared/known-ids.ts";
import type { Principal } from "../shared/principal.ts";
import { withoutValues } from "../shared/redact.ts";
import { serverHost } from "../shared/server-address.ts";
import { toIso } from "../shared/time.ts";
import type { McpConnections } from "./connections.ts";
import { effectOf, readTools } from "./descriptor.ts";
import { askingOf, elicitedBy, repeatedState } from "./elicitation.ts";
import { consented, type Described, type McpList, type McpPin, merged, pinProblem, stateOf } from "./pins.ts";
import { resultOf } from "./results.ts";
import { credentialsOf, type McpServerOptions, type McpServers } from "./servers.ts";

/** A list is older than this: read it again. In milliseconds. */
const LIST_MS = 300_000;
/** Time limit of reading a list, in milliseconds. */
const LISTING_MS = 10_000;
/** A server that did not answer is not asked for its list in this time, in milliseconds. */
const PAUSE_MS = 30_000;
/** Time for the mark of a changed list, in milliseconds. */
const MARK_MS = 1_000;
const MAX_PAGES = 32;
/** Bytes of the responses that give a list, and a result. A larger result would not be stored. */
const MAX_LISTING_BYTES = 4 * 1024 * 1024;
const MAX_RESPONSE_BYTES = 10 * 1024 * 1024;
/** Lists that another writer has changed at the same time are read again so often. */
const MAX_ATTEMPTS = 5;
const NO_DATABASE = "MCP servers need the D1 binding `DB`. Add it to the Worker.";
/** The member of a call's `_meta` that servers of Dramatis read. */
const KEY = "dramatis/idempotencyKey";

/**
 * The capabilities of a call, in place of the capabilities of the connection. Servers of older revisions ignore them: they would ask during the
 * call, which cannot wait for a person.
 */
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const MAY_ASK = { elicitation: { form: {}, url: {} } };

/** Descriptions are checked one by one. */
const pageSchema = z.object({ tools: z.array(z.unknown()), nextCursor: z.string().optional() });

export interface McpPorts {
  servers: McpServers;
  connections: McpConnections;
  /** `null` without a database. */
  lists: Pick<D1McpLists<McpList>, "find" | "put"> | null;
  /** Times of failed lists, by tenant and server. One for each isolate. */
  pauses: Map<string, number>;
  variable(name: string): unknown;
  /** Returns the settings of a project. Absent: projects have no settings. */
  settings?(project: Pick<CallContext, "tenant" | "projectId">): Promise<ProjectSettings>;
  clock: Pick<Clock, "now" | "timer">;
}

/** A list, and why it could not be read again. */
interface Known {
  list: McpList | null;
  /** For operators. It may quote the server. */
  problem?: string;
  /** For models. */
  reason?: string;
}

/** Make one per request. */
export class McpTools {
  constructor(private readonly ports: McpPorts) {}

  /** Returns the servers of a tenant for its registry, and for a project if the registry resolves for one. */
  source(tenant: string, projectId?: string): McpSource {
    return {
      check: (reference) => this.#check(reference),
      resolve: (reference) => this.#resolve(tenant, reference, projectId),
    };
  }

  #check({ server: id, tool }: McpReference): void {
    const { allow } = this.#server(id);
    if (tool === "*" || allow === undefined || allow.includes(tool)) return;
    throw notFound(
      `The application does not allow the tool "${tool}" of the MCP server "${id}". It allows: ${listIds(tool, allow)}.`,
    );
  }

  async #resolve(tenant: string, reference: McpReference, projectId?: string): Promise<NamedMcpTools> {
    this.#check(reference);
    const { server: id, tool } = reference;
    const server = this.#server(id);
    // Descriptions are texts of the server, so a server that is not allowed does not get them into a prompt.
    const refusal = projectId === undefined ? undefined : await this.#refusal({ tenant, projectId }, id);
    if (refusal !== undefined) return { tools: [], withheld: { [modelName(id, tool)]: refusal } };
    const { list, reason: unlisted = "" } = await this.#list(tenant, id);
    const isAll = tool === "*";
    const wanted = Object.entries(list?.tools ?? {}).filter(([key, pin]) =>
      isAll ? isAllowed(server, key, pin) : key === tool || pin.name === tool,
    );
    if (list === null || (wanted.length === 0 && !isAll)) {
      const reason = list === null ? unlisted : "The server has no such tool.";
      return { tools: [], withheld: { [modelName(id, tool)]: reason } };
    }
    const tools: PinnedTool[] = [];
    const withheld: [string, string][] = [];
    for (const [key, pin] of wanted) {
      const reason = pinProblem(id, pin);
      if (reason === undefined && pin.accepted !== undefined)
        tools.push(pinnedTool(id, key, server, { ...pin, accepted: pin.accepted }));
      // An unknown name in a list is a text of the server, which nobody has accepted.
      else if (!isAll || pin.accepted !== undefined) withheld.push([modelName(id, key), reason ?? ""]);
    }
    return { tools, withheld: Object.fromEntries(withheld) };
  }

  /** Runs a call. Throws `ToolError`, and `DramatisError` if the database or a variable is missing. */
  async call(
    { tool: { id: key, version }, input, operationId, timeoutMs, context, answer: given }: ToolInvocation,
    id: string,
    { signal, progress }: Pick<ToolContext, "signal" | "progress">,
  ): Promise<Json | Asked> {
    const { tenant } = context;
    const server = this.#server(id);
    const refusal = await this.#refusal(context, id);
    if (refusal !== undefined) throw new ToolError(refusal, { code: "PERMISSION_DENIED", rule: "project" });
    const { list } = await this.#list(tenant, id);
    const pin = list !== null && Object.hasOwn(list.tools, key) ? list.tools[key] : undefined;
    if (pin === undefined || !isAllowed(server, key, pin))
      throw new ToolError(`The MCP server "${id}" has no tool "${key}" that is allowed.`, {
        code: "NOT_FOUND",
      });
    const { accepted, least, name } = pin;
    const reason =
      pinProblem(id, pin) ??
      (version < least
        ? "An accepted change made repeated calls unsafe. Begin a new conversation."
        : undefined);
    if (reason !== undefined || accepted === undefined)
      throw new ToolError(`The tool "${key}" of the MCP server "${id}" cannot be called. ${reason ?? ""}`, {
        code: "PERMISSION_DENIED",
        rule: "mcp-consent",
      });
    const { inputSchema } = accepted.descriptor;
    const credentials = credentialsOf(id, server, this.ports.variable);
    let isStale = false;
    const answer = await this.ports.connections.with(
      { tenant, id, server, credentials },
      {
        signal,
        maxBytes: MAX_RESPONSE_BYTES,
        // The time limit of the call aborts the signal.
        timeoutMs: timeoutMs + LISTING_MS,
        run: async (client) => {
          const send = (more: object) =>
            client.callTool(
              {
                ...{ name, arguments: input, _meta: { [KEY]: operationId, [CAPABILITIES]: MAY_ASK } },
                ...more,
              },
              {
                signal,
                allowInputRequired: true,
                timeout: timeoutMs + LISTING_MS,
                // SAFETY: a report was parsed from JSON.
                onprogress: (report) =>
                  progress(withoutValues(report as unknown as Json, credentials.secrets)),
                // SAFETY: the descriptions of a server were checked when they were listed.
                toolDefinition: { name, inputSchema } as never,
              },
            );
          // SAFETY: the answer of a person has the form of the server's questions.
          let answer = await send(
            given ? { inputResponses: given.responses, requestState: given.state } : {},
          );
          for (let round = 0; round < MAX_ELICITATIONS; round++) {
            const requestState = repeatedState(answer);
            if (requestState === undefined) break;
            answer = await send({ requestState });
          }
          return answer;
        },
        onListChanged: () => {
          isStale = true;
        },
      },
    );
    // The effect has happened, so the answer waits a second at most. Without the mark, the list is read again at its usual time.
    if (isStale) {
      const mark = () => this.#change(tenant, id, (before) => before && { ...before, listedAt: 0 });
      await withDeadline(this.ports.clock, MARK_MS, mark).catch(() => undefined);
    }
    const asked = askingOf(answer);
    if (asked === undefined) return resultOf(answer, credentials.secrets);
    const problem = `The MCP server "${id}" asks for input of a person, which this call does not have.`;
    return new Asked(elicitedBy(id, asked, credentials.secrets), problem);
  }

  async views(tenant: string): Promise<McpServerView[]> {
    const all = [...this.ports.servers.keys()].toSorted();
    return Promise.all(all.map(async (id) => this.#view(id, await this.#list(tenant, id))));
  }

  /** Accepts descriptions of tools. Throws `NOT_FOUND`, `CONFLICT` and `UNAVAILABLE`. */
  async consent({ tenant, subject }: Principal, id: string, { tools }: McpConsent): Promise<McpServerView> {
    this.#server(id);
    const list = await this.#change(tenant, id, (before) => {
      if (before === null) throw notFound(`The MCP server "${id}" was not listed yet.`);
      return consented(before, tools, subject);
    });
    return this.#view(id, { list });
  }

  /** Returns the reason why a project may not use a server (SETTING-5). */
  async #refusal(
    project: Pick<CallContext, "tenant" | "projectId">,
    id: string,
  ): Promise<string | undefined> {
    if (mayUseMcpServer((await this.ports.settings?.(project)) ?? {}, id)) return undefined;
    return `The project "${project.projectId}" does not allow the MCP server "${id}". Work without its tools, or add it to \`allowedMcpServers\` of the project.`;
  }

  #server(id: string): McpServerOptions {
    const { servers } = this.ports;
    const server = servers.get(id);
    if (server !== undefined) return server;
    const known = servers.size === 0 ? "none" : listIds(id, [...servers.keys()]);
    throw notFound(`There is no MCP server "${id}". \`mcpServers\` has: ${known}.`);
  }

  /** Returns the list of a server, which is read again if it is old (MCP-21). Throws `UNAVAILABLE` if the database does not answer. */
  async #list(tenant: string, id: string): Promise<Known> {
    const { lists, clock, pauses } = this.ports;
    if (lists === null) return { list: null, problem: NO_DATABASE, reason: NO_DATABASE };
    const { list } = await lists.find(tenant, id);
    const isNew = list !== null && clock.now() - list.listedAt < LIST_MS;
    if (isNew) return { list };
    const key = JSON.stringify([tenant, id]);
    const reason = `The MCP server "${id}" has not given the list of its tools.`;
    if (clock.now() < (pauses.get(key) ?? 0)) return { list, problem: reason, reason };
    try {
      const listed = await this.#read(tenant, id);
      return { list: await this.#change(tenant, id, (before) => merged(before, listed, clock.now())) };
    } catch (error) {
      const problem = errorText(error);
      console.warn(`The tools of the MCP server "${id}" cannot be listed: ${problem}`);
      // Errors of the configuration quote no server, and have asked none. A list that is too large has asked the server.
      if (error instanceof DramatisError && error.code !== "TOO_LARGE")
        return { list, problem, reason: problem };
      pauses.set(key, clock.now() + PAUSE_MS);
      return { list, problem, reason };
    }
  }

  async #read(tenant: string, id: string) {
    const server = this.#server(id);
    const credentials = credentialsOf(id, server, this.ports.variable);
    const reason = () => new ToolError(`The MCP server "${id}" did not answer within ${LISTING_MS} ms.`);
    const tools = await withDeadline(
      this.ports.clock,
      LISTING_MS,
      (signal) =>
        this.ports.connections.with(
          { tenant, id, server, credentials },
          {
            signal,
            timeoutMs: LISTING_MS,
            maxBytes: MAX_LISTING_BYTES,
            run: (client) => pagesOf(client, signal),
            onListChanged: () => {},
          },
        ),
      { reason },
    );
    return readTools(id, tools, server.allow, credentials.secrets);
  }

  /** Changes a list, and returns it. Throws `UNAVAILABLE` if other writers change it all the time. */
  async #change<Next extends McpList | null>(
    tenant: string,
    id: string,
    change: (before: McpList | null) => Next,
  ): Promise<Next> {
    const { lists } = this.ports;
    if (lists === null) throw unavailable(NO_DATABASE);
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      const { rev, list } = await lists.find(tenant, id);
      const next = change(list);
      if (next === null || (await lists.put(tenant, id, rev, next))) return next;
    }
    throw unavailable("Others change the list at the same time. Try again.", {
      retriable: true,
    });
  }

  #view(id: string, { list, problem }: Known): McpServerView {
    const server = this.#server(id);
    const shown = (described: Described | undefined) =>
      described && {
        hash: described.hash,
        description: described.descriptor.description,
        inputSchema: described.descriptor.inputSchema,
        effect: effectOf(described.descriptor, server.effect),
      };
    const tools = Object.entries(list?.tools ?? {}).map(([key, pin]) => ({
      ...{ id: key, name: pin.name, modelName: modelName(id, key), version: pin.version },
      ...{ allowed: isAllowed(server, key, pin), state: stateOf(pin) },
      ...defined({
        acceptedBy: pin.by,
        accepted: shown(pin.accepted),
        offered: shown(pin.offered),
        problem: pin.problem,
      }),
    }));
    const listedAt = list === null || list.listedAt === 0 ? undefined : toIso(list.listedAt);
    return { id, url: server.url, tools, ...defined({ listedAt, problem }) };
  }
}

/** Returns the descriptions on all pages of a server's list, as far as there is room for tools. */
async function pagesOf(client: Client, signal: AbortSignal): Promise<unknown[]> {
  const tools: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = defined({ cursor });
    const answer = await client.request({ method: "tools/list", params }, pageSchema, {
      signal,
      timeout: LISTING_MS,
    });
    tools.push(...answer.tools);
    cursor = answer.nextCursor;
    if (cursor === undefined) break;
  }
  return tools;
}

function isAllowed({ allow }: McpServerOptions, key: string, { name }: McpPin): boolean {
  return allow === undefined || allow.includes(name) || allow.includes(key);
}

/** Returns a tool as a conversation pins it (MCP-20). */
function pinnedTool(
  id: string,
  key: string,
  server: McpServerOptions,
  { name, version, accepted: { hash, descriptor } }: McpPin & { accepted: Described },
): PinnedTool {
  return {
    ...{ library: mcpLibrary(id), id: key, version, hash },
    definition: {
      name: modelName(id, key),
      description: descriptor.description || `The tool "${name}" of the MCP server "${id}".`,
      inputSchema: descriptor.inputSchema,
      effect: effectOf(descriptor, server.effect),
      timeoutMs: server.timeoutMs ?? DEFAULT_TOOL_TIMEOUT_MS,
      hosts: [serverHost(new URL(server.url))],
    },
  };
}
