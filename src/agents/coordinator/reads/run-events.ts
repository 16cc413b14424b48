/**
 * The journal of a run as events, made when a reader needs them.
 *
 * RUNEVENT-1  All readers share the bytes of the last used events, at most `MAX_CACHED_BYTES` or one longer event. So the memory of readers does
 *             not grow with their number, and readers at several positions do not read a row again for each part of it.
 */
import { PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import { lastSeq } from "../../../shared/journal-row.ts";
import { toIso } from "../../../shared/time.ts";
import type { RunJournal, RunJournalRow } from "../store/run-journal.ts";

/** Bytes of events that are cached for the readers of one run. */
export const MAX_CACHED_BYTES = 2 * 1024 * 1024;
/** Maximum bytes of events that one read of a row prepares after the first event. */
const AHEAD_BYTES = 128 * 1024;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class RunEvents {
  /** The bytes of events by number, those needed last at the end. */
  readonly #cached = new Map<number, Uint8Array>();
  #cachedBytes = 0;

  constructor(private readonly journal: Pick<RunJournal, "holding">) {}

  /** Returns the bytes of an entry as a server-sent event. Throws if the entry does not exist. */
  event(seq: number): Uint8Array {
    const cached = this.#cached.get(seq);
    if (cached === undefined) return this.#read(seq);
    this.#cached.delete(seq);
    this.#cached.set(seq, cached);
    return cached;
  }

  /** Returns an entry as JSON. Throws if the entry does not exist. */
  text(seq: number): string {
    return decoder.decode(this.event(seq).subarray(prefixOf(seq).length, -END.length));
  }

  /** Frees the events of the last reader. */
  forget(): void {
    this.#cached.clear();
    this.#cachedBytes = 0;
  }

  #read(seq: number): Uint8Array {
    const row = this.journal.holding(seq);
    if (row === undefined) throw new Error(`The journal has no entry ${seq}.`);
    const first = bytesOf(row, seq);
    const ahead: [number, Uint8Array][] = [];
    let left = AHEAD_BYTES;
    for (let next = seq + 1; next <= lastSeq(row) && !this.#cached.has(next); next++) {
      const bytes = bytesOf(row, next);
      left -= bytes.length;
      if (left < 0) break;
      ahead.push([next, bytes]);
    }
    for (const [next, bytes] of ahead) this.#cache(next, bytes);
    this.#cache(seq, first);
    return first;
  }

  #cache(seq: number, bytes: Uint8Array): void {
    this.#cached.set(seq, bytes);
    this.#cachedBytes += bytes.length;
    for (const [oldest, { length }] of this.#cached) {
      if (this.#cachedBytes <= MAX_CACHED_BYTES || oldest === seq) break;
      this.#cached.delete(oldest);
      this.#cachedBytes -= length;
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

/** Returns the text before the JSON of an event, in ASCII. */
function prefixOf(seq: number): string {
  return `id: ${seq}\ndata: `;
}
