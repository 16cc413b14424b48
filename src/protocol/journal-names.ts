/**
 * The names of journal entries in queries: our types, and the names of the designs.
 *
 * NAMES-1  A query takes each type of an entry, and the names that the designs give to events and to decisions. The answer has our types.
 *          `_` counts as `.` in the name of an event.
 * NAMES-2  In the log, the types of runs come before names of the designs. With a filter by conversation or agent the log has no runs, so
 *          all names have their meaning in conversations.
 */
import type { LoggedType } from "./event-log.ts";
import { ENTRY_TYPES, type EntryType } from "./journal.ts";
import { RUN_ENTRY_TYPES } from "./workflow-run.ts";

/** Names of Wonder's event catalogue. It leaves out names that differ from our types in `_` and `.` only. */
const EVENTS = {
  "conversation.turn": ["turn.started"],
  "message.agent": ["message.completed"],
  "move.recorded": ["message.completed"],
  "llm.call.started": ["message.started"],
  "llm.call.completed": ["message.completed"],
  "tool.invoked": ["tool.requested"],
  "workflow.started": ["workflow_run.started"],
  "workflow.completed": ["tool.completed"],
  "workflow.failed": ["tool.failed"],
  "async.tracked": ["tool.requested", "tool.deferred"],
  "async.completed": ["tool.completed"],
  "async.failed": ["tool.failed"],
  "memory.written": ["memory_extraction.applied"],
  "memory.updated": ["memory_extraction.applied"],
  "memory.deleted": ["memory_extraction.applied"],
} as const satisfies Record<string, readonly EntryType[]>;

/** The signals of the Jido runtime. */
const SIGNALS = {
  "conversation.user.message": ["message.user"],
  "conversation.assistant.message": ["message.completed"],
  "conversation.cancel": ["conversation.cancelled"],
  "conversation.resume": ["conversation.resumed"],
  "conversation.llm.requested": ["message.started"],
  "conversation.llm.completed": ["message.completed"],
  "conversation.llm.failed": ["llm.call.failed"],
  "conversation.tool.requested": ["tool.requested"],
  "conversation.tool.completed": ["tool.completed"],
  "conversation.tool.failed": ["tool.failed"],
  "conversation.tool.cancelled": ["tool.cancelled"],
  "conversation.subagent.requested": ["subagent.requested"],
  "conversation.subagent.started": ["subagent.started"],
  "conversation.subagent.completed": ["subagent.stopped"],
  "conversation.subagent.failed": ["subagent.stopped"],
  "conversation.subagent.stopped": ["subagent.stopped"],
} as const satisfies Record<string, readonly EntryType[]>;

const WAITING = ["turn.waiting"] as const;

/** Decisions, with the entries that they write. */
const DECISIONS = {
  START_TURN: ["turn.started"],
  COMPLETE_TURN: ["turn.completed"],
  FAIL_TURN: ["turn.failed"],
  APPEND_MESSAGE: ["message.user", "message.completed"],
  RECORD_MOVE: ["message.completed"],
  CALL_LLM: ["message.started"],
  DISPATCH_CONTEXT_ASSEMBLY: ["context_assembly.started"],
  DISPATCH_MEMORY_EXTRACTION: ["memory_extraction.started"],
  DISPATCH_TASK: ["tool.requested"],
  DISPATCH_WORKFLOW: ["workflow_run.started"],
  DISPATCH_AGENT: ["agent_call.started"],
  TRACK_ASYNC_OPERATION: EVENTS["async.tracked"],
  ASYNC_OPERATION_COMPLETED: ["tool.completed", "tool.failed"],
  CANCEL_OPERATION: ["tool.cancelled"],
  MARK_WAITING: WAITING,
  MARK_WAITING_FOR_TASK: WAITING,
  MARK_WAITING_FOR_WORKFLOW: WAITING,
  MARK_WAITING_FOR_AGENT: WAITING,
  RESUME_FROM_TOOL: ["tool.completed", "tool.failed"],
  WRITE_MEMORY: ["memory_extraction.applied"],
  UPDATE_MEMORY: ["memory_extraction.applied"],
} as const satisfies Record<string, readonly EntryType[]>;

const TYPES = new Map<string, readonly EntryType[]>([
  ...[...Object.entries(EVENTS), ...Object.entries(SIGNALS)].map(
    ([name, types]) => [dotted(name), types] as const,
  ),
  ...Object.entries(DECISIONS),
  ...ENTRY_TYPES.map((type) => [dotted(type), [type]] as const),
]);

export function entryTypesOf(name: string): readonly EntryType[] | undefined {
  return TYPES.get(name) ?? TYPES.get(dotted(name));
}

const RUN_TYPES = new Map<string, readonly LoggedType[]>(
  RUN_ENTRY_TYPES.map((type) => [dotted(type), [type]] as const),
);

/** Returns the types of entries in the log for a name (NAMES-2); `undefined` for an unknown name. */
export function loggedTypesOf(name: string, isOfConversations = false): readonly LoggedType[] | undefined {
  const ofRuns = RUN_TYPES.get(dotted(name));
  const ofConversations = entryTypesOf(name);
  return isOfConversations ? (ofConversations ?? ofRuns) : (ofRuns ?? ofConversations);
}

function dotted(name: string): string {
  return name.replaceAll("_", ".");
}
