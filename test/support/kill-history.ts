/** A short handmade history without violations, in the form of the kill harness. */
import {
  type FinalState,
  type History,
  type Hit,
  newHistory,
  type SentMessage,
} from "../../bench/kills/history.ts";
import { callName, contentOf, piecesOf, type Script, textOf } from "../../bench/kills/script.ts";
import type { Frame } from "../../src/client/index.ts";

const CONVERSATION = "conv_1";
/** Start time, in milliseconds since the epoch. */
const BEGIN = Date.parse("2026-01-01T00:00:00.000Z");

const FIRST: Script = { key: "a", rounds: [["once", "idempotent"]], pieces: 3, pieceMs: 1, toolMs: 1 };
const SECOND: Script = { key: "b", rounds: [], pieces: 2, pieceMs: 1, toolMs: 1 };

type Fact = { type: Frame["type"]; data?: unknown; item?: number; op?: number };

/**
 * Message `a` is sent over a socket and interrupted twice: while its idempotent tool runs (second 5), and within its
 * answer (second 10). Then `b` is posted, interrupted (second 20), and resumed by the alarm without a caller (second
 * 29).
 */
export function goodHistory(): History {
  const history = newHistory();
  const at = (second: number) => BEGIN + second * 1_000;
  const first = facts("turn_a", [
    [2, 1, { type: "turn.started", data: { clientId: "a", agentId: "actor" } }],
    [3, 1, { type: "message.user", item: 0, data: { clientId: "a", content: contentOf(FIRST) } }],
    [4, 1, { type: "message.started", item: 1, data: { agentId: "actor" } }],
    [
      5,
      2,
      {
        type: "message.completed",
        item: 1,
        data: { agentId: "actor", content: textOf(FIRST, 0), interim: true },
      },
    ],
    [6, 2, { type: "tool.requested", op: 2, data: toolCall(FIRST, 0) }],
    [7, 2, { type: "tool.requested", op: 3, data: toolCall(FIRST, 1) }],
    [8, 3, { type: "tool.completed", op: 2, data: { result: null } }],
    [10, 8, { type: "tool.completed", op: 3, data: { result: null } }],
    [11, 8, { type: "message.started", item: 4, data: { agentId: "actor" } }],
    [13, 12, { type: "message.reset", item: 4, data: { reason: "interrupted" } }],
    [14, 14, { type: "message.completed", item: 4, data: { agentId: "actor", content: textOf(FIRST, 1) } }],
    [15, 14, { type: "turn.completed", data: {} }],
  ]);
  const second = facts("turn_b", [
    [16, 18, { type: "turn.started", data: { clientId: "b", agentId: "actor" } }],
    [17, 18, { type: "message.user", item: 0, data: { clientId: "b", content: contentOf(SECOND) } }],
    [18, 18, { type: "message.started", item: 1, data: { agentId: "actor" } }],
    [20, 29, { type: "message.reset", item: 1, data: { reason: "interrupted" } }],
    [21, 30, { type: "message.completed", item: 1, data: { agentId: "actor", content: textOf(SECOND, 0) } }],
    [22, 30, { type: "turn.completed", data: {} }],
  ]);
  const frames = [...first, ...second];
  const upTo = (after: number, last: number) => frames.filter(({ seq = 0 }) => seq > after && seq <= last);

  history.messages = [sent(FIRST, "socket", at(0)), sent(SECOND, "post", at(17))];
  history.acknowledgements = [
    { key: "a", turnId: "turn_a", at: at(1) },
    { key: "a", turnId: "turn_a", at: at(7) },
    { key: "b", turnId: "turn_b", at: at(18) },
  ];
  history.kills = [
    { at: at(5), readyAt: at(6) },
    { at: at(10), readyAt: at(11) },
    { at: at(20), readyAt: at(21) },
  ];
  history.hits = [
    modelHit("a", 0, at(1), at(2), true),
    toolHit(FIRST, 0, at(2), at(3), true),
    toolHit(FIRST, 1, at(2), at(5) + 1, false),
    toolHit(FIRST, 1, at(7), at(8), true),
    modelHit("a", 1, at(8), at(10) + 1, false),
    modelHit("a", 1, at(12), at(14), true),
    modelHit("b", 0, at(18), at(20) + 1, false),
    modelHit("b", 0, at(29), at(30), true),
  ];
  history.connections = [
    connection(null, at(2), [
      snapshot(),
      ...upTo(1, 4),
      delta("turn_a", 1, 0, textOf(FIRST, 0)),
      ...upTo(4, 8),
    ]),
    connection(8, at(9), [...upTo(8, 11), delta("turn_a", 4, 0, piecesOf(FIRST, 1)[0] ?? "")]),
    connection(11, at(13), [
      ...upTo(11, 13),
      delta("turn_a", 4, 0, piecesOf(FIRST, 1)[0] ?? ""),
      delta("turn_a", 4, piecesOf(FIRST, 1)[0]?.length ?? 0, piecesOf(FIRST, 1)[1] ?? ""),
      ...upTo(13, 15),
    ]),
    {
      conversation: CONVERSATION,
      client: "stream a",
      scope: { of: "turn", key: "a" },
      frames: upTo(1, 11).map((frame) => ({ at: Date.parse(frame.time), frame })),
    },
  ];
  history.shown = [
    { turnId: "turn_a", text: "" },
    { turnId: "turn_a", text: piecesOf(FIRST, 1)[0] ?? "" },
  ];
  history.finals = [final(frames)];
  return history;
}

function sent(script: Script, manner: SentMessage["manner"], at: number): SentMessage {
  return { conversation: CONVERSATION, script, manner, at };
}

function facts(turnId: string, list: readonly [seq: number, second: number, fact: Fact][]): Frame[] {
  return list.map(([seq, second, { type, data, item, op }]) => {
    const ids = {
      ...(item === undefined ? {} : { messageId: `msg_${turnId}_${item}` }),
      ...(op === undefined ? {} : { operationId: operation(turnId, op) }),
    };
    const time = new Date(BEGIN + second * 1_000).toISOString();
    // SAFETY: the facts above match their types.
    return { v: 1, seq, type, turnId, ...ids, time, data } as Frame;
  });
}

function operation(turnId: string, item: number): string {
  return `op_${turnId}_${item}`;
}

function toolCall(script: Script, index: number) {
  const call = callName(script, 0, index);
  return {
    name: script.rounds[0]?.[index],
    input: { url: `http://127.0.0.1/tool?call=${encodeURIComponent(call)}` },
    async: false,
  };
}

function delta(turnId: string, item: number, offset: number, text: string): Frame {
  const time = new Date(BEGIN).toISOString();
  return {
    v: 1,
    type: "message.delta",
    turnId,
    messageId: `msg_${turnId}_${item}`,
    time,
    data: { offset, text },
  };
}

function snapshot(): Frame {
  const conversation = {
    id: CONVERSATION,
    title: null,
    status: "active",
    gate: "idle",
    turns: "parallel",
    agentId: "actor",
    projectId: "default",
    participants: [],
    createdAt: new Date(BEGIN).toISOString(),
  } as const;
  const data = {
    conversation: { ...conversation, participants: [] },
    turns: [],
    messages: [],
    partials: [],
    operations: [],
  };
  return { v: 1, seq: 1, type: "snapshot", time: conversation.createdAt, data };
}

function connection(from: number | null, at: number, frames: Frame[]): History["connections"][number] {
  return {
    conversation: CONVERSATION,
    client: "socket",
    scope: { of: "conversation", from },
    frames: frames.map((frame) => ({ at, frame })),
  };
}

function modelHit(key: string, call: number, at: number, endedAt: number, answered: boolean): Hit {
  return { kind: "model", key, call, at, endedAt, answered };
}

function toolHit(script: Script, index: number, at: number, endedAt: number, answered: boolean): Hit {
  const call = callName(script, 0, index);
  const effect = script.rounds[0]?.[index] ?? "once";
  const operationId = operation(`turn_${script.key}`, index + 2);
  return { kind: "tool", key: script.key, effect, call, operationId, at, endedAt, answered };
}

/** The journal contains the facts of the frames, and entries without a frame. */
function final(frames: Frame[]): FinalState {
  const silent = [
    { seq: 1, type: "conversation.started" },
    { seq: 9, type: "turn.resumed", turnId: "turn_a" },
    { seq: 12, type: "turn.resumed", turnId: "turn_a" },
    { seq: 19, type: "turn.resumed", turnId: "turn_b" },
  ];
  const told = frames.map(({ seq = 0, type, turnId = "" }) => ({ seq, type, turnId }));
  const time = new Date(BEGIN).toISOString();
  const said = (turnId: string, role: "user" | "agent", content: string) => ({
    id: `msg_${turnId}_${role}`,
    turnId,
    role,
    content,
    createdAt: time,
  });
  return {
    conversation: CONVERSATION,
    readAt: BEGIN + 40_000,
    journal: [...silent, ...told].sort((a, b) => a.seq - b.seq).map((entry) => ({ ...entry, time })),
    frames,
    transcript: [
      said("turn_a", "user", contentOf(FIRST)),
      said("turn_a", "agent", textOf(FIRST, 1)),
      said("turn_b", "user", contentOf(SECOND)),
      said("turn_b", "agent", textOf(SECOND, 0)),
    ],
  };
}
