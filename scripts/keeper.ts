/**
 * `keeper.ts PERSIST WRANGLER ARGUMENT…`: runs wrangler in this process's group and ends the group when wrangler ends,
 * when the process that started this one ends (however it does), or when told to.
 *
 * KEEP-1  Nothing of the group outlives the keeper's parent.
 * KEEP-2  Two servers never have one state folder open: the second ends at once and says so.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

const GRACE_MS = 3_000;
const [persist = ".", ...command] = process.argv.slice(2);

/** An exclusive transaction that stays open: the operating system ends it with this process. */
function lockState(): DatabaseSync | null {
  const database = new DatabaseSync(join(persist, "lock.sqlite"), { timeout: GRACE_MS });
  try {
    database.exec("BEGIN EXCLUSIVE");
    return database;
  } catch {
    return null;
  }
}

function end(reason: string): void {
  if (process.connected) process.send?.(reason);
  process.kill(-process.pid, "SIGKILL");
}

const lock = lockState();
if (lock === null) {
  end(`the state in ${persist} is in use by another Dramatis; end that one, or choose another --persist`);
} else {
  const wrangler = spawn(process.execPath, command, { stdio: ["ignore", "inherit", "inherit"] });
  const stop = () => {
    process.kill(-process.pid, "SIGTERM");
    setTimeout(() => end("it did not stop in time"), GRACE_MS);
  };
  let stopping = false;
  const stopOnce = () => {
    if (stopping) return;
    stopping = true;
    stop();
  };
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, stopOnce);
  process.on("disconnect", stopOnce);
  wrangler.once("exit", (code, signal) => end(`wrangler ended (${signal ?? `exit code ${code}`})`));
  wrangler.once("error", (error) => end(error.message));
}
