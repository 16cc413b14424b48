/**
 * The entries of a journal that are incidents. Pure.
 *
 * INCIDENT-1  An incident is a failure, a timeout, a refusal, a denial, a retry, a reset, a crash, a stop, or a late result. Entries of normal
 *             work are no incidents.
 */
import type { EntryType } from "../../../../protocol/journal.ts";
import type { Incident, IncidentKind } from "../../../../protocol/record-schemas.ts";
import { isJsonObject, type Json } from "../../../../shared/json.ts";

/** The kinds of incidents by the types of their entries. */
const KINDS: Readonly<Partial<Record<EntryType, IncidentKind>>> = {
  "conversation.queue.overflow": "refusal",
  "conversation.signal.refused": "refusal",
  "conversation.cancelled": "stop",
  "conversation.title.failed": "failure",
  "context.compaction.failed": "failure",
  "context_assembly.failed": "failure",
  "memory_extraction.failed": "failure",
  "memory_extraction.failing": "failure",
  "memory_extraction.refused": "refusal",
  "turn.unasked": "refusal",
  "turn.failed": "failure",
  "llm.call.failed": "retry",
  "budget.exceeded": "refusal",
  "policy.denied": "denial",
  "tool.call.failed": "retry",
  "tool.interrupted": "crash",
  "tool.failed": "failure",
  "tool.cancelled": "stop",
  "tool.late": "late",
  "task.failed": "failure",
  "agent_call.failed": "failure",
};

/** The kinds of incidents by a member of their data. Other values of the member are normal work. */
const KINDS_BY_DATA: Readonly<
  Partial<Record<EntryType, readonly [name: string, kinds: Readonly<Record<string, IncidentKind>>]>>
> = {
  "approval.resolved": ["outcome", { denied: "denial", expired: "timeout" }],
  "conversation.ended": ["status", { failed: "failure" }],
  "message.reset": [
    "reason",
    { retry: "reset", fallback: "reset", interrupted: "crash", invalid_output: "reset" },
  ],
  "subagent.stopped": [
    "reason",
    { failed: "failure", cancelled: "stop", expired: "timeout", denied: "denial" },
  ],
};

const CODES: Readonly<Record<string, IncidentKind>> = {
  TIMEOUT: "timeout",
  PERMISSION_DENIED: "denial",
  APPROVAL_DENIED: "denial",
  CANCELLED: "stop",
  BUDGET_EXCEEDED: "refusal",
};

export function mayBeIncident(type: EntryType): boolean {
  return type in KINDS || type in KINDS_BY_DATA || type === "turn.resumed";
}

/** Returns the kind of an incident, and the code of its error, if it has one. Returns `null` for other entries. `data` as readers see it. */
export function incidentOf(type: EntryType, data: Json | undefined): Pick<Incident, "kind" | "code"> | null {
  const kind = kindOf(type, isJsonObject(data) ? data : {});
  if (kind === null) return null;
  const code = codeIn(data);
  if (code === undefined) return { kind };
  return { kind: kind === "failure" ? (CODES[code] ?? kind) : kind, code };
}

function kindOf(type: EntryType, data: Readonly<Record<string, Json>>): IncidentKind | null {
  // A turn also resumes a reply that its provider paused.
  if (type === "turn.resumed") return data.reason === undefined ? "crash" : null;
  const [name, kinds] = KINDS_BY_DATA[type] ?? [];
  if (name === undefined || kinds === undefined) return KINDS[type] ?? null;
  const value = data[name];
  return typeof value === "string" ? (kinds[value] ?? null) : null;
}

function codeIn(data: Json | undefined): string | undefined {
  if (!isJsonObject(data)) return undefined;
  const { code = codeIn(data.error) } = data;
  return typeof code === "string" ? code : undefined;
}
