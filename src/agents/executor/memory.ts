/**
 * Accesses the memory of a call's agent by RPC to the agent's actor.
 *
 * MEMTOOL-5  A call has memory only if an agent with memory makes it.
 * MEMTOOL-6  After a call reads a tainted memory or a tainted turn, its writes are tainted. The end of the call reports the taint. Then
 *            later writes of its run are tainted, including runs above and below, and so is the result of its hook.
 */
import { ToolError } from "../../library/tools/tool-error.ts";
import type { MemoryApi, MemoryReader, MemoryWriter } from "../../protocol/memory.ts";
import type { CalledMemory, PastTurns, PastTurnsRequest, ToolMemory } from "../../protocol/tool-memory.ts";
import { defined } from "../../shared/defined.ts";
import { type Result, unwrap } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/identifiers.ts";

const NO_MEMORY = "The agent of this call has no memory. Set `memory.scope` in its persona.";
const NO_AGENT = "This run has no memory. Start it by a tool or a hook of an agent with memory.";
const NO_TURNS = "A run cannot read past turns. Pass the data as its input.";

export interface MemoryPorts {
  agent(tenant: string, id: string): Promise<MemoryApi>;
  pastTurns(context: CallContext, request: PastTurnsRequest): Promise<Result<PastTurns>>;
}

/** The taint of a call: whether it has read untrusted content since it began (MEMTOOL-6). */
export interface CallTaint {
  tainted?: true;
}

/** The parts of a call that determine its rights in its agent's memory. */
export interface MemoryCall {
  context: CallContext;
  memory?: CalledMemory;
}

/** Returns the memory that a call may use. All ids come from the call's context. Records in `taint` that the call reads untrusted content. */
export function memoryFor(
  ports: MemoryPorts,
  { context, memory }: MemoryCall,
  taint: CallTaint = {},
): ToolMemory {
  /** Records a read of tainted content (MEMTOOL-6). */
  const noted = <Value>(value: Value, hasTaint: boolean): Value => {
    if (hasTaint) taint.tainted = true;
    return value;
  };
  /** Returns the agent and the rights of the call. Throws `ToolError` if the call has no memory (MEMTOOL-5). */
  const rights = async () => {
    const turn = context.runId === undefined ? context : memory?.turn;
    if (turn === undefined) throw new ToolError(NO_AGENT, { code: "INVALID_INPUT" });
    if (memory === undefined) throw new ToolError(NO_MEMORY, { code: "PERMISSION_DENIED", rule: "memory" });
    const { agentId, conversationId, turnId } = turn;
    const { scope, userId } = memory;
    const reader: MemoryReader = { scope, conversationId, ...defined({ userId }) };
    const writer: MemoryWriter = {
      reader,
      author:
        context.runId === undefined
          ? { kind: "tool", conversationId, turnId }
          : { kind: "run", runId: context.runId },
      subject: { conversationId, ...defined({ userId }) },
      sources: [{ conversationId, turnId }],
      ...(memory?.tainted === true || taint.tainted === true ? { tainted: true } : {}),
    };
    return { agent: await ports.agent(context.tenant, agentId), agentId, turnId, reader, writer };
  };
  return {
    async write(inputs) {
      const { agent, writer } = await rights();
      const written = unwrap(await agent.writeMemories(writer, inputs));
      return noted(
        written,
        written.some(({ tainted }) => tainted === true),
      );
    },
    async search(query) {
      const { agent, reader } = await rights();
      const found = unwrap(await agent.searchMemories(reader, query));
      return noted(
        found,
        found.matches.some((match) => match.memory.tainted === true),
      );
    },
    async read(id) {
      const { agent, reader } = await rights();
      const found = unwrap(await agent.readMemory(reader, id));
      return noted(found, found.tainted === true);
    },
    async list(options) {
      const { agent, reader } = await rights();
      const page = unwrap(await agent.listMemories(reader, options));
      return noted(
        page,
        page.items.some(({ tainted }) => tainted === true),
      );
    },
    async update(id, change) {
      const { agent, writer } = await rights();
      const updated = unwrap(await agent.updateMemory(writer, id, change));
      return noted(updated, updated.tainted === true);
    },
    async delete(id) {
      const { agent, writer } = await rights();
      unwrap(await agent.deleteMemory(writer, id));
    },
    async archive(id) {
      const { agent, writer } = await rights();
      const archived = unwrap(await agent.archiveMemory(writer, id));
      return noted(archived, archived.tainted === true);
    },
    async pastTurns(options = {}) {
      const { agentId, turnId } = await rights();
      if (context.runId !== undefined)
        throw new ToolError(NO_TURNS, { code: "PERMISSION_DENIED", rule: "memory" });
      const page = unwrap(await ports.pastTurns(context, { ...options, agentId, turnId }));
      return noted(
        page,
        page.turns.some(({ taint }) => taint !== undefined),
      );
    },
  };
}
