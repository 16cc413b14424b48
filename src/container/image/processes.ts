/** The processes of a command in a container. */
import { readdirSync, readFileSync } from "node:fs";

/** Scans for processes that a command left. A process can start others during a scan. */
const MAX_SCANS = 5;

/** Kills a process, or the group `-pid`. */
export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/**
 * Kills the processes that a command left, also outside of its group. They would change the files of later commands. The main program of a
 * container kills all other processes. On a shared machine, a process that has deleted the variable `mark` of the command runs on.
 */
export function killLeft(mark: string): void {
  const isMain = process.pid === 1;
  if (isMain) kill(-1);
  for (let scan = 0; !isMain && scan < MAX_SCANS; scan++) {
    const left = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && environOf(name).includes(mark));
    if (left.length === 0) return;
    for (const pid of left) kill(Number(pid));
  }
}

function environOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
}
