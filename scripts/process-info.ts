/** Information about a process, from `/proc` if it exists, otherwise from `ps`. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

export interface ProcessInfo {
  parent: number;
  /** Name of the program, with or without its path. */
  command: string;
}

/** Returns `undefined` for a process that has exited, also for a zombie. */
export function processInfo(pid: number): ProcessInfo | undefined {
  const [, command = "", state = "", parent] =
    (existsSync("/proc/self/stat") ? fromProc(pid) : fromPs(pid)) ?? [];
  return parent === undefined || state.startsWith("Z") ? undefined : { command, parent: Number(parent) };
}

function fromProc(pid: number): RegExpExecArray | null {
  try {
    return /^\d+ \((.*)\) (\S) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return null;
  }
}

function fromPs(pid: number): RegExpExecArray | null {
  try {
    const columns = ["-o", "comm=", "-o", "stat=", "-o", "ppid="];
    const line = execFileSync("ps", [...columns, "-p", String(pid)], { encoding: "utf8" });
    return /^(.*?)\s+(\S+)\s+(\d+)\s*$/.exec(line);
  } catch {
    return null;
  }
}
