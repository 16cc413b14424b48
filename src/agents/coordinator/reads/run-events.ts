/**
 * The journal of a run as events, made when a reader needs them.
 *
 * RUNEVENT-1  All readers share one row of the journal and one event: those that were read last. So what readers hold does not grow with their
 *             number, and readers that are at the same place share the work.
 */
import { PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import { toIso } from "../../../shared/time.ts";
import { lastSeq, type RunJournal, type RunJournalRow } from "../store/run-journal.ts";

const encoder = new TextEncoder();

interface Event {
  readonly seq: number;
  /** JSON. */
  readonly text: string;
  /** The server-sent event, once a reader has needed it. */
  bytes?: Uint8Array;
}

export class RunEvents {
  #row: RunJournalRow | null = null;
  #event: Event | null = null;

  constructor(private readonly journal: Pick<RunJournal, "holding">) {}

  /** Returns the bytes of an entry as a server-sent event. Throws for one that does not exist. */
  event(seq: number): Uint8Array {
    const event = this.#at(seq);
    event.bytes ??= encoder.encode(`id: ${seq}\ndata: ${event.text}\n\n`);
    return event.bytes;
  }

  /** Returns an entry as JSON. Throws for one that does not exist. */
  text(seq: number): string {
    return this.#at(seq).text;
  }

  /** Frees what the last reader needed. */
  forget(): void {
    this.#row = null;
    this.#event = null;
  }

  #at(seq: number): Event {
    if (this.#event?.seq === seq) return this.#event;
    const { seq: first, at, entries } = this.#rowWith(seq);
    const entry = entries[seq - first];
    if (entry === undefined) throw new Error(`The journal has no entry ${seq}.`);
    const text = JSON.stringify({ v: PROTOCOL_VERSION, seq, time: toIso(at), ...entry });
    this.#event = { seq, text };
    return this.#event;
  }

  #rowWith(seq: number): RunJournalRow {
    if (this.#row !== null && this.#row.seq <= seq && seq <= lastSeq(this.#row)) return this.#row;
    const row = this.journal.holding(seq);
    if (row === undefined) throw new Error(`The journal has no entry ${seq}.`);
    this.#row = row;
    return row;
  }
}
