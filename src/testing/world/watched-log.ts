/** The log of the runtime while a test app works. */
import { DramatisError } from "../../shared/errors.ts";
import { InjectedFault } from "../faults.ts";
import { isDeath } from "./mortal-actor.ts";
import { isUserCode } from "./user-code.ts";

export function isPlanned(error: unknown): boolean {
  if (error instanceof DramatisError) return error.retriable;
  return isDeath(error) || error instanceof InjectedFault;
}

/** Keeps planned faults, and in simulations the errors of tools, out of the log, until the returned function is called. */
export function watchLog(incidents: string[], isSimulation: boolean): () => void {
  const { error, warn } = console;
  console.error = (...values: unknown[]) => {
    if (isUserCode()) return error(...values);
    if (values.some(isPlanned)) return;
    if (String(values[0]).startsWith("A tool failed")) return isSimulation ? undefined : error(...values);
    incidents.push(
      `Logged: ${values.map((value) => (value instanceof Error ? value.stack : value)).join(" ")}`,
    );
    error(...values);
  };
  console.warn = (...values: unknown[]) => {
    const isExpected = String(values[0]).startsWith("The caller of a batch of tools is lost");
    if (isUserCode() || !isExpected) warn(...values);
  };
  return () => Object.assign(console, { error, warn });
}
