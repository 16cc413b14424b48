/** KILL-11: compactions. */
import type { JournalEntryView } from "../../../src/protocol/conversation-schemas.ts";
import type { History } from "../history.ts";
import type { ConversationRecord, Violation } from "./records.ts";

/** Maximum attempts of a compaction. */
const ATTEMPTS = 3;

export function checkCompactions(
  { id, final, messages }: ConversationRecord,
  { requests, hits }: History,
): Violation[] {
  const found: Violation[] = [];
  const report = (what: string) => found.push({ rule: "KILL-11", conversation: id, what });
  let isOpen = false;
  let summaries = 0;
  for (const entry of final.journal) {
    const { type, seq } = entry;
    if (!type.startsWith("context.")) continue;
    const begins = type === "context.compaction.started";
    if (begins === isOpen) report(`${type} ${seq} is out of order`);
    if (attemptOf(entry) > ATTEMPTS) report(`${type} ${seq} is attempt ${attemptOf(entry)}`);
    isOpen = !endsCompaction(entry);
    if (type === "context.compacted") summaries += 1;
  }
  if (isOpen) report("a compaction never ends");
  const keys = new Set(messages.map(({ script }) => script.key));
  const given = hits.filter((hit) => hit.kind === "summary" && hit.answered && keys.has(hit.key)).length;
  if (summaries > given) report(`${summaries} summaries are recorded, and the model gave ${given}`);
  for (const { key, summarised, shown } of requests) {
    if (!keys.has(key)) continue;
    const known = [...summarised, ...shown];
    const twice = known.find((one, index) => known.indexOf(one) !== index);
    if (twice !== undefined) report(`a request for ${key} has ${twice} twice`);
    const strange = known.find((one) => !keys.has(one));
    if (strange !== undefined) report(`a request for ${key} has ${strange} of another conversation`);
  }
  return found;
}

/** Reports whether an entry ends its compaction. */
export function endsCompaction({ type, data }: JournalEntryView): boolean {
  return type === "context.compacted" || membersOf(data).final === true;
}

function attemptOf({ data }: JournalEntryView): number {
  return Number(membersOf(data).attempt ?? 0);
}

function membersOf(data: JournalEntryView["data"]): { attempt?: unknown; final?: unknown } {
  return typeof data === "object" && data !== null ? data : {};
}
