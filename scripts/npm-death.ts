/**
 * npm hands no SIGKILL on, and a script whose npm was killed would run on unseen. So the script looks now and then
 * whether its npm is still there.
 */
import { processInfo } from "./process-info.ts";

const LOOK_EVERY_MS = 500;

/** Calls `callback` when the npm that runs this script is gone. Without npm, never. */
export function onNpmDeath(callback: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const npm = npmProcess(parent);
  const timer = setInterval(() => {
    if (process.ppid === parent && processInfo(npm) !== undefined) return;
    clearInterval(timer);
    callback();
  }, LOOK_EVERY_MS);
  timer.unref();
}

/** npm runs scripts through a shell, which may or may not have stepped aside. */
function npmProcess(parent: number): number {
  const info = processInfo(parent);
  const isShell = info !== undefined && /(?:^|\/)(?:sh|bash|dash|zsh|ash|busybox)$/.test(info.command);
  return isShell ? info.parent : parent;
}
