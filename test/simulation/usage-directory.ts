/** The usage and the turns of conversations in a simulated directory, with the production statements on SQLite. */

import { GET_PUBLISHED, PUT_PUBLISHED } from "../../src/d1/conversation-statements.ts";
import { MIGRATIONS } from "../../src/d1/d1-tables.ts";
import type { ConversationUsage, Directory } from "../../src/d1/directory.ts";
import { PUT_USAGE } from "../../src/d1/statements.ts";
import { PUT_LABELS, PUT_TURNS, REMOVE_LABELS, turnRow } from "../../src/d1/turn-statements.ts";
import type { UsageTotals } from "../../src/model/usage.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { TurnRecord } from "../../src/protocol/turn-records.ts";
import type { WorldClock } from "./clocks.ts";
import { type FaultPlane, InjectedError } from "./faults.ts";
import type { Caller } from "./model.ts";
import { rowsOf } from "./rows.ts";

const LATENCY_MS = 10;

/** The part of the directory that a conversation publishes to. */
export type PublishedDirectory = Pick<Directory, "putUsage" | "putTurns" | "publishedTurns">;

export class UsageDirectory {
  #opened: NodeSqlDatabase | null = null;

  constructor(
    private readonly clock: WorldClock,
    private readonly plane: FaultPlane,
  ) {}

  /** Returns the directory as one life of an actor sees it. Sent data arrives even if the sender dies. */
  putFor(caller: Caller): PublishedDirectory {
    const put = this.#crossing(caller);
    return {
      putUsage: (usage) => put(() => this.#put(usage)),
      putTurns: (...turns) => put(() => this.#putTurns(...turns)),
      publishedTurns: async (...names) => {
        await this.clock.sleep(LATENCY_MS);
        return this.#database().all<{ seq: number }>(GET_PUBLISHED, ...names)[0]?.seq ?? 0;
      },
    };
  }

  #crossing(caller: Caller): (put: () => void) => Promise<void> {
    return async (put) => {
      const faults = this.plane.cross(caller.conversation, "directory.put");
      let wait = LATENCY_MS;
      let dies: () => void = () => undefined;
      let isLost = false;
      for (const fault of faults) {
        this.plane.fire(fault);
        if (fault.kind === "error") throw new InjectedError("the directory is not there");
        if (fault.kind === "delay") wait += fault.ms;
        if (fault.kind === "loss") isLost = true;
        if (fault.kind !== "crash") continue;
        if (fault.when === "before") return caller.die();
        dies = () => caller.die();
      }
      await this.clock.sleep(wait);
      put();
      dies();
      if (isLost) throw new InjectedError("the directory's answer was lost");
    };
  }

  /** Returns the records of a conversation's turns, the oldest first. */
  turns(conversationId: string): TurnRecord[] {
    const rows = this.#database().all<{ record: string }>(
      "SELECT record FROM turns WHERE conversation_id = ? ORDER BY created_at, id",
      conversationId,
    );
    // SAFETY: only `putTurns` writes this column, from a value of this type.
    return rows.map(({ record }) => JSON.parse(record) as TurnRecord);
  }

  /** Returns all rows of a conversation, as text. */
  textOf(conversationId: string): string {
    const rows = rowsOf(this.#database()).map(({ row }) => row);
    return rows.filter((row) => row.includes(`"${conversationId}"`)).join("\n");
  }

  totals(conversationId: string): UsageTotals | undefined {
    const [row] = this.#database().all<Record<string, number>>(
      `SELECT calls, input_tokens AS inputTokens, cached_input_tokens AS cachedInputTokens,
        output_tokens AS outputTokens, nano_dollars AS nanoDollars FROM usage WHERE conversation_id = ?`,
      conversationId,
    );
    // SAFETY: the statement selects the columns of the totals.
    return row === undefined ? undefined : ({ ...row } as unknown as UsageTotals);
  }

  close(): void {
    this.#opened?.close();
  }

  #database(): NodeSqlDatabase {
    if (this.#opened !== null) return this.#opened;
    this.#opened = new NodeSqlDatabase();
    for (const { statements } of MIGRATIONS) for (const statement of statements) this.#opened.run(statement);
    return this.#opened;
  }

  #putTurns(...[tenant, { id, createdAt }, published]: Parameters<Directory["putTurns"]>): void {
    const { turns, seq, upTo, activeAt } = published;
    const values = [tenant, id, seq, JSON.stringify(turns.map(turnRow))] as const;
    const database = this.#database();
    database.transaction(() => {
      database.run(REMOVE_LABELS, ...values);
      database.run(PUT_TURNS, ...values, createdAt);
      database.run(PUT_LABELS, ...values);
      database.run(PUT_PUBLISHED, tenant, id, upTo, createdAt, activeAt ?? null);
    });
  }

  #put({ tenant, agentId, conversationId, ...totals }: ConversationUsage): void {
    const { calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars } = totals;
    const names = [tenant, agentId, conversationId];
    const numbers = [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars];
    this.#database().run(PUT_USAGE, ...names, ...numbers);
  }
}
