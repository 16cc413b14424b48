/** Generated conversations as frames, and the server's snapshot at any point of one. */
import * as fc from "fast-check";
import type {
  ConversationView,
  Frame,
  MessageView,
  OperationView,
  TurnSummary,
} from "../../src/client/index.ts";

export type Wire = Exclude<Frame, { type: "snapshot" }>;
type SnapshotFrame = Extract<Frame, { type: "snapshot" }>;

export const conversationView: ConversationView = {
  id: "conv_1",
  title: null,
  status: "active",
  gate: "idle",
  turns: "parallel",
  agentId: "guide",
  projectId: "default",
  participants: [{ type: "user", id: "ada" }],
  createdAt: "2026-03-01T10:00:00.000Z",
};

type Step =
  | { kind: "tool"; thought: string | null; end: "completed" | "failed" | "cancelled" }
  | { kind: "text"; chunks: string[]; lostChunks: string[] | null };
interface TurnScript {
  steps: Step[];
  /** `stopped`: failed in the middle of a text, which stays. */
  end: "completed" | "failed" | "stopped" | "open";
}

const chunks = fc.array(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 4 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("tool" as const),
    thought: fc.option(fc.string({ minLength: 1, maxLength: 10 })),
    end: fc.constantFrom("completed" as const, "failed" as const, "cancelled" as const),
  }),
  fc.record({ kind: fc.constant("text" as const), chunks, lostChunks: fc.option(chunks) }),
);
const turnScript: fc.Arbitrary<TurnScript> = fc.record({
  steps: fc.array(step, { maxLength: 4 }),
  end: fc.constantFrom("completed" as const, "failed" as const, "stopped" as const, "open" as const),
});

/** Frames of several concurrent turns, and of stops and resumes of the conversation, in a possible order, up to any point. */
export const conversationScript: fc.Arbitrary<Wire[]> = fc
  .record({
    turns: fc.array(turnScript, { minLength: 1, maxLength: 4 }),
    gates: fc.constantFrom(0, 1, 2),
    order: fc.array(fc.nat(4), { maxLength: 80 }),
    length: fc.nat(120),
  })
  .map(({ turns, gates, order, length }) => {
    const all = [...turns.map(framesOfTurn), framesOfGates(gates)];
    return number(interleave(all, order)).slice(0, length);
  });

function framesOfGates(count: number): Wire[] {
  const base = { v: 1, seq: 0, time: "2026-03-01T10:00:00.000Z", type: "conversation.updated" } as const;
  return (["cancelled", "idle"] as const).slice(0, count).map((gate) => ({ ...base, data: { gate } }));
}

function framesOfTurn({ steps, end }: TurnScript, index: number): Wire[] {
  const turnId = `turn_${index}`;
  const base = { v: 1, seq: 0, turnId, time: "2026-03-01T10:00:00.000Z" } as const;
  const error = { code: "MODEL_FAILED", message: "It failed.", retriable: true };
  const frames: Wire[] = [
    { ...base, type: "turn.started", data: { clientId: `client_${index}`, agentId: "guide" } },
    {
      ...base,
      type: "message.user",
      messageId: `msg_${index}_user`,
      data: { clientId: `client_${index}`, content: `Question ${index}` },
    },
  ];
  steps.forEach((current, n) => {
    const messageId = `msg_${index}_${n}`;
    if (current.kind === "tool") {
      frames.push(...framesOfTool(current, { ...base, messageId, operationId: `op_${index}_${n}` }));
      return;
    }
    frames.push({ ...base, type: "message.started", messageId, data: { agentId: "guide" } });
    if (current.lostChunks !== null) {
      frames.push(...deltas(current.lostChunks, turnId, messageId));
      frames.push({ ...base, type: "error", data: { code: "MODEL_FAILED", message: "Again." } });
      frames.push({ ...base, type: "message.reset", messageId, data: { reason: "retry" } });
    }
    frames.push(...deltas(current.chunks, turnId, messageId));
    frames.push({
      ...base,
      type: "message.completed",
      messageId,
      data: { agentId: "guide", content: current.chunks.join("") },
    });
  });
  if (end === "completed") frames.push({ ...base, type: "turn.completed", data: {} });
  if (end === "failed") frames.push({ ...base, type: "turn.failed", data: { error } });
  if (end === "stopped") {
    const messageId = `msg_${index}_stopped`;
    frames.push({ ...base, type: "message.started", messageId, data: { agentId: "guide" } });
    frames.push(...deltas(["Ha", "lf"], turnId, messageId));
    const data = { agentId: "guide", content: "Half", stopped: true } as const;
    frames.push({ ...base, type: "message.completed", messageId, data });
    const stopped = { code: "CANCELLED", message: "The turn was stopped.", retriable: true };
    frames.push({ ...base, type: "turn.failed", data: { error: stopped } });
  }
  return frames;
}

function framesOfTool(
  { thought, end }: Extract<Step, { kind: "tool" }>,
  ids: { v: 1; seq: number; turnId: string; messageId: string; operationId: string; time: string },
): Wire[] {
  const { messageId, operationId, ...base } = ids;
  const error = { code: "EXECUTION_FAILED", message: "The tool failed.", retriable: false };
  const frames: Wire[] = [];
  if (thought !== null) {
    frames.push({ ...base, type: "message.started", messageId, data: { agentId: "guide" } });
    frames.push(...deltas([thought], base.turnId, messageId));
    frames.push({
      ...base,
      type: "message.completed",
      messageId,
      data: { agentId: "guide", content: thought, interim: true },
    });
  }
  frames.push({
    ...base,
    type: "tool.requested",
    operationId,
    data: { name: "search", input: { q: messageId }, async: false },
  });
  frames.push({ ...base, type: "tool.progress", operationId, data: { progress: 0.5 } });
  frames.push(
    end === "completed"
      ? { ...base, type: "tool.completed", operationId, data: { result: { found: messageId } } }
      : { ...base, type: `tool.${end}`, operationId, data: { error } },
  );
  return frames;
}

function deltas(texts: string[], turnId: string, messageId: string): Wire[] {
  let offset = 0;
  return texts.map((text) => {
    const frame: Wire = {
      v: 1,
      type: "message.delta",
      turnId,
      messageId,
      time: "2026-03-01T10:00:00.000Z",
      data: { offset, text },
    };
    offset += text.length;
    return frame;
  });
}

/** Interleaves turns: each number selects the turn of the next frame. The rest follows turn by turn. */
function interleave(turns: Wire[][], order: number[]): Wire[] {
  const queues = turns.map((frames) => [...frames]);
  const picked = order.flatMap((turn) => queues[turn]?.splice(0, 1) ?? []);
  return [...picked, ...queues.flat()];
}

/** Numbers durable frames, ascending with gaps, and sets ascending times. */
function number(frames: Wire[]): Wire[] {
  return frames.map((frame, index) => {
    const time = new Date(Date.UTC(2026, 2, 1, 10, 0, index)).toISOString();
    return frame.seq === undefined ? { ...frame, time } : { ...frame, time, seq: (index + 1) * 3 };
  });
}

/** Computes a server's snapshot after the first `count` frames. */
export function snapshotAt(wire: readonly Wire[], count: number): SnapshotFrame {
  const past = wire.slice(0, count);
  const turns = past.flatMap((frame) => (frame.type === "turn.started" ? [turnAt(past, frame)] : []));
  return {
    v: 1,
    type: "snapshot",
    seq: past.findLast(({ seq }) => seq !== undefined)?.seq ?? 0,
    time: "2026-03-01T10:00:00.000Z",
    data: {
      conversation: { ...conversationView, gate: gateAt(past, turns) },
      turns,
      messages: past.flatMap(messageOf),
      partials: turns.flatMap(({ id, status }) => (status === "active" ? partialsAt(past, id) : [])),
      operations: past.flatMap((frame) => operationAt(past, frame)),
    },
  };
}

function gateAt(past: readonly Wire[], turns: readonly TurnSummary[]): ConversationView["gate"] {
  const last = past.findLast((frame) => frame.type === "conversation.updated");
  if (last?.type === "conversation.updated" && last.data.gate === "cancelled") return "cancelled";
  return turns.some(({ status }) => status === "active") ? "running" : "idle";
}

function turnAt(past: readonly Wire[], start: Extract<Wire, { type: "turn.started" }>): TurnSummary {
  const id = start.turnId ?? "";
  const end = past.find(
    ({ type, turnId }) => turnId === id && (type === "turn.completed" || type === "turn.failed"),
  );
  return {
    id,
    agentId: start.data.agentId,
    createdAt: start.time,
    status: end === undefined ? "active" : end.type === "turn.failed" ? "failed" : "completed",
    completedAt: end?.time ?? null,
    ...(end?.type === "turn.failed" ? { error: end.data.error } : {}),
  };
}

function messageOf(frame: Wire): MessageView[] {
  const { messageId: id = "", turnId = "", time: createdAt } = frame;
  if (frame.type === "message.user")
    return [{ id, turnId, role: "user", createdAt, content: "", ...frame.data }];
  if (frame.type !== "message.completed" || frame.data.interim === true) return [];
  const { agentId, content, stopped } = frame.data;
  return [{ id, turnId, role: "agent", createdAt, agentId, content, ...(stopped && { stopped }) }];
}

function partialsAt(past: readonly Wire[], turnId: string): SnapshotFrame["data"]["partials"] {
  return past.flatMap((frame) => {
    if (frame.type !== "message.started" || frame.turnId !== turnId) return [];
    const messageId = frame.messageId ?? "";
    const own = past.filter((other) => other.messageId === messageId);
    if (own.some(({ type }) => type === "message.completed")) return [];
    const live = own.slice(own.findLastIndex(({ type }) => type === "message.reset") + 1);
    const text = live.map((other) => (other.type === "message.delta" ? other.data.text : "")).join("");
    return [{ messageId, turnId, text }];
  });
}

function operationAt(past: readonly Wire[], frame: Wire): OperationView[] {
  if (frame.type !== "tool.requested") return [];
  const { operationId: id = "", turnId = "", data } = frame;
  const view: OperationView = { id, turnId, name: data.name, input: data.input, state: "running" };
  for (const end of past.filter(({ operationId }) => operationId === id)) {
    if (end.type === "tool.completed") return [{ ...view, state: "completed", result: end.data.result }];
    if (end.type === "tool.cancelled") return [{ ...view, state: "cancelled", error: end.data.error }];
    if (end.type === "tool.failed") return [{ ...view, state: "failed", error: end.data.error }];
  }
  return [view];
}
