/** The ports of a life with a defect. */
import type { ActorDatabase, SqlValue } from "../../src/ports/sql-database.ts";
import type { Variant } from "./life.ts";

/** Leaves out the messages of a request that begin with a text. */
export function withoutMessage(start: string): (body: string) => string {
  return (body) => {
    const { messages, ...rest }: { messages: { content: unknown }[] } = JSON.parse(body);
    const left = messages.filter(({ content }) => !JSON.stringify(content).includes(start));
    return JSON.stringify({ ...rest, messages: left });
  };
}

/** Rolls back the commits with matching entries, and reports success. */
export function forgetting(entry: RegExp): (database: ActorDatabase) => ActorDatabase {
  return (database) => forgettingIn(database, entry);
}

function forgettingIn(database: ActorDatabase, entry: RegExp): ActorDatabase {
  const forgotten = new Error("Forgotten.");
  let isForgotten = false;
  return {
    ...database,
    run: (statement, ...values) => {
      const [, , entries = ""] = values;
      if (statement.startsWith("INSERT INTO journal")) isForgotten = entry.test(String(entries));
      return database.run(statement, ...values);
    },
    transaction: (body) => {
      let result: ReturnType<typeof body> | undefined;
      isForgotten = false;
      try {
        return database.transaction(() => {
          result = body();
          if (isForgotten) throw forgotten;
          return result;
        });
      } catch (error) {
        if (error !== forgotten) throw error;
        // SAFETY: the body has returned it.
        return result as ReturnType<typeof body>;
      }
    },
  };
}

/** Replaces the body of a request. */
export function sending(change: (body: string) => string): NonNullable<Variant["fetch"]> {
  return (fetch) => async (url, init) =>
    fetch(url, { ...init, body: change(await new Response(init.body ?? null).text()) });
}

/** Replaces each text that is written. */
export function storing(change: (value: string) => string): (database: ActorDatabase) => ActorDatabase {
  return (database) => ({
    ...database,
    run: (statement, ...values) =>
      database.run(statement, ...values.map((value) => (typeof value === "string" ? change(value) : value))),
  });
}

/** Removes the number of crashes from a turn's row. */
export function withoutCount(value: SqlValue): SqlValue {
  return typeof value === "string" ? value.replace(/"recoveries":\d+,/, "") : value;
}
