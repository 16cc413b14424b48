/** The usage part of the directory in a simulation, with the production statement on SQLite. */

import { MIGRATIONS } from "../../src/d1/d1-tables.ts";
import type { ConversationUsage } from "../../src/d1/directory.ts";
import { PUT_USAGE } from "../../src/d1/statements.ts";
import type { UsageTotals } from "../../src/model/usage.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { WorldClock } from "./clocks.ts";
import { type FaultPlane, InjectedError } from "./faults.ts";
import type { Caller } from "./model.ts";

const LATENCY_MS = 10;

export type PutUsage = (usage: ConversationUsage) => Promise<void>;

export class UsageDirectory {
  #opened: NodeSqlDatabase | null = null;

  constructor(
    private readonly clock: WorldClock,
    private readonly plane: FaultPlane,
  ) {}

  /** Returns the directory as one life of an actor sees it. Sent data arrives even if the sender dies. */
  putFor(caller: Caller): PutUsage {
    return async (usage) => {
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
      this.#put(usage);
      dies();
      if (isLost) throw new InjectedError("the directory's answer was lost");
    };
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

  #put({ tenant, agentId, conversationId, ...totals }: ConversationUsage): void {
    const { calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars } = totals;
    const names = [tenant, agentId, conversationId];
    const numbers = [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars];
    this.#database().run(PUT_USAGE, ...names, ...numbers);
  }
}
