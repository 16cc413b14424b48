/**
 * The copies of a conversation's turns in the directory.
 *
 * RECORDS-2  The directory has the last published place in the journal, in the transaction of the records. The actor writes no row for it,
 *            and reads it once in a life.
 * RECORDS-6  The record of a replaced turn names its replacement.
 * RECORDS-3  After an erasure, the records of all turns that the erasure has changed are published again, without the erased text.
 */
import type { Directory } from "../../../d1/directory.ts";
import { parseItemId } from "../../../protocol/ids.ts";
import type { TurnRecord } from "../../../protocol/turn-records.ts";
import { lastSeq } from "../../../shared/journal-row.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import type { JournalTarget } from "../../base/copies/journal-copy.ts";
import type { ActorContext } from "../context.ts";
import type { JournalRow } from "../core/journal-entry.ts";
import { turnRecord } from "../reads/turn-record.ts";
import type { CopiedConversation } from "./logged-conversation.ts";

type TurnsContext = Pick<ActorContext, "directory"> & { runtime: CopiedConversation };

/** Size of the records in one put, in bytes. A value of the directory has at most 2 MB. */
const MAX_PUT_BYTES = 512 * 1024;

export class TurnsTarget implements JournalTarget<Directory, JournalRow> {
  constructor(private readonly context: TurnsContext) {}

  readonly find = () => {
    const { runtime, directory } = this.context;
    return runtime.exists && runtime.state.turns > 0 ? directory() : null;
  };

  async published(directory: Directory): Promise<number> {
    const { tenant, id } = this.context.runtime.state.record;
    return directory.publishedTurns(tenant, id);
  }

  async put(directory: Directory, rows: readonly JournalRow[], before: number): Promise<number> {
    const last = rows.at(-1);
    const upTo = last === undefined ? before : lastSeq(last);
    await this.#putTurns(directory, this.#turnsOf(rows), upTo);
    return upTo;
  }

  /** Puts the records of turns, and with the last of them the place in the journal. */
  async #putTurns(directory: Directory, numbers: readonly number[], upTo: number): Promise<void> {
    const { runtime } = this.context;
    let [turns, bytes]: [TurnRecord[], number] = [[], 0];
    let activeAt = runtime.state.record.createdAt;
    const put = (place: number) => {
      const { record, seq } = runtime.state;
      const { tenant, id, createdAt, listed } = record;
      const published = { turns, seq, upTo: place, ...(listed !== false && { activeAt }) };
      return directory.putTurns(tenant, { id, createdAt }, published);
    };
    for (const n of numbers) {
      if (!runtime.exists) return;
      const turn = runtime.turn(n);
      if (turn === null) continue;
      const next = turnRecord(runtime.state.record, turn);
      const size = utf8Length(JSON.stringify(next));
      if (turns.length > 0 && bytes + size > MAX_PUT_BYTES) {
        await put(0);
        [turns, bytes] = [[], 0];
      }
      turns.push(next);
      activeAt = Math.max(activeAt, turn.createdAt, turn.completedAt ?? 0);
      bytes += size;
    }
    if (runtime.exists) await put(upTo);
  }

  #replacedBy(n: number): number | undefined {
    const { regenerates, edits } = this.context.runtime.turn(n) ?? {};
    return parseItemId(regenerates ?? edits ?? "")?.n;
  }

  #turnsOf(rows: readonly JournalRow[]): number[] {
    const numbers = new Set<number>();
    for (const { type, turn } of rows.flatMap(({ entries }) => entries)) {
      if (turn === undefined) continue;
      numbers.add(turn);
      const replaced = this.#replacedBy(turn);
      if (replaced !== undefined) numbers.add(replaced);
      if (type !== "entry.erased") continue;
      for (const n of this.context.runtime.store.turns.erasedFrom(turn)) numbers.add(n);
    }
    return [...numbers].sort((a, b) => a - b);
  }
}
