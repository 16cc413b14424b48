/**
 * `keeper.ts PERSIST SCRIPT ARGUMENT…`: runs `worker-server.ts`, and so wrangler, in this process's group. Ends the group when
 * wrangler exits, when the keeper's parent exits for any reason, or on a signal.
 *
 * KEEP-1  No process of the group outlives the keeper's parent.
 * KEEP-2  Two servers never open the same state folder: the second exits at once with the reason.
 * KEEP-3  The file of variables for the Worker (`variables.ts`) is removed with the group.
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { PASSED_FILE, removePassed } from "./variables.ts";

const GRACE_MS = 3_000;
const SQLITE_BUSY = 5;
const [persist = ".", ...command] = process.argv.slice(2);

/**
 * The lock is an open exclusive transaction: the operating system releases it when this process exits for any reason. It
 * must stay referenced, because garbage collection would close the database.
 */
let lock: DatabaseSync | undefined;
process.on("exit", () => lock?.close());
let stopping = false;

/** Takes the lock. Returns the reason if that fails. */
function takeLock(): string | undefined {
  try {
    lock = new DatabaseSync(join(persist, "lock.sqlite"), { timeout: GRACE_MS });
    lock.exec("BEGIN EXCLUSIVE");
    return undefined;
  } catch (cause) {
    const isBusy = cause instanceof Error && "errcode" in cause && cause.errcode === SQLITE_BUSY;
    return isBusy
      ? `the state in ${persist} is in use by another Dramatis; stop the other process, or choose another --persist`
      : `the state in ${persist} cannot be written: ${cause}; choose another --persist`;
  }
}

/** Reports the reason and kills the group, including this process. */
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

const lockError = takeLock();
if (lockError === undefined) {
  const wrangler = spawn(process.execPath, command, { stdio: ["ignore", "inherit", "inherit"] });
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, stop);
  process.on("disconnect", stop);
  wrangler.once("exit", (code, signal) => end(`wrangler exited (${signal ?? `exit code ${code}`})`));
  wrangler.once("error", (error) => end(error.message));
} else {
  end(lockError);
}
