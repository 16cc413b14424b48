/**
 * Deletes vectors of erased memories and of withdrawn spaces from a vector store.
 *
 * MEMVECTORS-7  A withdrawn space leaves the store row by row. Its rows are kept until then. Each deletion of a row's vectors is repeated
 *               after a minute, in case an upsert took effect later. If the actor stopped during a request, the minute begins when the
 *               request would have ended.
 * MEMVECTORS-8  Deletions use the numbers of vectors that the store may have. The number of requests depends only on their count.
 */
import { MAX_DELETED } from "../../../ports/vector-index.ts";
import { PublicationRows } from "./publication-rows.ts";
import { DELETED_VECTORS, SpaceRows, type StoredSpaces, WITHDRAWN_BLOCKS } from "./space-rows.ts";
import type { SentSpace } from "./spaces.ts";
import { idOf, idsOfRow } from "./vector-ids.ts";

/** Approximate deletions between two commits. */
const DELETED_AT_ONCE = 1_000;
const ROWS_AT_ONCE = 1_000;

interface ForgottenVectors extends Omit<StoredSpaces, "changed"> {
  /** Deletes vectors from the store. Rejects if the store does not answer. */
  delete(ids: readonly string[]): Promise<void>;
  /** Time in milliseconds after which a request has taken effect. */
  settledMs: number;
  /** Returns the time until which an unanswered request may still be under way, in milliseconds since the epoch. */
  doubtfulUntil(): number;
}

export class Forgetting {
  constructor(private readonly ports: ForgottenVectors) {}

  /** Returns the spaces with vectors that the store may have. */
  spaces(): SentSpace[] {
    const { published, spaces, withdrawn = [] } = this.ports.state();
    const space = spaces.find(({ number }) => number === published);
    if (space === undefined) return withdrawn;
    const { vectorsPerRow } = new SpaceRows(this.ports.database, space);
    return [{ number: space.number, perRow: vectorsPerRow }, ...withdrawn];
  }

  /** Returns the times of the next deletions, in milliseconds since the epoch. */
  dueTimes(): number[] {
    const { settledMs, clock } = this.ports;
    const now = clock.now();
    const listed = this.spaces().flatMap(({ number }) =>
      [DELETED_VECTORS, WITHDRAWN_BLOCKS].flatMap((kind) => this.#rows(number).list(kind, ROWS_AT_ONCE)),
    );
    return listed.map(({ sentAt }) => (sentAt ?? now - settledMs) + settledMs);
  }

  count(): number {
    return this.spaces().reduce((sum, { number, perRow }) => {
      const rows = this.#rows(number);
      return sum + rows.count(DELETED_VECTORS) + rows.count(WITHDRAWN_BLOCKS) * perRow;
    }, 0);
  }

  /** Deletes vectors if it is time. Returns whether it deleted any. Rejects if the store does not answer. */
  async pump(): Promise<boolean> {
    for (const { number, perRow } of this.spaces()) {
      if (await this.#deleteDue(number, DELETED_VECTORS, (at) => [idOf(number, at)])) return true;
      if (await this.#deleteDue(number, WITHDRAWN_BLOCKS, (at) => idsOfRow({ number, perRow }, at)))
        return true;
    }
    this.#close();
    return false;
  }

  async #deleteDue(
    space: number,
    kind: typeof DELETED_VECTORS | typeof WITHDRAWN_BLOCKS,
    idsAt: (at: number) => string[],
  ): Promise<boolean> {
    const { clock, database, settledMs } = this.ports;
    const rows = this.#rows(space);
    const sentAt = clock.now();
    const due = rows
      .list(kind, ROWS_AT_ONCE)
      .filter(({ sentAt: before }) => before === null || sentAt - before >= settledMs);
    const done: typeof due = [];
    const ids: string[] = [];
    for (const row of due) {
      if (ids.length >= DELETED_AT_ONCE) break;
      done.push(row);
      ids.push(...idsAt(row.at));
    }
    if (done.length === 0) return false;
    for (let from = 0; from < ids.length; from += MAX_DELETED)
      await this.ports.delete(ids.slice(from, from + MAX_DELETED));
    database.transaction(() => {
      for (const { at, sentAt: before } of done) {
        const [now] = rows.list(kind, 1, at, at + 1);
        // The vector was removed again during the request, so delete it again.
        if (now === undefined || now.sentAt !== before) continue;
        if (before === null) rows.put(kind, { at, sentAt: Math.max(sentAt, this.ports.doubtfulUntil()) });
        else rows.remove(kind, at);
      }
    });
    return true;
  }

  /** Drops withdrawn spaces that the store has fully deleted. */
  #close(): void {
    const { state, save } = this.ports;
    const { withdrawn = [], ...others } = state();
    const left = withdrawn.filter(({ number }) =>
      [DELETED_VECTORS, WITHDRAWN_BLOCKS].some((kind) => this.#rows(number).list(kind, 1).length > 0),
    );
    if (left.length === withdrawn.length) return;
    save({ ...others, ...(left.length > 0 && { withdrawn: left }) });
  }

  #rows(space: number): PublicationRows {
    return new PublicationRows(this.ports.database, space);
  }
}
