/**
 * `keeper.ts PERSIST WRANGLER ARGUMENT…`: runs wrangler in this process's group and ends the group when wrangler ends,
 * when the process that started this one ends (however it does), or when told to.
 *
 * KEEP-1  Nothing of the group outlives the keeper's parent.
 * KEEP-2  Two servers never have one state folder open: the second ends at once and says so.
 * KEEP-3  What was passed on to the Worker in a file (`variables.ts`) is gone when the group is.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { PASSED_FILE, removePassed } from "./variables.ts";

const GRACE_MS = 3_000;
const SQLITE_BUSY = 5;
const [persist = ".", ...command] = process.argv.slice(2);

/**
 * The lock is an exclusive transaction that stays open: the operating system ends it with this process, however that
 * ends. It must stay referenced, for the database is closed when it is collected.
 */
let lock: DatabaseSync | undefined;
process.on("exit", () => lock?.close());
let stopping = false;

/** Takes the lock, or says why it cannot be had. */
function takeLock(): string | undefined {
  try {
    lock = new DatabaseSync(join(persist, "lock.sqlite"), { timeout: GRACE_MS });
    lock.exec("BEGIN EXCLUSIVE");
    return undefined;
  } catch (cause) {
    const isBusy = cause instanceof Error && "errcode" in cause && cause.errcode === SQLITE_BUSY;
    return isBusy
      ? `the state in ${persist} is in use by another Dramatis; end that one, or choose another --persist`
      : `the state in ${persist} cannot be written: ${cause}; choose another --persist`;
  }
}

/** Says why, and ends the group with this process in it. */
function end(reason: string): void {
  if (process.connected) process.send?.(reason);
  removePassed(process.env[PASSED_FILE]);
  process.kill(-process.pid, "SIGKILL");
}

function stop(): void {
  if (stopping) return;
  stopping = true;
  process.kill(-process.pid, "SIGTERM");
  setTimeout(() => end("it did not stop in time"), GRACE_MS);
}

const obstacle = takeLock();
if (obstacle === undefined) {
  const wrangler = spawn(process.execPath, command, { stdio: ["ignore", "inherit", "inherit"] });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, stop);
  process.on("disconnect", stop);
  wrangler.once("exit", (code, signal) => end(`wrangler ended (${signal ?? `exit code ${code}`})`));
  wrangler.once("error", (error) => end(error.message));
} else {
  end(obstacle);
}
