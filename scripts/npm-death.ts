/**
 * npm hands no SIGKILL on, and a script whose npm was killed would run on unseen. So the script looks now and then
 * whether its npm is still there.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const LOOK_EVERY_MS = 500;

/** Calls `callback` when the npm that runs this script is gone. Without npm, never. */
export function onNpmDeath(callback: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const npm = npmProcess(parent);
  const timer = setInterval(() => {
    if (process.ppid === parent && isRunning(npm)) return;
    clearInterval(timer);
    callback();
  }, LOOK_EVERY_MS);
  timer.unref();
}

/** npm runs scripts through a shell, which may or may not have stepped aside. */
function npmProcess(parent: number): number {
  const { command, ppid } = describe(parent);
  return /(?:^|\/)(?:sh|bash|dash|zsh|ash|busybox)$/.test(command) ? ppid : parent;
}

function describe(pid: number): { command: string; ppid: number } {
  try {
    const [, command = "", ppid] =
      /^\d+ \((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    return { command, ppid: Number(ppid) };
  } catch {
    return describeByPs(pid);
  }
}

function describeByPs(pid: number): { command: string; ppid: number } {
  try {
    const line = execFileSync("ps", ["-o", "ppid=,comm=", "-p", String(pid)], { encoding: "utf8" }).trim();
    const [, ppid, command = ""] = /^(\d+)\s+(.*)$/s.exec(line) ?? [];
    return { command, ppid: Number(ppid) };
  } catch {
    return { command: "", ppid: 0 };
  }
}

/** Whether a process is there, also one of another user. A zombie is gone: it only waits to be counted. */
export function isRunning(pid: number): boolean {
  if (existsSync("/proc/self/stat")) return describe(pid).state !== "Z" && existsSync(`/proc/${pid}`);
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
