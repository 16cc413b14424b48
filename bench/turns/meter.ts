/**
 * Counts the storage operations of an actor without changing them. Only actors with a marked name are metered, so that
 * timed actors have no overhead.
 */
import { type Counts, METERED_PREFIX } from "./protocol.ts";

interface Meter {
  statements: number;
  rows: number;
  /** Cursors that may still have pending rows. */
  returning: SqlStorageCursor<Record<string, SqlStorageValue>>[];
}

const meters = new WeakMap<DurableObjectStorage, Meter>();

/** Adds a meter to the storage of an actor named `metered-…`. Pass the returned state to `super`. */
export function metered<Props>(ctx: DurableObjectState<Props>): DurableObjectState<Props> {
  return ctx.id.name?.includes(METERED_PREFIX) ? withMeter(ctx) : ctx;
}

/** Adds a meter to the storage of an actor. */
export function withMeter<Props>(ctx: DurableObjectState<Props>): DurableObjectState<Props> {
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

/** Returns the counts since construction; zero without a meter. */
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
    // A call with several statements reports only the rows of the last statement, so each statement runs separately.
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

/** Splits a call into statements. If a semicolon may be part of a statement, the text stays whole. */
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
