/** Checks bound values and keys in the same way for every database, so all databases store the same values (SQL-2). */
import { type DramatisError, invalid, tooLarge } from "../shared/errors.ts";
import { fitsUtf8 } from "../shared/utf8.ts";

/** The platform's limit for a value and for a row, in bytes. Local runtimes do not enforce it. */
export const MAX_VALUE_BYTES = 2_000_000;

/** The platform's limit for a key, in bytes. */
const MAX_KEY_BYTES = 2048;

/** Throws `INVALID_INPUT` or `TOO_LARGE` if a backend would change or refuse one of `values`. */
export function checkSqlValues(values: readonly unknown[]): void {
  for (const value of values) checkSqlValue(value);
}

/** Throws `INVALID_INPUT` if `key` cannot be a key. */
export function checkKey(key: string): void {
  if (key === "" || !key.isWellFormed() || !fitsUtf8(key, MAX_KEY_BYTES))
    throw invalid(`A key must be well-formed text of 1 to ${MAX_KEY_BYTES} bytes.`);
}

/** Throws `INVALID_INPUT` if a transaction's body was asynchronous: the transaction would commit before its work is done. */
export function refusePromise<Result>(result: Result): Result {
  if (result instanceof Promise) {
    result.catch(() => {});
    throw invalid("A transaction's body must be synchronous: await before or after it.");
  }
  return result;
}

function checkSqlValue(value: unknown): void {
  if (typeof value === "string") {
    checkText(value);
  } else if (typeof value === "number") {
    checkNumber(value);
  } else if (value instanceof Uint8Array) {
    if (value.byteLength > MAX_VALUE_BYTES) throw tooLargeValue();
  } else if (value !== null) {
    throw invalid(
      `A ${typeof value} cannot be bound to a statement: bind text, a number, bytes (Uint8Array) or null.`,
    );
  }
}

function checkText(text: string): void {
  if (!text.isWellFormed())
    throw invalid(
      "Text with a lone surrogate cannot be stored: call toWellFormed() on it first, or send whole characters.",
    );
  if (!fitsUtf8(text, MAX_VALUE_BYTES)) throw tooLargeValue();
}

function checkNumber(number: number): void {
  if (Number.isNaN(number)) throw invalid("NaN cannot be stored: bind null instead.");
  if (Number.isInteger(number) && !Number.isSafeInteger(number))
    throw invalid(`The integer ${number} is beyond 2^53: bind it as text.`);
}

function tooLargeValue(): DramatisError {
  return tooLarge(`A stored value may have at most ${MAX_VALUE_BYTES} bytes: split it over several rows.`);
}
