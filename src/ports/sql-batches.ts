/** Groups items into JSON arrays, so that one statement with `json_each` takes many. Pure. */
import { utf8Length } from "../shared/utf8.ts";
import { MAX_VALUE_BYTES } from "./sql-values.ts";

/** Maximum size of a batch's items with a comma each, in bytes: the platform's limit for a value, less the brackets. */
export const MAX_BATCH_BYTES = MAX_VALUE_BYTES - 2;

/** Returns JSON arrays of texts, in order, as few as fit into values. */
export function textBatches(texts: readonly string[]): string[] {
  return jsonBatches(texts.map((text) => JSON.stringify(text)));
}

/** As `textBatches`, for items that are JSON already, each within `MAX_BATCH_BYTES`. */
export function jsonBatches(items: readonly string[]): string[] {
  const batches: string[][] = [];
  let bytes = 0;
  for (const item of items) {
    const size = utf8Length(item) + 1;
    bytes += size;
    if (batches.length === 0 || bytes > MAX_BATCH_BYTES) {
      batches.push([]);
      bytes = size;
    }
    batches.at(-1)?.push(item);
  }
  return batches.map((batch) => `[${batch.join(",")}]`);
}
