/** Processes on this machine, from `/proc` if it exists, otherwise from `ps`. For tests that end processes. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

export interface RunningProcess {
  pid: number;
  parent: number;
  /** Command line, joined by spaces. */
  command: string;
}

/** Reports whether a process of the server at `url` runs the Worker. Another workerd, in front of it, has the server's port. */
export function runsTheWorker({ command }: Pick<RunningProcess, "command">, url: string): boolean {
  return command.includes("workerd serve ") && !command.includes(`=entry=${new URL(url).host} `);
}

/** Returns a process and all of its descendants, nearest first. */
export function processTree(root: number): RunningProcess[] {
  const all = runningProcesses();
  const tree = all.filter(({ pid }) => pid === root);
  for (const member of tree) tree.push(...all.filter(({ parent }) => parent === member.pid));
  return tree;
}

/** Returns the processes of `pids` that still run. */
function survivors(pids: readonly number[]): RunningProcess[] {
  return runningProcesses().filter(({ pid }) => pids.includes(pid));
}

/** Kills all of them at once and waits until they have exited. */
export async function killAll(pids: readonly number[]): Promise<void> {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It exited with a process that was killed before.
    }
  }
  await waitUntilGone(pids);
}

/** Waits until all `pids` have ended. After `patienceMs` it throws with the remaining pids. */
export async function waitUntilGone(pids: readonly number[], patienceMs = 10_000): Promise<void> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const left = survivors(pids);
    if (left.length === 0) return;
    if (Date.now() > deadline) throw new Error(`Still running: ${JSON.stringify(left)}`);
    await delay(20);
  }
}

function runningProcesses(): RunningProcess[] {
  return existsSync("/proc/self/stat") ? fromProc() : fromPs();
}

function fromProc(): RunningProcess[] {
  return readdirSync("/proc").flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      const [, state, parent] =
        /^\d+ \(.*\) (\S) (\d+)/s.exec(readFileSync(`/proc/${entry}/stat`, "utf8")) ?? [];
      const command = readFileSync(`/proc/${entry}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      // A zombie has exited; its parent has not collected it.
      return state === "Z" ? [] : [{ pid: Number(entry), parent: Number(parent), command }];
    } catch {
      return [];
    }
  });
}

function fromPs(): RunningProcess[] {
  const lines = execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat=,args="], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pid, parent, state = "", command = ""] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined || state.startsWith("Z")
      ? []
      : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}
