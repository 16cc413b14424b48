/**
 * The list of capabilities: number, name, and the whole statement that tests prove. A test on workerd proves each row.
 * Rows of pure libraries are exempt. If a part of a statement is not built yet, `missing` names the part.
 */
export interface Capability {
  row: string;
  name: string;
  statement: string;
  /** The part of the statement that is not built yet. */
  missing?: string;
  /** The capability is a library without an actor. Tests on Node prove it. */
  isPure?: true;
}

export const CAPABILITIES: readonly Capability[] = [
  {
    row: "A1",
    name: "Persona",
    statement: "Created in a library, versioned; fields round-trip; `recentTurnsLimit` defaults to 20.",
  },
  {
    row: "A2",
    name: "Persona inline or by reference",
    statement: "Both forms run a turn with the right system prompt.",
  },
  {
    row: "A3",
    name: "Projects",
    statement:
      "Empty projectIds rejected; access to another project's artifact → PERMISSION_DENIED; delegating to, or looping in, an agent that shares no project → PERMISSION_DENIED.",
  },
  {
    row: "A4",
    name: "Model profile",
    statement: "Changing a profile alters a new conversation's request without touching the persona.",
  },
  {
    row: "A5",
    name: "An agent is an actor with a memory",
    statement:
      "Two conversations of one agent: memory written in one is found from the other; `getAgentByName(env.Agent, id)` answers identity, persona and memory calls.",
  },
  {
    row: "A6",
    name: "A tool binds a task, a workflow or an agent",
    statement:
      "One scenario per target returns the target's output to the model; the seed's tool objects as printed (`targetType`, `targetId`, ids with underscores) work.",
  },
  {
    row: "A7",
    name: "Tool input is validated",
    statement: "Bad input → INVALID_INPUT result, target never invoked, loop continues.",
  },
  {
    row: "A8",
    name: "inputMapping",
    statement: "Mapped target sees mapped keys; without mapping sees identical input.",
  },
  { row: "A9", name: "Unknown tool", statement: "NOT_FOUND result recorded as a move; turn completes." },
  {
    row: "A10",
    name: "One actor per conversation",
    statement: "Two conversations interleave with no shared state.",
  },
  {
    row: "A11",
    name: "Fixed order of the loop",
    statement: "Event order: turn.started, context_assembly, llm, tool, message, completed, extraction.",
  },
  { row: "A12", name: "Streaming", statement: "First token reaches the client before the call finishes." },
  {
    row: "A13",
    name: "Streams per message",
    statement: "Two turns streaming concurrently are distinguishable by message id and not mixed.",
  },
  {
    row: "A14",
    name: "A sync tool blocks",
    statement: "No second LLM call before its result; the second has call+result.",
  },
  {
    row: "A15",
    name: "Several tools in one reply",
    statement: "One continuation after all results; one assistant message, N results.",
  },
  {
    row: "A16",
    name: "Sync and async mixed",
    statement: "Continuation waits for sync only; async shown as pending.",
  },
  {
    row: "A17",
    name: "An immediate reply to async work",
    statement: "Agent message emitted while the operation runs; turn active.",
  },
  {
    row: "A18",
    name: "Async completion in the same turn",
    statement: "Follow-up message has the same turn_id; no new turn.",
  },
  {
    row: "A19",
    name: "Several async operations",
    statement: "Turn completes only after the last; two near-simultaneous results lose nothing.",
  },
  {
    row: "A20",
    name: "Parallel turns",
    statement: "B completes while A is active; A later completes; neither has the other's moves.",
  },
  {
    row: "A21",
    name: "Awareness of what is in flight",
    statement: "B's assembly input lists A's pending operation.",
  },
  {
    row: "A22",
    name: "An async failure is surfaced",
    statement: "Failure → LLM call on same turn + message; `toolFailures` = 1.",
  },
  {
    row: "A23",
    name: "Conversation statuses",
    statement:
      "Waiting while only operations pend; active on input; completed only on explicit action; failed when it cannot operate (its agent was deleted), input is then refused.",
  },
  { row: "A24", name: "No timeouts", statement: "After simulated 60 days a message works." },
  {
    row: "A25",
    name: "A completed conversation is closed",
    statement: "Message rejected with CONVERSATION_CLOSED.",
  },
  { row: "A26", name: "Multi-party participants", statement: "Users and agents listed; join/leave events." },
  {
    row: "A27",
    name: "Turn record",
    statement: "Caller union, input, reply_to, run ids, created/completed times present.",
  },
  {
    row: "A28",
    name: "Three kinds of callers",
    statement: "User, workflow, agent turns each carry the right ids (agent id, not conversation id).",
  },
  {
    row: "A29",
    name: "One user message, any number of agent messages",
    statement: "Invariant holds over all tests.",
  },
  { row: "A30", name: "Replies to a message", statement: "Assembly gets the replied-to message." },
  {
    row: "A31",
    name: "Moves persist",
    statement: "Sequence 1..n, reasoning, tool call, result, raw; survive eviction mid-turn.",
  },
  { row: "A32", name: "The final move's reasoning is the agent's message", statement: "Equality asserted." },
  {
    row: "A33",
    name: "maxMovesPerTurn",
    statement: "With limit 2 and an endlessly tool-calling LLM, turn ends with a text and completes.",
  },
  {
    row: "A34",
    name: "Window of recent turns",
    statement: "With limit 3 and 5 turns, assembly sees last 3; active turns never rolled off.",
  },
  {
    row: "A35",
    name: "Input of the context assembly",
    statement:
      "Keys conversation_id, user_message, recent_turns, model_profile, tool_definitions; optional memory samples; the turn names the operation or run of its hooks.",
  },
  {
    row: "A36",
    name: "Output of the context assembly",
    statement: "Provider request equals the output of the hook (a task; a workflow once they exist).",
  },
  { row: "A37", name: "Providers of a library", statement: "Same library runs against two providers." },
  {
    row: "A38",
    name: "A context assembly that fails",
    statement:
      "3 attempts with 100/200 ms gaps, then FAIL_TURN, zero LLM calls, client error; 30 s an attempt (fake clock).",
  },
  {
    row: "A39",
    name: "Input of the memory extraction",
    statement: "Transcript has message, calls, results; memory row appears with the agent's id.",
  },
  {
    row: "A40",
    name: "A memory extraction that fails",
    statement:
      "Turn stays completed; issues.memoryExtractionFailed; event; turn.finalized failed; 3 attempts of 30 s; three failures in a row of one agent emit an event that the console shows.",
  },
  {
    row: "A41",
    name: "Concurrent extraction",
    statement: "Two conversations extract at once; both memories present.",
  },
  {
    row: "A42",
    name: "Model retry",
    statement: "Two 503s then success: 3 calls, one answer; auth error: 1 call.",
  },
  { row: "A43", name: "Model timeout", statement: "120 s (fake clock) counts as a retryable failure." },
  {
    row: "A44",
    name: "Failure in mid-stream",
    statement: "Client sees reset; final text has no duplicated prefix.",
  },
  {
    row: "A45",
    name: "Retries of tools",
    statement: "MaxAttempts 3 with infra error retried; business error tried once.",
  },
  {
    row: "A46",
    name: "Error code mapping",
    statement: "Each of the seven codes is produced by a test.",
  },
  {
    row: "A47",
    name: "Delegate",
    statement: "Child sees only given input; caller alone gets the response; not a participant.",
  },
  {
    row: "A48",
    name: "Decline and crash of a delegate",
    statement: "AGENT_DECLINED retriable false / EXECUTION_FAILED retriable true.",
  },
  {
    row: "A49",
    name: "An agent joins by loop_in",
    statement: "Joins, sees history, answers in its own persona, visible to all, stays until removed.",
  },
  {
    row: "A50",
    name: "The mode of a call",
    statement: "Tool default delegate overridden to loop_in; async ignored for loop_in.",
  },
  {
    row: "A51",
    name: "Nodes with agents",
    statement:
      "Token waits `waiting_for_agent`, resumes with the output mapped; a node with `loop_in` invites into the conversation that started the run, without one a typed error.",
  },
  { row: "A52", name: "The manager pattern", statement: "Manager delegates to two agents and synthesises." },
  { row: "A53", name: "Strategies as tools", statement: "A debate workflow invoked like any tool." },
  {
    row: "A54",
    name: "Write a memory",
    statement: "Row, vector; ≤4096 bytes inline, 4097 → R2, content empty.",
  },
  { row: "A55", name: "Read a memory", statement: "Returns content in both cases." },
  {
    row: "A56",
    name: "Search memories",
    statement: "Only this agent's; high significance can outrank slightly higher relevance.",
  },
  {
    row: "A57",
    name: "Change and delete memories",
    statement: "All stores consistent, incl. crossing the size threshold.",
  },
  {
    row: "A58",
    name: "The agent is the one that was called",
    statement: "Input naming another agent's id is ignored.",
  },
  { row: "A59", name: "Nothing is pruned", statement: "1000 writes, 1000 rows." },
  { row: "A60", name: "Types are free", statement: "Filter by arbitrary type." },
  {
    row: "A61",
    name: "A called agent reads no transcript",
    statement: "Assembly for delegate contains no Messages rows.",
  },
  {
    row: "A62",
    name: "An index of the knowledge",
    statement: "Index in the prompt; details fetched through `memory.read`, `artifact.read` and `repo.read`.",
  },
  {
    row: "A63",
    name: "A branch for each conversation",
    statement:
      "Branch `{prefix}/conv-{id}` from the default branch; the prefix is a setting, `dramatis` by default. It begins at the first use of the repository.",
  },
  {
    row: "A64",
    name: "A shell on the branch",
    statement:
      "A command runs in the workspace of its conversation, on that branch. A command in the background reports its progress and may take 24 hours.",
    missing: "A run in a real container of Cloudflare: tests run the container's program on this machine.",
  },
  {
    row: "A65",
    name: "Isolated branches",
    statement: "Two conversations write the same file, no clash.",
  },
  {
    row: "A66",
    name: "A workflow's call uses the branch of its run",
    statement: "No new branch exists.",
  },
  {
    row: "A67",
    name: "Merges are explicit",
    statement: "Completion alone does not move the default branch.",
  },
  {
    row: "A68",
    name: "WebSocket and hibernation",
    statement: "Two clients both receive; still after hibernation.",
  },
  {
    row: "A71",
    name: "Decisions are pure",
    statement: "Planning functions have no I/O and equal outputs on repeat.",
  },
  {
    row: "A72",
    name: "Crash recovery",
    statement: "Evict at each phase; turn reaches a terminal state; no duplicate tool effect.",
  },
  {
    row: "A73",
    name: "Callbacks are idempotent",
    statement:
      "Same result delivered twice changes nothing; `handleTask|Workflow|AgentResult|Error` exist as RPC.",
  },
  {
    row: "A74",
    name: "History tool",
    statement:
      "A model reads older turns of its conversation by a tool `history`, paged, within a token budget.",
  },
  {
    row: "A75",
    name: "Metadata of agents",
    statement: "Free `metadata` of an agent round-trips and is projected in D1.",
  },
  {
    row: "A76",
    name: "Search across agents",
    statement: "An operator searches the memories of several agents of the tenant in one request.",
  },
  {
    row: "A77",
    name: "Archive",
    statement:
      "`archive` moves a memory's text to R2 and out of search; `key` names a memory idempotently; retention per persona.",
  },
  { row: "B1", name: "Isolated histories", statement: "No cross-history in assembly." },
  {
    row: "B2",
    name: "Older targets",
    statement: "Accepted as aliases; more than one → MULTIPLE_OWNERS-style error.",
  },
  { row: "B3", name: "Waiting aliases", statement: "MARK_WAITING_FOR_* treated as MARK_WAITING." },
  {
    row: "B4",
    name: "Retrieval in two layers",
    statement: "Baseline assembly plus memory tools during reasoning.",
  },
  {
    row: "B5",
    name: "Retention per agent",
    statement:
      "Facts persist until updated; consolidation done by a library task (a workflow once they exist).",
  },
  {
    row: "B6",
    name: "Pure extraction output",
    statement:
      "An extraction hook that returns `MemoryOperation[]` (write/update/delete/archive) is applied by the platform; a pure hook gets the relevant memories as input; applied through WRITE_MEMORY and UPDATE_MEMORY.",
  },
  { row: "B7", name: "Turn latency", statement: "Latency_ms = completed − created is available." },
  {
    row: "B8",
    name: "Linkage",
    statement: "User_message_id and agent_message_id obtainable per turn; and the run id of each operation.",
  },
  {
    row: "B9",
    name: "Contradictions",
    statement: "Extraction updates, not duplicates, a contradicted fact.",
  },
  { row: "B10", name: "No new turn for an async result", statement: "Superseded; A18 governs." },
  {
    row: "C1",
    name: "createConversation with and without messages",
    statement: "Stored; hook called once.",
    isPure: true,
  },
  {
    row: "C2",
    name: "getConversation of an unknown id",
    statement: "Null; runTurn on it fails clearly.",
    isPure: true,
  },
  {
    row: "C3",
    name: "Store interface",
    statement: "Same contract suite passes for in-memory and DO-SQLite.",
  },
  {
    row: "C4",
    name: "getMessages with limit and order",
    statement: "Default ascending, limit honoured both orders.",
    isPure: true,
  },
  {
    row: "C5",
    name: "A turn succeeds",
    statement: "Status running→succeeded, in/out messages, records, updatedAt.",
    isPure: true,
  },
  {
    row: "C6",
    name: "A turn fails",
    statement: "Failed + error{message, provider}, afterTurnError, rethrow.",
    isPure: true,
  },
  {
    row: "C7",
    name: "HistoryBuilder limits messages",
    statement: "Adapter sees only the selected ones.",
    isPure: true,
  },
  {
    row: "C8",
    name: "Planner by hints",
    statement: "Different hints choose different provider/model.",
    isPure: true,
  },
  { row: "C9", name: "Default planner", statement: "Configured default model used.", isPure: true },
  { row: "C10", name: "Unknown provider", statement: "Turn failed, error names it.", isPure: true },
  { row: "C11", name: "Order of hooks", statement: "Created, before, success/error; awaited.", isPure: true },
  {
    row: "C12",
    name: "Streaming falls back",
    statement: "Adapter without streamChat uses sendChat.",
    isPure: true,
  },
  {
    row: "C13",
    name: "Chunks of a stream",
    statement: "Deltas, completion flag, final usage.",
    isPure: true,
  },
  {
    row: "C14",
    name: "Call record",
    statement: "Id, timings, usage, outcome, correlation fields.",
    isPure: true,
  },
  { row: "C15", name: "Run id and labels", statement: "`conv:turn`, four labels exact.", isPure: true },
  { row: "C16", name: "parentCorrelationId", statement: "Equals previous turn's run id.", isPure: true },
  {
    row: "C17",
    name: "Extensions",
    statement: "Ai.provider, ai.model, ai.request_type, ai.streaming set.",
    isPure: true,
  },
  { row: "C18", name: "No dependency on an HTTP core", statement: "Core builds without it.", isPure: true },
  {
    row: "C19",
    name: "Several providers in one conversation",
    statement: "Turn 1 provider X, turn 2 Y; history translated.",
    isPure: true,
  },
  {
    row: "C20",
    name: "RequestOutcome",
    statement: "Attempts, category, rate-limit feedback once per call.",
    isPure: true,
  },
  {
    row: "C21",
    name: "Retry-After",
    statement: "Delay equals header; capped; deadline prevents sleeping.",
    isPure: true,
  },
  { row: "C22", name: "Abort", statement: "Canceled, single attempt.", isPure: true },
  {
    row: "C23",
    name: "Interceptor order",
    statement: "Before in order, after reversed; before throw aborts.",
  },
  {
    row: "M1",
    name: "Tables",
    statement:
      "In a plain `SessionAgent` both tables exist at construction with at least the seed's columns, primary key (session_id, seq) in place of the index; repeated construction safe; `Conversation` keeps sessions in kv behind the same methods.",
  },
  {
    row: "M2",
    name: "createSession, getSession, listSessions",
    statement: "Id returned; null if unknown; newest first; metadata JSON.",
  },
  { row: "M3", name: "deleteSession", statement: "Session and events gone; other sessions intact; atomic." },
  {
    row: "M4",
    name: "appendEvents",
    statement: "Unknown session throws; seq 0.. contiguous; incoming seq ignored; all or nothing.",
  },
  { row: "M5", name: "Numbers are never reused", statement: "Delete last event, append: seq not reused." },
  {
    row: "M6",
    name: "loadEvents",
    statement: "Default 50 most recent ascending; tail false; since; actions.",
  },
  { row: "M7", name: "deleteEvents", statement: "Only named ids of that session." },
  {
    row: "M8",
    name: "hydrate and dehydrate",
    statement: "Round trip for six actions, null content, missing metadata, unknown action inert.",
  },
  { row: "M9", name: "Structured tool calls", statement: "Survive store → load → adapter." },
  { row: "M10", name: "Failure flag", statement: "IsSuccess false survives round trip." },
  { row: "M11", name: "eventToMessage", statement: "Six mappings; null skips.", isPure: true },
  {
    row: "M12",
    name: "messageToEvent",
    statement: "Six inverse cases; unique ids; placeholder seq.",
    isPure: true,
  },
  {
    row: "M13",
    name: "WorkingContext",
    statement: "GetNewMessages only added ones; input arrays not aliased.",
    isPure: true,
  },
  {
    row: "M14",
    name: "buildWorkingContext is pure",
    statement: "Usable in a Workflow/Worker with RPC-loaded events.",
  },
  { row: "M15", name: "Custom mapper", statement: "Overrides and skips." },
  {
    row: "M16",
    name: "persistWorkingContext",
    statement: "New messages only; calling twice does not duplicate.",
  },
  {
    row: "M17",
    name: "Concurrent requests",
    statement: "A's user message invisible in B's context until A's turn persists.",
  },
  {
    row: "M18",
    name: "Workers AI format",
    statement: "One system message; tool_calls type function; stringified arguments; no stray keys.",
    isPure: true,
  },
  { row: "M19", name: "RPC-safe results", statement: "Every RPC method returns structured-cloneable data." },
  { row: "M20", name: "Pair integrity", statement: "Window never begins with an orphan tool result." },
  {
    row: "M21",
    name: "Large content",
    statement:
      "A 3 MB tool result is stored over several rows and read back exactly; window reads stay bounded by bytes; actor alive.",
  },
  {
    row: "M22",
    name: "Compaction event",
    statement: "Summary appears as system; the `compactedEventCount` oldest events before it are not sent.",
  },
  { row: "M23", name: "Timestamps", statement: "Ms integers throughout." },
  { row: "M24", name: "destroy", statement: "Tables dropped." },
  {
    row: "M25",
    name: "Model format adapters",
    statement: "Every format exports a `ModelFormatAdapter` (`toModelMessages`) beside its `FormatAdapter`.",
    isPure: true,
  },
  { row: "E1", name: "Three external types", statement: "Others rejected with reason, nothing stored." },
  { row: "E2", name: "Envelope rules", statement: "Each code in §2.1 has a test, incl. flat beside data." },
  {
    row: "E3",
    name: "Correlation",
    statement:
      "Generated if blank, preserved if given, on every derived signal and journal row, in a tool's context, a called agent's conversation, spans and call records.",
  },
  {
    row: "E4",
    name: "Dedup",
    statement: "Same id+correlation applied once; same id, other correlation applied.",
  },
  { row: "E5", name: "Overflow", statement: "Signal emitted, dropped id present, resend succeeds later." },
  {
    row: "E6",
    name: "Drain limit",
    statement: "300 queued: continue_drain used, all applied, cancel can interleave.",
  },
  { row: "E7", name: "Reducer", statement: "Same log → identical state and projections.", isPure: true },
  {
    row: "E8",
    name: "Effects only through instructions",
    statement: "Reducer under a sandbox without I/O.",
    isPure: true,
  },
  {
    row: "E9",
    name: "Intents",
    statement: "Four intents produce four instruction kinds.",
  },
  { row: "E10", name: "An instruction that fails", statement: "Re-ingested as *.failed." },
  {
    row: "E11",
    name: "Lifecycle of a model call",
    statement: "Order exact; assistant.message absent when tools called.",
  },
  { row: "E12", name: "Loop over tools", statement: "Run_llm only after pending empties." },
  { row: "E13", name: "Sync and async calls look alike", statement: "Identical event types." },
  {
    row: "E14",
    name: "Cancel",
    statement: "Status cancelled; tool.cancelled and subagent.stopped with reason; provider aborted.",
  },
  {
    row: "E15",
    name: "While cancelled",
    statement: "User message recorded, no LLM; late llm.completed does not un-cancel.",
  },
  {
    row: "E16",
    name: "Resume",
    statement: "Idle; next message runs; stale results do not replay; not-cancelled → rejected.",
  },
  { row: "E24", name: "Orchestration", statement: "Off: no run_llm; on: run_llm." },
  { row: "E25", name: "Sub-agents", statement: "Fourth child denied; TTL stops; events." },
  {
    row: "E26",
    name: "Policy",
    statement: "Allow and deny, paths, network, environment, sensitive files; the journal has each denial.",
  },
  {
    row: "E27",
    name: "Concurrency and caps",
    statement:
      "Calls over the limit wait; output truncated or failed; schema checked first; repeated time-outs end the use of a tool.",
    missing: "There is no limit of the calls of all conversations of a project together.",
  },
  { row: "F1", name: "Ways behind a node", statement: "§1.5 cases, loop cap boundary." },
  { row: "F2", name: "Fan-ins", statement: "§1.6 including multi-hop branches." },
  { row: "F3", name: "Fan-outs within fan-outs and loops", statement: "Both fan-ins fire, every iteration." },
  { row: "F4", name: "An empty `foreach`", statement: "Continues with empty merge." },
  { row: "F5", name: "Merges", statement: "Five, by index order; only completed." },
  { row: "F6", name: "Time of a fan-in", statement: "Exact boundary." },
  { row: "F7", name: "Arrivals at the same time", statement: "Two simultaneous arrivals: one continuation." },
  {
    row: "F8",
    name: "Isolated branches",
    statement: "No leak before merge; no branch rows remain after; works after eviction.",
  },
  {
    row: "F9",
    name: "Sub-workflows",
    statement: "Chain of 10; failure cascade; duplicate callback ignored.",
  },
  {
    row: "F10",
    name: "Task steps and retries",
    statement: "OnFailure three ways; business retry fresh context.",
  },
  { row: "F11", name: "Questions to people", statement: "Waits, invalid response rejected, valid resumes." },
  {
    row: "F12",
    name: "Versioning",
    statement: "Autoversion hash; pinned vs latest; running work unaffected.",
  },
  {
    row: "F13",
    name: "Mappings and expressions",
    statement: "Function table; prototype access blocked; limits.",
  },
  { row: "F15", name: "Timers", statement: "Many deadlines, one alarm, none lost." },
  {
    row: "G1",
    name: "Two commands",
    statement:
      "Fresh machine with Node ≥ 20: `npm ci && npm start` answers a message with no key; `npm ci && npm test` passes.",
  },
  {
    row: "G2",
    name: "Package",
    statement:
      "`npm pack ./dist` installed into an empty project, README example typed as printed, runs and deploys with `--dry-run`.",
  },
  {
    row: "G3",
    name: "Supervised start",
    statement:
      "Killing any process of `npm start`, or the group, leaves no orphan; the next start works and state is intact.",
  },
  {
    row: "G4",
    name: "Schema migration",
    statement:
      "Actors of an older released version, turns in flight included, open under new code; recorded logs of each release are replayed in the suite.",
  },
  {
    row: "G5",
    name: "Protocol version",
    statement: "Unknown `v` or type is answered with a typed error; old clients keep working.",
  },
  {
    row: "G6",
    name: "Rate limits, CORS, body limits",
    statement: "Per principal and per conversation, configurable, typed answers.",
  },
  {
    row: "G7",
    name: "Tenants",
    statement: "Two tenants with equal ids share nothing; every list is scoped.",
  },
  {
    row: "G8",
    name: "Deletion",
    statement:
      "Deleting a conversation or agent removes it from actors, D1, R2 and vectors; resumable after a crash.",
  },
  {
    row: "G10",
    name: "Tools that the client runs",
    statement: "A tool with target `client` is answered by `tool.result`, survives reload, times out.",
  },
  {
    row: "G11",
    name: "Structured turn output",
    statement: "A turn with a JSON Schema returns validated data or a typed failure.",
  },
  {
    row: "G12",
    name: "Attachments",
    statement: "Images and files by upload, stored by reference, sent in each provider's own form.",
  },
  {
    row: "G13",
    name: "Schedules and webhooks",
    statement: "Start a run or a turn at a time, by cron, by signed webhook; once, across restarts.",
  },
  {
    row: "G14",
    name: "Location",
    statement: "Jurisdiction and location hint per conversation and agent reach the platform.",
  },
  {
    row: "G15",
    name: "Backup",
    statement: "Export and import of conversation and agent, byte-identical projections after import.",
  },
  {
    row: "G17",
    name: "Telemetry",
    statement:
      "OpenTelemetry spans with GenAI attributes for turn, model call, tool, delegation, run; one trace across actors.",
  },
  {
    row: "G18",
    name: "Stop",
    statement:
      "One turn, one conversation, from every client (`useChat().stop()` included); provider request aborted; shown text kept and marked.",
  },
  {
    row: "G20",
    name: "Deployable",
    statement:
      "No experimental compatibility flag needed; `doctor` names each of twelve broken configurations with its mend.",
  },
  {
    row: "G23",
    name: "CLI",
    statement: "list, inspect, tail, cancel, replay, fork, export, import, dead letters, local or deployed.",
  },
  {
    row: "G25",
    name: "Bounded memory",
    statement: "Readers that do not read, media, hostile schemas and bodies cannot grow or stop the process.",
  },
  {
    row: "G27",
    name: "`useAgent`",
    statement:
      "A plain `useAgent` of the SDK against `/agents/conversation/:id`, in Chromium: connect, send, stream, reload.",
  },
  {
    row: "G28",
    name: "Name and binding",
    statement: "Every look-up is `getAgentByName`, with `ctx.exports.X` or a declared binding.",
  },
  {
    row: "H1",
    name: "Crash-transparent turns",
    statement:
      "Crash before and after every port crossing: final transcript equals the golden one (a crash inside a `once` call: its outcome-unknown variant).",
  },
  {
    row: "H2",
    name: "Orders of turns",
    statement: "Snapshot, atomic commit in order of completion; property-tested.",
  },
  {
    row: "H4",
    name: "Ledger",
    statement: "Reservations never exceed the budget by more than one call; survives crashes; whole tree.",
  },
  {
    row: "H5",
    name: "Constant cost",
    statement:
      "Counts of the budget table asserted, each by the work that builds the operation; equal at 10 and 10 000 messages.",
  },
  { row: "H6", name: "Accountable memory", statement: "Provenance, validity, `why`, erase cascade." },
  {
    row: "H8",
    name: "Taint",
    statement: "Labelled from entry to every derived fact; a tainted `once` call asks.",
  },
  {
    row: "H9",
    name: "One log, many protocols",
    statement: "Each protocol proven by an independent client or conformance suite.",
  },
  {
    row: "I1",
    name: "Who may approve",
    statement:
      "Rules by requester, participant, role or user; the requester excluded on demand; enforced at every entry point; inbox of tool calls and gates.",
  },
  {
    row: "I2",
    name: "Bounded trees",
    statement:
      "Active runs and tokens of a tree of runs are bounded and queued; another tenant's wait stays near its idle value.",
    missing:
      "Another tenant's wait stays below 0.3 s beside a full tree, and is not near its idle value: 46 to 69 ms in the median, 2 to 3 ms when idle.",
  },
  {
    row: "I3",
    name: "Long work",
    statement: "A workflow tool, an agent node and a wait for a person last days, across deployments.",
  },
  {
    row: "I4",
    name: "Correlation over everything",
    statement: "One correlation id and one trace from message to run, sub-run, agent and task.",
  },
  {
    row: "I10",
    name: "MCP server",
    statement: "Conformance suite, both released lines.",
  },
  {
    row: "I11",
    name: "MCP client",
    statement: "Conformance suite; annotations become effects; consent on change.",
    missing: "A question (elicitation) of a server of an older revision is refused.",
  },
  {
    row: "I12",
    name: "A2A, AG-UI and ACP",
    statement: "The compliance kit or the official client of each; agents of other servers as tools.",
  },
  {
    row: "I13",
    name: "Open Responses and clients of OpenAI",
    statement: "Compliance script; requests of Codex, Open WebUI, LibreChat, Cline, Continue.",
    missing:
      "WebSocket, `/v1/responses/compact`, `/v1/embeddings`, `stop`, items and tools of other kinds than messages, functions and reasoning; calls of `custom` tools and of groups of tools.",
  },
  {
    row: "I15",
    name: "Channels",
    statement: "Slack and email; dedup; edit while streaming.",
  },
  {
    row: "I14",
    name: "Skills",
    statement: "`SKILL.md` folders, also in libraries; body on demand; scripts in the workspace.",
  },
];
