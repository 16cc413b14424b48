/** Memory and processor time of a process. Linux only. */
import { readFileSync } from "node:fs";

/** Length of a clock tick in milliseconds: Linux reports 100 a second on every platform. */
const TICK_MS = 10;

/** Returns the resident memory of a process, in bytes. */
export function rssOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

/** Returns the processor time that a process has used, in milliseconds. */
export function cpuOf(pid: number): number {
  // Takes the fields after the name. The name is in parentheses and may contain spaces. User and system time are 12th and 13th.
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
