/** The capabilities that are built: number, name, and the statement that a test proves. */
export interface Capability {
  row: string;
  name: string;
  statement: string;
}

const rows: [row: string, name: string, statement: string][] = [
  [
    "A1",
    "Persona",
    "Created in a library, versioned; fields round-trip; `recentTurnsLimit` is 20 where it is not given.",
  ],
  ["A2", "Persona inline or by reference", "Both forms run a turn with the right system prompt."],
  ["A4", "Model profile", "Changing one alters a new conversation's request without touching the persona."],
  ["A6", "A tool binds a task", "The task's output reaches the model."],
  [
    "A7",
    "Tool input is validated",
    "Bad input gives INVALID_INPUT, the target never runs, the loop goes on.",
  ],
  ["A9", "Unknown tool", "A NOT_FOUND result is recorded as a move, and the turn completes."],
  ["A10", "One actor per conversation", "Two conversations interleave and share no state."],
  ["A12", "Streaming", "The first token reaches the client before the call has finished."],
  ["A13", "Streams per message", "Turns that stream at once are told apart by message id and do not mix."],
  ["A14", "A sync tool blocks", "No second model call before its result; the second has call and result."],
  [
    "A15",
    "Several tools in one reply",
    "One continuation after all results; one assistant message, N results.",
  ],
  [
    "A27",
    "Turn record",
    "Caller, input, what it replies to, run ids, and times of creation and completion are there.",
  ],
  ["A29", "One user message, any number of agent messages", "The invariant holds."],
  [
    "A31",
    "Moves persist",
    "Numbered from 1, with reasoning, tool call, result and raw reply; they survive a crash in mid-turn.",
  ],
  ["A32", "The final move's reasoning is the agent's message", "They are equal."],
  ["A33", "maxMovesPerTurn", "An endlessly tool-calling model ends with a text, and the turn completes."],
  [
    "A42",
    "Model retry",
    "Two refusals, then success: three calls and one answer; an authentication error: one call.",
  ],
  ["A43", "Model timeout", "Counts as a failure that is tried again."],
  ["A44", "Failure in mid-stream", "The client sees a reset; the final text has no doubled beginning."],
  ["A68", "WebSocket and hibernation", "Two clients both receive, and still do after hibernation."],
  ["A71", "Decisions are pure", "Planning has no I/O and gives equal decisions on repeat."],
  [
    "A72",
    "Crash recovery",
    "A crash at each phase: the turn reaches its end, and no tool takes effect twice.",
  ],
  ["A73", "Callbacks are idempotent", "The same result delivered twice changes nothing."],
  ["B1", "Isolated histories", "A model sees nothing of another conversation."],
  ["B7", "Turn latency", "Completed minus created is available."],
  ["C20", "RequestOutcome", "Attempts, category and rate-limit feedback, once per call."],
  ["C21", "Retry-After", "The delay equals the header, is capped, and a deadline prevents sleeping."],
  ["C22", "Abort", "A canceled call, after a single attempt."],
  ["C23", "Interceptor order", "Before in order, after reversed; a throw before sending aborts."],
  [
    "F12",
    "Versioning",
    "A version for each content; pinned and latest; what runs is unaffected, after an eviction too.",
  ],
  [
    "G1",
    "Two commands",
    "On a fresh machine one runs the runtime, which answers a message without a key; the other passes the tests.",
  ],
  [
    "G2",
    "Package",
    "The packed archive in an empty project: the README's example, typed as printed, runs and deploys with `--dry-run`.",
  ],
  [
    "G3",
    "Supervised start",
    "Killing any process of `npm start`, or the group, leaves no orphan; the next start works and the state is intact.",
  ],
  [
    "G4",
    "Schema migration",
    "Actors of an older release open under today's code, turns in flight included; the recorded logs of each release are replayed.",
  ],
  [
    "G5",
    "Protocol version",
    "An unknown version or type is answered with a typed error; old clients keep working.",
  ],
  [
    "G6",
    "Rate limits, CORS, body limits",
    "Per principal and per conversation, configurable, with typed answers.",
  ],
  ["G7", "Tenants", "Two tenants with equal ids share nothing, and every list is scoped."],
  [
    "H1",
    "Crash-transparent turns",
    "A crash before and after every crossing of a port: the final transcript equals that of the undisturbed run.",
  ],
  ["H5", "Constant cost", "The budgets of statements, rows and bytes hold, at 10 messages as at 10 000."],
  ["M1", "Tables", "Both exist at construction, and constructing again is safe."],
  [
    "M2",
    "createSession, getSession, listSessions",
    "An id is answered; null if unknown; newest first; metadata is JSON.",
  ],
  ["M3", "deleteSession", "Session and events are gone, others are intact, and it is atomic."],
  ["M4", "appendEvents", "Unknown sessions throw; numbers run from 0 without a gap; all or nothing."],
  ["M5", "Numbers are never reused", "Not after the newest events were deleted."],
  ["M6", "loadEvents", "The 50 most recent ascending by default; tail, since and actions choose others."],
  ["M7", "deleteEvents", "Only the named ids of that session."],
  ["M8", "hydrate and dehydrate", "A round trip for every action; an unknown one stays inert."],
  ["M9", "Structured tool calls", "They survive storing, loading and the adapter."],
  ["M10", "Failure flag", "`isSuccess: false` survives the round trip."],
  ["M11", "eventToMessage", "Six mappings; null leaves an event out."],
  ["M12", "messageToEvent", "The inverse, with fresh ids and a placeholder for the number."],
  [
    "M13",
    "WorkingContext",
    "`getNewMessages` gives only what was added; arrays that were given in are not kept.",
  ],
  ["M14", "buildWorkingContext is pure", "Usable elsewhere with events loaded by RPC."],
  ["M15", "Custom mapper", "It overrides, and leaves out."],
  ["M16", "persistWorkingContext", "New messages only; calling twice does not duplicate."],
  [
    "M18",
    "Workers AI format",
    "One system message; calls as functions with stringified arguments; no stray keys.",
  ],
  ["M19", "RPC-safe results", "Every RPC method answers plain data."],
  ["M20", "Pair integrity", "A window never begins with a result whose request was cut off."],
  ["M21", "Large content", "3 MB come back exactly; window reads stay bounded."],
  ["M22", "Compaction event", "Its summary appears as system; what it compacts is not sent."],
  ["M23", "Timestamps", "Whole milliseconds throughout."],
  ["M24", "destroy", "The tables are gone."],
];

export const CAPABILITIES: readonly Capability[] = rows.map(([row, name, statement]) => ({
  row,
  name,
  statement,
}));
