/**
 * Runs the Worker's main file in a Node process of its own, up to the call of `dramatis()`. This file is also the program of that process.
 *
 * DOCTOR-2  A definition that `dramatis()` refuses is one failed check with its error.
 * DOCTOR-3  The module has the variables of the Worker. Its output is dropped. If it exits or does not load in Node, no check fails.
 * DOCTOR-4  The module is stopped at its deadline, with a warning. Its process ends with the doctor, for any reason of its end.
 */
import { fork } from "node:child_process";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { dramatisError } from "../shared/errors.ts";

const DEADLINE_MS = 10_000;

/** The message of the process. */
interface Evaluated {
  /** The error of a wrong definition. */
  refused?: string | undefined;
}

/**
 * Returns the error of a wrong definition in the module at an absolute path. Other errors do not count: a module may need the platform of Workers.
 * `timeout` is in milliseconds. `isLate` reports that it was over before the module was loaded.
 */
export function checkDefinitions(
  module: string,
  variables: NodeJS.Dict<string>,
  signal: AbortSignal,
  timeout = DEADLINE_MS,
): Promise<Evaluated & { isLate: boolean }> {
  const deadline = AbortSignal.timeout(timeout);
  return new Promise((resolve) => {
    const child = fork(import.meta.filename, [module], {
      env: { ...process.env, ...variables },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      signal: AbortSignal.any([signal, deadline]),
      killSignal: "SIGKILL",
    });
    const settle = (message?: Evaluated) => {
      child.kill("SIGKILL");
      resolve({ ...message, isLate: message === undefined && deadline.aborted });
    };
    child.once("message", settle);
    // Unlike "exit", this event follows the last message.
    child.once("disconnect", settle);
    child.once("error", () => settle());
  });
}

/** Ends this process soon after its parent. A thread does it, because a module may never yield. */
const END_WITH_PARENT = `const { pid, ppid } = process;
setInterval(() => process.ppid === ppid || process.kill(pid, "SIGKILL"), 200);`;

async function evaluate(module: string): Promise<Evaluated> {
  const { asBundled } = await import("../testing/evals/as-bundled.ts");
  const loaded = asBundled(() => import(pathToFileURL(module).href));
  const error = await loaded.then(() => undefined, dramatisError);
  return { refused: error?.code === "INVALID_INPUT" ? error.message : undefined };
}

const [, program, module] = process.argv;
if (program === import.meta.filename && module !== undefined) {
  new Worker(END_WITH_PARENT, { eval: true }).unref();
  process.send?.(await evaluate(module));
}
