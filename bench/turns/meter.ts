/**
 * Counts what an actor asks of its storage, without changing what it does. Only actors whose name says so are
 * metered, so that timed actors pay nothing for it.
 */
import { type Counts, METERED_PREFIX } from "./protocol.ts";

interface Meter {
  statements: number;
  rows: number;
  /** Cursors whose rows may still be pending when the statement returns. */
  returning: SqlStorageCursor<Record<string, SqlStorageValue>>[];
}

const meters = new WeakMap<DurableObjectStorage, Meter>();

/** Puts a meter on the storage of an actor named `metered-…`; give its state to `super` through this. */
export function metered<Props>(ctx: DurableObjectState<Props>): DurableObjectState<Props> {
  if (!ctx.id.name?.includes(METERED_PREFIX)) return ctx;
  const { storage } = ctx;
  const meter: Meter = { statements: 0, rows: 0, returning: [] };
  meters.set(storage, meter);
  meterSql(storage.sql, meter);
  const addRow = () => {
    meter.rows += 1;
  };
  const addRowIfDeleted = (deleted: unknown) => {
    if (deleted instanceof Promise) void deleted.then(addRowIfDeleted, () => undefined);
    else if (deleted === true) addRow();
  };
  after(storage.kv, "put", addRow);
  after(storage.kv, "delete", addRowIfDeleted);
  after(storage, "put", addRow);
  after(storage, "delete", addRowIfDeleted);
  after(storage, "setAlarm", addRow);
  return ctx;
}

/** What the actor did since it was constructed; zero without a meter. */
export function countsOf(ctx: DurableObjectState): Counts {
  const meter = meters.get(ctx.storage);
  if (meter === undefined) return { statements: 0, rows: 0 };
  for (const cursor of meter.returning.splice(0)) meter.rows += cursor.rowsWritten;
  return { statements: meter.statements, rows: meter.rows };
}

function meterSql(sql: SqlStorage, meter: Meter): void {
  const exec = sql.exec.bind(sql);
  const meteredExec: SqlStorage["exec"] = <Row extends Record<string, SqlStorageValue>>(
    text: string,
    ...bindings: unknown[]
  ) => {
    const statements = split(text);
    const last = statements.pop() ?? text;
    // A call with several statements reports the rows of its last one only, so each is run by itself.
    for (const statement of statements) {
      meter.statements += 1;
      meter.rows += exec(statement).rowsWritten;
    }
    meter.statements += 1;
    const cursor = exec<Row>(last, ...bindings);
    if (/\breturning\b/i.test(last)) meter.returning.push(cursor);
    else meter.rows += cursor.rowsWritten;
    return cursor;
  };
  Object.defineProperty(sql, "exec", { value: meteredExec });
}

/** The statements of one call. Text that could hold a semicolon inside a statement is left whole. */
function split(text: string): string[] {
  if (/\bbegin\b|'/i.test(text)) return [text];
  return text.split(";").filter((statement) => statement.trim() !== "");
}

function after<Key extends string>(
  target: Record<Key, unknown>,
  name: Key,
  count: (result: unknown) => void,
) {
  const method = target[name];
  if (typeof method !== "function") throw new TypeError(`Storage has no method "${name}".`);
  const meteredMethod = (...values: unknown[]): unknown => {
    const result: unknown = Reflect.apply(method, target, values);
    count(result);
    return result;
  };
  Object.defineProperty(target, name, { value: meteredMethod });
}
