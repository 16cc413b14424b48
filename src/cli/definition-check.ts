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
import { z } from "zod";
import { dramatisError } from "../shared/errors.ts";

const DEADLINE_MS = 10_000;

/** The message of the process. */
const evaluated = z.object({
  /** The error of a wrong definition. */
  refused: z.string().optional(),
});
type Evaluated = z.infer<typeof evaluated>;

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
    const child = fork(import.meta.filename, [module, `${process.pid}`], {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      signal: AbortSignal.any([signal, deadline]),
      killSignal: "SIGKILL",
    });
    const settle = (message?: unknown) => {
      child.kill("SIGKILL");
      const { data } = evaluated.safeParse(message);
      resolve({ ...data, isLate: data === undefined && deadline.aborted });
    };
    child.once("message", settle);
    // Unlike "exit", this event follows the last message.
    child.once("disconnect", () => settle());
    child.once("error", () => settle());
    // Environments and arguments of processes are limited in size.
    child.send(variables, () => undefined);
  });
}

/** Ends this process soon after its parent. A thread does it, because a module may never yield. */
const END_WITH_PARENT = `const { pid } = process;
const { workerData } = require("node:worker_threads");
setInterval(() => process.ppid === workerData || process.kill(pid, "SIGKILL"), 200);`;

async function evaluate(module: string): Promise<Evaluated> {
  const { asBundled } = await import("../testing/evals/as-bundled.ts");
  const loaded = asBundled(() => import(pathToFileURL(module).href));
  const error = await loaded.then(() => undefined, dramatisError);
  return { refused: error?.code === "INVALID_INPUT" ? error.message : undefined };
}

const [, program, module, parent] = process.argv;
if (program === import.meta.filename && module !== undefined) {
  new Worker(END_WITH_PARENT, { eval: true, workerData: Number(parent) }).unref();
  const send = process.send?.bind(process);
  // The module has no access to the channel.
  Reflect.deleteProperty(process, "send");
  process.once("message", async (variables: Record<string, string>) => {
    Object.assign(process.env, variables);
    send?.(await evaluate(module));
  });
}
