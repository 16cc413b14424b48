/** A log with ten events and four messages for each conversation, in Node's SQLite in a file. Deterministic, except for the times. */
import { statSync } from "node:fs";
import { LogReader } from "../../src/agents/event-log/log-reader.ts";
import { LogStore } from "../../src/agents/event-log/log-store.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { PublishedEntry, PublishedText } from "../../src/protocol/event-log.ts";
import type { EntryType } from "../../src/protocol/journal.ts";

const BEGIN = Date.parse("2026-01-01T00:00:00Z");
/** Milliseconds between two turns. */
const STEP = 30_000;
const TYPES = ["turn.started", "message.user", "message.started", "message.completed"] as const;
const AGENTS = 50;
const USERS = 5_000;
const READS = 200;
/** Publications of one transaction. */
const TOGETHER = 200;
/** Publications that are measured, each in its own transaction. */
const ALONE = 500;

export interface Measured {
  metric: string;
  unit: "ms" | "MB" | "count";
  value: number;
}
const PAGE = { limit: 50, order: "desc" } as const;

/** The processor time of this thread, in milliseconds. It does not depend on other programs. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** A generator of numbers below 1. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

export async function measure(file: string, conversations: number): Promise<Measured[]> {
  const database = new NodeSqlDatabase(file);
  database.run("PRAGMA journal_mode = WAL");
  database.run("PRAGMA synchronous = OFF");
  let now = BEGIN;
  const store = new LogStore(
    { database, keyValue: new NodeKeyValue(database) },
    () => now,
    () => undefined,
  );
  const reader = new LogReader(database, store);
  const random = numbers(7);
  const pick = (count: number) => Math.floor(random() * count);
  // Frequent words are more frequent, as in texts.
  const word = () => `word${Math.floor(20_000 ** random())}`;
  const publish = (turn: number) => {
    const conversation = turn % conversations;
    now = BEGIN + turn * STEP;
    const [agentId, user] = [`agent-${conversation % AGENTS}`, `user-${conversation % USERS}`];
    const ids = { turnId: `turn_${turn}`, agentId, userId: user, at: now };
    const text = (role: PublishedText["role"], item: number): PublishedText[] => [
      { ...ids, messageId: `msg_${turn}_${item}`, role, text: Array.from({ length: 30 }, word).join(" ") },
    ];
    const end: EntryType = pick(100) === 0 ? "turn.failed" : "turn.completed";
    const entries = [...TYPES, end].map(
      (type, item): PublishedEntry => ({
        ...{ type, at: now, agentId, turnId: ids.turnId, correlationId: `corr-${turn}` },
        ...(item === 0 ? { texts: text("user", 0) } : item === 4 ? { texts: text("agent", 1) } : {}),
      }),
    );
    const from = Math.floor(turn / conversations) * entries.length + 1;
    const newest = from + entries.length - 1;
    store.publish({
      ...{ conversationId: `conv_${conversation}`, projectId: "default", readers: [user] },
      ...{ from, newest, entries },
    });
  };
  const turns = conversations * 2;
  // Many publications of one transaction take less time.
  for (let turn = 0; turn < turns - ALONE; turn += TOGETHER)
    database.transaction(() => {
      for (let n = turn; n < Math.min(turn + TOGETHER, turns - ALONE); n++) publish(n);
    });
  const begun = cpuMs();
  for (let turn = turns - ALONE; turn < turns; turn++) publish(turn);
  const perPublication = (cpuMs() - begun) / ALONE;
  const week = () => {
    const since = BEGIN + pick(conversations * 2) * STEP;
    return { since, until: since + 7 * 86_400_000 };
  };
  const searchFor = (more: object, as?: string) => reader.search({ q: `${word()} ${word()}`, ...more }, as);
  const reads: Record<string, () => unknown> = {
    "newest events": () => reader.events({}, PAGE),
    "events of a conversation": () => reader.events({ conversation: `conv_${pick(conversations)}` }, PAGE),
    "events of a correlation": () => reader.events({ correlation: `corr-${pick(conversations)}` }, PAGE),
    "events of an agent in a week": () => reader.events({ agent: `agent-${pick(AGENTS)}`, ...week() }, PAGE),
    "failed turns in a week": () => reader.events({ types: ["turn.failed"], ...week() }, PAGE),
    "failed turns of an agent": () =>
      reader.events({ types: ["turn.failed"], agent: `agent-${pick(AGENTS)}` }, PAGE),
    "messages with two words": () => searchFor({}),
    "messages with a frequent word": () => reader.search({ q: "word1" }, undefined),
    "messages with a rare word": () => reader.search({ q: `word${10_000 + pick(10_000)}` }, undefined),
    "own messages": () => searchFor({}, `user-${pick(USERS)}`),
    "messages of an agent in a week": () => searchFor({ agent: `agent-${pick(AGENTS)}`, ...week() }),
  };
  const rows = Object.entries(reads).map(([name, read]) => {
    const times = Array.from({ length: READS }, () => {
      const start = cpuMs();
      read();
      return cpuMs() - start;
    }).sort((a, b) => a - b);
    return { metric: `p95 of ${name}`, unit: "ms" as const, value: times[Math.floor(READS * 0.95)] ?? 0 };
  });
  const size = statSync(file).size / 1e6;
  return [
    ...rows,
    { metric: "events", unit: "count", value: store.last },
    { metric: "size of the log", unit: "MB", value: size },
    { metric: "one publication", unit: "ms", value: perPublication },
  ];
}
