/** Display texts for incidents and journal entries. Pure. */
import type { Incident, IncidentKind, JournalEntryView } from "../../../src/client/index.ts";
import { previewOf } from "../format.ts";
import { decisionText } from "../policy-texts.ts";

export const KIND_TEXT: Record<IncidentKind, string> = {
  failure: "Failure",
  timeout: "Timeout",
  refusal: "Refusal",
  denial: "Denial",
  retry: "Retry",
  reset: "Reset",
  crash: "Crash",
  stop: "Stop",
  late: "Late",
};

/** Returns an incident as one text: its entry, its code and its message. */
export function incidentText({ type, code, data }: Incident): string {
  return [type, code, decisionText({ type, data }) ?? messageIn(data)]
    .filter((part) => part !== undefined && part !== "")
    .join(" · ");
}

/** Returns the data of an entry on one line: the decision of a policy, or the message of its error if it has one. */
export function entryPreview(entry: Pick<JournalEntryView, "type" | "data">): string {
  return decisionText(entry) ?? messageIn(entry.data) ?? previewOf(entry.data);
}

/** Returns the message of the error in the data of an entry. */
function messageIn(data: unknown): string | undefined {
  const error = memberOf(data, "error") ?? data;
  const message = memberOf(error, "message") ?? memberOf(data, "reason");
  return typeof message === "string" ? message : undefined;
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return (value as Record<string, unknown>)[name];
}
