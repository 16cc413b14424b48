/** The methods of ACP. A session is a conversation with the agent of the command, and has the id of the conversation. */
import { type AgentApp, agent as agentApp, PROTOCOL_VERSION, RequestError } from "@agentclientprotocol/sdk";
import { DramatisClientError } from "../client/errors.ts";
import type { ConversationView } from "../protocol/conversation-schemas.ts";
import { defined } from "../shared/defined.ts";
import { isConversationId } from "../shared/identifiers.ts";
import { VERSION } from "../shared/version.ts";
import { rpcError, rpcErrorOf } from "./acp-errors.ts";
import { AcpSession, type SessionPorts } from "./acp-session.ts";
import type { Cli } from "./command.ts";
import { notDramatis } from "./failure.ts";

type Services = Pick<Cli, "client" | "url" | "note">;
type Editor = SessionPorts["editor"];

/** The JSON-RPC code of a cancelled request. */
const CANCELLED = -32800;

export function editorApp(cli: Services, agentId: string): AgentApp {
  const { client, url, note } = cli;
  const sessions = new Map<string, AcpSession>();
  /** Sessions that are being loaded. */
  const loading = new Set<string>();

  /** Runs a method, and converts its errors (ACP-8). */
  const answer = async <Value>(method: () => Promise<Value>): Promise<Value> => {
    try {
      return await method();
    } catch (error) {
      throw rpcErrorOf(error, url);
    }
  };

  const open = async (editor: Editor, { id }: ConversationView): Promise<AcpSession> => {
    const me = await client.me();
    const before = sessions.get(id);
    if (before?.isBusy)
      throw rpcError(
        "CONFLICT",
        `A prompt of ${id} waits for its answer. Stop it first with session/cancel.`,
      );
    before?.leave();
    sessions.delete(id);
    return new AcpSession({ cli, editor, me }, id, agentId);
  };

  const create = () =>
    client.conversations.create({ agentId }).catch((error: unknown) => {
      if (!(error instanceof DramatisClientError) || error.code !== "NOT_FOUND") throw error;
      const fix = "Correct --agent in the settings of the editor. List the agents with: dramatis list agents";
      throw rpcError(error.code, `There is no agent "${agentId}". ${fix}`);
    });

  /** Opens a session of an earlier conversation. */
  const reopen = (editor: Editor, id: string, replays: boolean) =>
    answer(async () => {
      if (loading.has(id)) throw rpcError("CONFLICT", `${id} is being loaded. Wait for the answer.`);
      loading.add(id);
      try {
        await load(editor, id, replays);
      } finally {
        loading.delete(id);
      }
    });

  const load = async (editor: Editor, id: string, replays: boolean) => {
    const view = await client.conversations.get(id);
    if (!view.participants.some(({ type, id }) => type === "agent" && id === agentId))
      throw rpcError(
        "INVALID_INPUT",
        `${id} is a conversation with ${view.agentId}: set --agent ${view.agentId}.`,
      );
    const session = await open(editor, view);
    await session.load(replays);
    sessions.set(id, session);
  };

  const find = (id: string): AcpSession => {
    const session = sessions.get(id);
    if (session === undefined)
      throw rpcError(
        "NOT_FOUND",
        `There is no open session "${id}". Open it with session/load or session/new.`,
      );
    return session;
  };

  const tell = (servers: readonly unknown[] | undefined) => {
    if (servers?.length)
      note("The agent does not use the MCP servers of the editor. Name them in dramatis({ mcpServers }).");
  };

  return agentApp({ name: "dramatis" })
    .onRequest("initialize", () => ({
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: "dramatis", title: `Dramatis: ${agentId}`, version: VERSION },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: false, sse: false },
        sessionCapabilities: { list: {}, resume: {}, close: {} },
      },
      authMethods: [],
    }))
    .onRequest("session/new", ({ client: editor, params }) =>
      answer(async () => {
        tell(params.mcpServers);
        const view = await create();
        if (!isConversationId(view.id)) throw rpcError("HTTP", notDramatis(url, "no conversation"));
        sessions.set(view.id, await open(editor, view));
        return { sessionId: view.id };
      }),
    )
    .onRequest("session/load", async ({ client: editor, params }) => {
      tell(params.mcpServers);
      await reopen(editor, params.sessionId, true);
      return {};
    })
    .onRequest("session/resume", async ({ client: editor, params }) => {
      tell(params.mcpServers);
      await reopen(editor, params.sessionId, false);
      return {};
    })
    .onRequest("session/list", ({ params }) =>
      answer(async () => {
        const { cursor, cwd } = params;
        const page = {
          sort: "activity",
          order: "desc",
          ...defined({ cursor: cursor ?? undefined }),
        } as const;
        const { conversations, nextCursor } = await client.conversations.list(page);
        const own = conversations.filter((conversation) => conversation.agentId === agentId);
        return {
          sessions: own.map(({ id, title, lastActivityAt }) => ({
            ...{ sessionId: id, title, updatedAt: lastActivityAt },
            // The conversations have no folder of the editor.
            cwd: cwd ?? process.cwd(),
          })),
          ...defined({ nextCursor }),
        };
      }),
    )
    .onRequest("session/prompt", async ({ params, signal }) => {
      const session = find(params.sessionId);
      // The end of the connection aborts the signal, too, and leaves the turn (ACP-12).
      signal.addEventListener("abort", () => {
        if (signal.reason instanceof RequestError && signal.reason.code === CANCELLED) void session.cancel();
      });
      return session.prompt(params.prompt);
    })
    .onRequest("session/close", ({ params }) =>
      answer(async () => {
        const session = find(params.sessionId);
        await session.cancel();
        if (!session.isBusy) session.leave();
        sessions.delete(params.sessionId);
        return {};
      }),
    )
    .onNotification("session/cancel", ({ params }) => find(params.sessionId).cancel());
}
