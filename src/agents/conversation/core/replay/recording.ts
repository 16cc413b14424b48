/**
 * The recording of an ended turn: its commits, its stored content, and the conversation around each commit. Pure.
 *
 * RECORDING-1  A recording has the entries of one turn up to its end. Entries of other turns are left out.
 */
import type { TurnRecording } from "../../../../protocol/recording.ts";
import { conflict } from "../../../../shared/errors.ts";
import type { Json } from "../../../../shared/json.ts";
import type { PlanInput } from "../decisions.ts";
import type { JournalEntry } from "../journal-entry.ts";
import type { ConversationIdentity, Head } from "../state.ts";
import type { Turn } from "../turn.ts";

export type ReplayOptions = Pick<
  PlanInput,
  "agentTurns" | "approvalTimeoutMs" | "clientToolTimeoutMs" | "calls"
>;

export type RecordedEntry = Omit<JournalEntry, "turn"> & { seq: number };

/** A commit with entries of the turn. */
export interface RecordedRow {
  at: number;
  before: Head;
  after: Head;
  entries: RecordedEntry[];
}

/** A recording with the types of the core. */
export interface Recording {
  record: ConversationIdentity;
  turn: Turn;
  options: ReplayOptions;
  rows: RecordedRow[];
}

/** Throws `CONFLICT` for a turn that is active or has erased content. */
export function checkRecordable({ status, erased = [] }: Turn): void {
  if (status === "active")
    throw conflict("The turn is in progress. Record or replay it after its end.", {
      retriable: true,
    });
  if (erased.length > 0) throw conflict("Content of the turn is erased, so it cannot be replayed.");
}

/** Returns the recording with the types of the core. */
export function readRecording({ record, turn, options, rows }: TurnRecording): Recording {
  // SAFETY: `recordingOf` made these members of values with these types.
  return { record, turn, options, rows } as unknown as Recording;
}

/** Returns a recording as plain JSON. */
export function writeRecording(turnId: string, { record, turn, options, rows }: Recording): TurnRecording {
  const { fingerprint: _, ...known } = record;
  const plain: Json = JSON.parse(JSON.stringify({ version: 1, turnId, record: known, turn, options, rows }));
  // SAFETY: the members have the form of the schema, and JSON leaves out absent members.
  return plain as unknown as TurnRecording;
}
