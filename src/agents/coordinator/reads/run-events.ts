/**
 * The journal of a run as events, made when a reader needs them.
 *
 * RUNEVENT-1  All readers share what is read: the bytes of the events that were needed last, at most `MAX_KEPT_BYTES` or one longer event. So
 *             what readers hold does not grow with their number, and readers at several places do not read a row again for each part of it.
 */
import { PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import { toIso } from "../../../shared/time.ts";
import { lastSeq, type RunJournal, type RunJournalRow } from "../store/run-journal.ts";

/** Bytes of events that are kept for the readers of one run. */
export const MAX_KEPT_BYTES = 2 * 1024 * 1024;
/** Bytes of events, after the first event, that one reading of a row prepares. */
const AHEAD_BYTES = 128 * 1024;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class RunEvents {
  /** The bytes of events by number, those needed last at the end. */
  readonly #kept = new Map<number, Uint8Array>();
  #keptBytes = 0;

  constructor(private readonly journal: Pick<RunJournal, "holding">) {}

  /** Returns the bytes of an entry as a server-sent event. Throws if the entry does not exist. */
  event(seq: number): Uint8Array {
    const kept = this.#kept.get(seq);
    if (kept === undefined) return this.#read(seq);
    this.#kept.delete(seq);
    this.#kept.set(seq, kept);
    return kept;
  }

  /** Returns an entry as JSON. Throws if the entry does not exist. */
  text(seq: number): string {
    return decoder.decode(this.event(seq).subarray(prefixOf(seq).length, -END.length));
  }

  /** Frees what the last reader needed. */
  forget(): void {
    this.#kept.clear();
    this.#keptBytes = 0;
  }

  #read(seq: number): Uint8Array {
    const row = this.journal.holding(seq);
    if (row === undefined) throw new Error(`The journal has no entry ${seq}.`);
    const first = bytesOf(row, seq);
    const ahead: [number, Uint8Array][] = [];
    let left = AHEAD_BYTES;
    for (let next = seq + 1; next <= lastSeq(row) && !this.#kept.has(next); next++) {
      const bytes = bytesOf(row, next);
      left -= bytes.length;
      if (left < 0) break;
      ahead.push([next, bytes]);
    }
    for (const [next, bytes] of ahead) this.#keep(next, bytes);
    this.#keep(seq, first);
    return first;
  }

  #keep(seq: number, bytes: Uint8Array): void {
    this.#kept.set(seq, bytes);
    this.#keptBytes += bytes.length;
    for (const [oldest, { length }] of this.#kept) {
      if (this.#keptBytes <= MAX_KEPT_BYTES || oldest === seq) break;
      this.#kept.delete(oldest);
      this.#keptBytes -= length;
    }
  }
}

function bytesOf({ seq: first, at, entries }: RunJournalRow, seq: number): Uint8Array {
  const entry = entries[seq - first];
  if (entry === undefined) throw new Error(`The journal has no entry ${seq}.`);
  const event = { v: PROTOCOL_VERSION, seq, time: toIso(at), ...entry };
  return encoder.encode(`${prefixOf(seq)}${JSON.stringify(event)}${END}`);
}

const END = "\n\n";

/** Returns what is before the JSON of an event, in ASCII. */
function prefixOf(seq: number): string {
  return `id: ${seq}\ndata: `;
}
