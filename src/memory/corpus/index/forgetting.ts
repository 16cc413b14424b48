/**
 * The deletion of vectors from a store: those of memories that are gone, and those of spaces that searches no longer use.
 *
 * MEMVECTORS-7  A space that searches no longer use leaves the store by its rows, which are kept until then. Each deletion of a row's vectors is
 *               repeated after a minute, in case an upsert took effect later.
 * MEMVECTORS-8  Deletions go by the numbers of vectors that the store may have, and take as many requests as these need, whatever the numbers are.
 */
import type { Clock } from "../../../ports/clock.ts";
import type { ActorDatabase } from "../../../ports/sql-database.ts";
import { MAX_DELETED } from "../../../ports/vector-index.ts";
import { PublicationRows } from "./publication-rows.ts";
import { GONE, LEFT, SpaceRows } from "./space-rows.ts";
import type { SentSpace, SpacesState } from "./spaces.ts";
import { idOf, idsOfRow } from "./vector-ids.ts";

/** Vectors that are deleted before it is noted, about. */
const DELETED_AT_ONCE = 1_000;
/** Rows that are looked at. */
const ROWS_AT_ONCE = 1_000;

export interface ForgettingPorts {
  database: ActorDatabase;
  clock: Pick<Clock, "now">;
  state(): SpacesState;
  save(state: SpacesState): void;
  /** Deletes vectors from the store. Rejects if the store does not answer. */
  delete(ids: readonly string[]): Promise<void>;
  /** Time after which a request has taken effect, in milliseconds. */
  settledMs: number;
}

export class Forgetting {
  constructor(private readonly ports: ForgettingPorts) {}

  /** Returns the spaces whose vectors the store may have. */
  spaces(): SentSpace[] {
    const { published, spaces, withdrawn = [] } = this.ports.state();
    const space = spaces.find(({ number }) => number === published);
    if (space === undefined) return withdrawn;
    const { vectorsPerRow } = new SpaceRows(this.ports.database, space);
    return [{ number: space.number, perRow: vectorsPerRow }, ...withdrawn];
  }

  /** Returns the times at which deletions are due, in milliseconds since the epoch. */
  dueTimes(): number[] {
    const { settledMs, clock } = this.ports;
    const now = clock.now();
    const listed = this.spaces().flatMap(({ number }) =>
      [GONE, LEFT].flatMap((kind) => this.#rows(number).list(kind, ROWS_AT_ONCE)),
    );
    return listed.map(({ sentAt }) => (sentAt ?? now - settledMs) + settledMs);
  }

  /** Returns the number of vectors that the store must forget, about. */
  count(): number {
    return this.spaces().reduce((sum, { number, perRow }) => {
      const rows = this.#rows(number);
      return sum + rows.count(GONE) + rows.count(LEFT) * perRow;
    }, 0);
  }

  /** Deletes vectors that are due. Returns whether there were some. Rejects if the store does not answer. */
  async pump(): Promise<boolean> {
    for (const { number, perRow } of this.spaces()) {
      if (await this.#deleteDue(number, GONE, (at) => [idOf(number, at)])) return true;
      if (await this.#deleteDue(number, LEFT, (at) => idsOfRow({ number, perRow }, at))) return true;
    }
    this.#close();
    return false;
  }

  async #deleteDue(
    space: number,
    kind: typeof GONE | typeof LEFT,
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
        // One that went again meanwhile is deleted anew.
        if (now === undefined || now.sentAt !== before) continue;
        if (before === null) rows.put(kind, { at, sentAt });
        else rows.remove(kind, at);
      }
    });
    return true;
  }

  /** Leaves out the spaces of which the store has nothing any more. */
  #close(): void {
    const { state, save } = this.ports;
    const { withdrawn = [], ...others } = state();
    const left = withdrawn.filter(({ number }) =>
      [GONE, LEFT].some((kind) => this.#rows(number).list(kind, 1).length > 0),
    );
    if (left.length === withdrawn.length) return;
    save({ ...others, ...(left.length > 0 && { withdrawn: left }) });
  }

  #rows(space: number): PublicationRows {
    return new PublicationRows(this.ports.database, space);
  }
}
