/** Knows the code of the application while it runs, so that its lines in the log are no errors of the runtime. */
import { AsyncLocalStorage } from "node:async_hooks";

const inside = new AsyncLocalStorage<boolean>();

export function inUserCode<Value>(run: () => Value): Value {
  return inside.run(true, run);
}

/** Runs code of the runtime that the application calls. */
export function inRuntime<Value>(run: () => Value): Value {
  return inside.run(false, run);
}

export function isUserCode(): boolean {
  return inside.getStore() === true;
}
