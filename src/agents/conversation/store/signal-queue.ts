/** The table `signals`: the messages that wait to start their turns. The first message creates it. */
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import type { UserMessage } from "../core/signals.ts";

const CREATE = "CREATE TABLE IF NOT EXISTS signals (n INTEGER PRIMARY KEY, body TEXT NOT NULL)";
const INSERT = "INSERT INTO signals (n, body) VALUES (?, ?)";
const SELECT = "SELECT body FROM signals WHERE n = ?";
const DELETE = "DELETE FROM signals WHERE n < ?";

export class SignalTable {
  constructor(private readonly database: SqlDatabase) {}

  put(messages: readonly { n: number; signal: UserMessage }[]): void {
    if (messages.length === 0) return;
    this.database.run(CREATE);
    for (const { n, signal } of messages) this.database.run(INSERT, n, JSON.stringify(signal));
  }

  /** Throws for a number that the table does not have. */
  get(n: number): UserMessage {
    const [row] = this.database.all<{ body: string }>(SELECT, n);
    if (row === undefined) throw new Error(`Message ${n} of the queue is missing.`);
    return JSON.parse(row.body);
  }

  deleteBefore(n: number): void {
    this.database.run(DELETE, n);
  }
}
