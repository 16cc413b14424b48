/** Stores the leases of an agent's budget: one row per conversation that has requested a lease, and the totals. */
import { type Amounts, subtractAmounts } from "../../model/spending.ts";
import { type AgentBudget, inUnits } from "../../protocol/budget.ts";
import type { LeaseAnswer, LeaseRequest } from "../../protocol/budget-lease.ts";
import type { ActorStores } from "../base/storage/schema-upgrade.ts";
import { applyLease, type Lease, type LeaseTotals, NO_LEASE, NO_TOTALS } from "./leases.ts";

/** The totals. Absent before the first request. */
const TOTALS_KEY = "budget";

const CREATE =
  "CREATE TABLE IF NOT EXISTS budget_leases (conversation_id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID";
const READ = "SELECT body FROM budget_leases WHERE conversation_id = ?";
const WRITE =
  "INSERT INTO budget_leases (conversation_id, body) VALUES (?, ?) ON CONFLICT (conversation_id) DO UPDATE SET body = excluded.body";

export class LeaseStore {
  constructor(private readonly stores: ActorStores) {}

  /** Applies a request in the current transaction and returns the answer. */
  apply(conversationId: string, budget: AgentBudget, request: LeaseRequest): LeaseAnswer {
    const { database, keyValue } = this.stores;
    database.run(CREATE);
    const [row] = database.all<{ body: string }>(READ, conversationId);
    // SAFETY: only this method writes the column.
    const before = row === undefined ? NO_LEASE : (JSON.parse(row.body) as Lease);
    const { lease, totals, answer } = applyLease(budget, this.#totals() ?? NO_TOTALS, before, request);
    if (lease !== before) {
      database.run(WRITE, conversationId, JSON.stringify(lease));
      keyValue.put(TOTALS_KEY, totals);
    }
    return answer;
  }

  /** Returns the budget members of the agent's view. Empty before the first request. */
  view(): { spent?: Required<AgentBudget>; leased?: Required<AgentBudget> } {
    const totals = this.#totals();
    if (totals === undefined) return {};
    return { spent: viewOf(totals.spent), leased: viewOf(subtractAmounts(totals.held, totals.spent)) };
  }

  #totals(): LeaseTotals | undefined {
    return this.stores.keyValue.get<LeaseTotals>(TOTALS_KEY);
  }
}

function viewOf({ tokens, nanoDollars, modelCalls }: Amounts): Required<AgentBudget> {
  return { tokens, usd: inUnits(nanoDollars, "usd"), modelCalls };
}
