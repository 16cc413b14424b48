/** Errors for references to unknown or unusable definitions. */
import { DramatisError, hasCode } from "../../shared/errors.ts";

/** Reports whether a look-up failed because of the reference or its target. */
export function isWrongReference(error: unknown): error is DramatisError {
  return hasCode(error, "NOT_FOUND", "INVALID_INPUT");
}

/** Returns the result of `find`. Adds the place to the error of a wrong reference, if the place is known. */
export async function placed<Found>(place: string | undefined, find: () => Promise<Found>): Promise<Found> {
  try {
    return await find();
  } catch (error) {
    throw withPlace(place, error);
  }
}

/** Like `placed`, for a synchronous check. */
export function placedNow(place: string, check: () => void): void {
  try {
    check();
  } catch (error) {
    throw withPlace(place, error);
  }
}

function withPlace(place: string | undefined, error: unknown): unknown {
  if (place === undefined || !isWrongReference(error)) return error;
  return new DramatisError(error.code, `${place}: ${error.message}`, error.options);
}
