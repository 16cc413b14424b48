/** Detects the end of npm. npm cannot forward SIGKILL, so its script polls whether npm still runs. */
import { processInfo } from "./process-info.ts";

const POLL_MS = 500;

/** Calls `callback` when the npm that runs this script has exited. Without npm it never calls it. */
export function onNpmDeath(callback: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const npm = npmProcess(parent);
  const timer = setInterval(() => {
    if (process.ppid === parent && processInfo(npm) !== undefined) return;
    clearInterval(timer);
    callback();
  }, POLL_MS);
  timer.unref();
}

/** Returns the id of npm's process. npm runs scripts through a shell. Some shells replace their process by the script. */
function npmProcess(parent: number): number {
  const info = processInfo(parent);
  const isShell = info !== undefined && /(?:^|\/)(?:sh|bash|dash|zsh|ash|busybox)$/.test(info.command);
  return isShell ? info.parent : parent;
}
