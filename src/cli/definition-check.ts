/**
 * Evaluates the Worker's module in a Node process of its own, as far as `dramatis()`. This file is also the program of that process.
 *
 * DOCTOR-2  A definition that `dramatis()` refuses is one failed check with its error.
 * DOCTOR-3  The module has the variables of the Worker. Its output is dropped. If it exits, hangs or does not load in Node, no check fails.
 */
import { fork } from "node:child_process";
import { pathToFileURL } from "node:url";
import { dramatisError } from "../shared/errors.ts";

const DEADLINE_MS = 10_000;

/** The message of the process. */
interface Evaluated {
  /** The error of a wrong definition. */
  refused: string | undefined;
}

/**
 * Returns the error of a wrong definition in the module at an absolute path. Other errors do not count: a module may need the platform of Workers.
 * `timeout` is in milliseconds.
 */
export function definitionError(
  module: string,
  variables: NodeJS.Dict<string>,
  signal: AbortSignal,
  timeout = DEADLINE_MS,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = fork(import.meta.filename, [module], {
      env: { ...process.env, ...variables },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      signal,
      timeout,
      killSignal: "SIGKILL",
    });
    const settle = (message?: Evaluated) => {
      child.kill("SIGKILL");
      resolve(message?.refused);
    };
    child.once("message", settle);
    // Unlike "exit", this event follows the last message.
    child.once("disconnect", settle);
    child.once("error", () => settle());
  });
}

async function evaluate(module: string): Promise<Evaluated> {
  const { asBundled } = await import("../testing/evals/as-bundled.ts");
  const loaded = asBundled(() => import(pathToFileURL(module).href));
  const error = await loaded.then(() => undefined, dramatisError);
  return { refused: error?.code === "INVALID_INPUT" ? error.message : undefined };
}

const [, program, module] = process.argv;
if (program === import.meta.filename && module !== undefined) process.send?.(await evaluate(module));
