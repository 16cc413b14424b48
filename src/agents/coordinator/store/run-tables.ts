/** The schema of a run's storage. */
import type { ActorSchema } from "../../base/storage/schema-upgrade.ts";

export const RUN_KEY = "run";

export const RUN_SCHEMA: ActorSchema = { of: "run", first: 1, steps: [] };

/** One row a commit: its entries, and the head after it. */
export const CREATE_JOURNAL =
  "CREATE TABLE IF NOT EXISTS run_journal (seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL)";
/** Tokens that have not ended, or are stopped until a retry. */
export const CREATE_TOKENS =
  "CREATE TABLE IF NOT EXISTS run_tokens (id INTEGER PRIMARY KEY, body BLOB NOT NULL)";
/** Fan-outs that are open, or stopped until a retry. */
export const CREATE_FAN_OUTS =
  "CREATE TABLE IF NOT EXISTS run_fan_outs (id INTEGER PRIMARY KEY, body TEXT NOT NULL)";
/** One row for each commit that changes branches of a fan-out: its changes, in the order of the commits. */
export const CREATE_BRANCHES = `CREATE TABLE IF NOT EXISTS run_branches (
  fan_out INTEGER NOT NULL, seq INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (fan_out, seq)) WITHOUT ROWID`;
/** Members of the areas, and the values at the start of a run. */
export const CREATE_VALUES =
  "CREATE TABLE IF NOT EXISTS run_values (name TEXT PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID";
