/** What the adapters use of a Durable Object's storage; `ctx.storage` fits, and so does a counting stand-in. */
export interface ActorStorage {
  readonly sql: Pick<SqlStorage, "exec">;
  readonly kv: SyncKvStorage;
  transactionSync<Result>(body: () => Result): Result;
}
