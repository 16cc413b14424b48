/** The schema of stored data: CREATE statements, and the types of values by key. */
import type { Recording, StoredStorage } from "./format.ts";

/** Name of the member with the version. A schema is compared within one version. */
const VERSION_MEMBER = "schema";
/** Name of a member that depends on a recorded definition, not on the schema. */
const FOREIGN_MEMBER = "inputSchema";
const VERSION_KEYS = ["dramatis:sessions"];

export function schemaShape(storages: readonly StoredStorage[]): {
  tables: Record<string, unknown>;
  keys: Record<string, unknown>;
} {
  const tables = Object.fromEntries(
    storages.flatMap(({ tables }) => tables.map(({ name, sql }) => [name, sql.replaceAll(/\s+/g, " ")])),
  );
  const entries = storages.flatMap(({ keyValue }) => keyValue).filter(([key]) => !VERSION_KEYS.includes(key));
  const keys = Object.entries(Object.groupBy(entries, ([key]) => key.replace(/:.*$/s, ":…"))).map(
    ([key, values = []]) => [key, shape(values.map(([, value]) => value))],
  );
  return { tables: sorted(tables), keys: sorted(Object.fromEntries(keys)) };
}

/** Returns the schema version of a recorded actor, or the last migration of a recorded directory. */
export function schemaVersion({ of, storage }: Recording): string {
  const value = (key: string) => storage.keyValue.find(([candidate]) => candidate === key)?.[1];
  const carried = (key: string) =>
    String((isObject(value(key)) && Reflect.get(Object(value(key)), VERSION_MEMBER)) || 1);
  switch (of) {
    case "conversation":
      return carried("conversation");
    case "agent":
      return carried("identity");
    case "sessions":
      return String(value("dramatis:sessions") ?? 1);
    case "memory":
      return carried("identity");
    case "run":
      return carried("run");
    case "trigger":
      return carried("trigger");
    case "directory":
      return String(storage.tables.find(({ name }) => name === "dramatis_migrations")?.rows.at(-1)?.[0]);
    default:
      return of satisfies never;
  }
}

/** Returns the common shape of several values. An optional member has a question mark. */
function shape(values: readonly unknown[]): unknown {
  if (values.length === 0) return "never";
  if (values.every((value) => ArrayBuffer.isView(value))) return "bytes";
  if (values.every(Array.isArray)) return [shape(values.flat())];
  if (!values.every(isObject)) {
    return [...new Set(values.map((value) => (isObject(value) ? "object" : typeof value)))]
      .sort()
      .join(" | ");
  }
  const members = new Set(values.flatMap((value) => Object.keys(value)));
  members.delete(VERSION_MEMBER);
  return sorted(
    Object.fromEntries(
      [...members].map((member) => {
        const having = values.filter((value) => member in value);
        if (member === FOREIGN_MEMBER) return [member, "a JSON Schema"];
        const name = having.length === values.length ? member : `${member}?`;
        return [name, shape(having.map((value) => value[member]))];
      }),
    ),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function sorted<Value>(object: Record<string, Value>): Record<string, Value> {
  return Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)));
}
