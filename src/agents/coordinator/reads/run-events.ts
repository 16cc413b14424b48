/**
 * The journal of a run as server-sent events, made when a reader needs them.
 *
 * RUNEVENT-1  All readers share one row of the journal and the bytes of one event: those that were read last. So what readers hold does
 *             not grow with their number, and readers that are at the same place share the work.
 */
import { PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import { toIso } from "../../../shared/time.ts";
import { lastSeq, type RunJournal, type RunJournalRow } from "../store/run-journal.ts";

const encoder = new TextEncoder();

export class RunEvents {
  #row: RunJournalRow | null = null;
  #event: { seq: number; bytes: Uint8Array } | null = null;

  constructor(private readonly journal: Pick<RunJournal, "holding">) {}

  /** Returns the bytes of an entry. Throws for one that does not exist. */
  event(seq: number): Uint8Array {
    if (this.#event?.seq !== seq) this.#event = { seq, bytes: bytesOf(this.#rowWith(seq), seq) };
    return this.#event.bytes;
  }

  /** Frees what the last reader needed. */
  forget(): void {
    this.#row = null;
    this.#event = null;
  }

  #rowWith(seq: number): RunJournalRow {
    if (this.#row !== null && this.#row.seq <= seq && seq <= lastSeq(this.#row)) return this.#row;
    const row = this.journal.holding(seq);
    if (row === undefined) throw new Error(`The journal has no entry ${seq}.`);
    this.#row = row;
    return row;
  }
}

function bytesOf({ seq: first, at, entries }: RunJournalRow, seq: number): Uint8Array {
  const entry = entries[seq - first];
  if (entry === undefined) throw new Error(`The journal has no entry ${seq}.`);
  const event = { v: PROTOCOL_VERSION, seq, time: toIso(at), ...entry };
  return encoder.encode(`id: ${seq}\ndata: ${JSON.stringify(event)}\n\n`);
}
