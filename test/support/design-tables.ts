/** The session tables of the Agents SDK's memory design, by the statements that the design publishes. */
import type { SqlDatabase } from "../../src/ports/sql-database.ts";

export const DESIGN_SESSIONS = `CREATE TABLE IF NOT EXISTS cf_agents_sessions (
  id TEXT PRIMARY KEY NOT NULL,
  agent_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,  -- ms since epoch
  updated_at INTEGER NOT NULL,  -- ms since epoch
  metadata TEXT                 -- JSON
)`;

export const DESIGN_EVENTS = `CREATE TABLE IF NOT EXISTS cf_agents_events (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,         -- monotonic insertion order within session
  action TEXT NOT NULL,
  content TEXT,
  metadata TEXT,                -- JSON
  created_at INTEGER NOT NULL   -- ms since epoch
)`;

export const DESIGN_INDEX = `CREATE INDEX IF NOT EXISTS idx_events_session_seq
  ON cf_agents_events(session_id, seq)`;

const INSERT_SESSION = `INSERT INTO cf_agents_sessions (id, agent_id, created_at, updated_at, metadata)
  VALUES (?, ?, ?, ?, ?)`;
const INSERT_EVENT = `INSERT INTO cf_agents_events (id, session_id, seq, action, content, metadata, created_at)
  VALUES (?, ?, ?, ?, ?, ?, ?)`;

/** Writes a session with an event of every action and a deleted one, and a session without events. */
export function writeDesignRows(db: SqlDatabase): void {
  db.run(INSERT_SESSION, "s-1", "helper", 10, 30, '{"topic":"weather"}');
  db.run(INSERT_SESSION, "s-2", "helper", 20, 20, null);
  const call = '{"toolCalls":[{"id":"c","name":"weather","arguments":{"city":"Oslo"}}]}';
  const rows: [string, string, string | null, string | null][] = [
    ["e-0", "system_instruction", "Be brief.", null],
    ["e-1", "user_message", "Weather?", null],
    ["e-2", "tool_call_request", null, call],
    ["e-3", "tool_result", "rain", '{"toolCallId":"c","toolName":"weather","isSuccess":true}'],
    ["e-4", "agent_message", "It rains.", '{"model":"llama"}'],
    ["e-5", "compaction", "They spoke of rain.", '{"compactedEventCount":2}'],
    ["e-6", "user_message", "gone", null],
    ["e-7", "user_message", "Thanks!", null],
  ];
  rows.forEach(([id, action, content, metadata], seq) => {
    db.run(INSERT_EVENT, id, "s-1", seq, action, content, metadata, 100 + seq);
  });
  db.run("DELETE FROM cf_agents_events WHERE id = 'e-6'");
}

/** The events of `s-1`, as they are read. */
export const DESIGN_READ = [
  { id: "e-0", seq: 0, timestamp: 100, action: "system_instruction", content: "Be brief." },
  { id: "e-1", seq: 1, timestamp: 101, action: "user_message", content: "Weather?" },
  {
    ...{ id: "e-2", seq: 2, timestamp: 102, action: "tool_call_request", content: "" },
    toolCalls: [{ id: "c", name: "weather", arguments: { city: "Oslo" } }],
  },
  {
    ...{ id: "e-3", seq: 3, timestamp: 103, action: "tool_result", content: "rain" },
    ...{ toolCallId: "c", toolName: "weather", isSuccess: true },
  },
  { id: "e-4", seq: 4, timestamp: 104, action: "agent_message", content: "It rains.", model: "llama" },
  {
    ...{ id: "e-5", seq: 5, timestamp: 105, action: "compaction", content: "They spoke of rain." },
    compactedEventCount: 2,
  },
  { id: "e-7", seq: 7, timestamp: 107, action: "user_message", content: "Thanks!" },
].map((event) => ({ sessionId: "s-1", ...event }));
