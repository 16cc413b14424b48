/** Cursors of the directory's lists: the key of the last row of a page, opaque to clients. */
import { z } from "zod";
import { DramatisError } from "./errors.ts";

/** The key that orders a list: milliseconds since the epoch, then the id. */
export interface ListKey {
  createdAt: number;
  id: string;
}

const keySchema = z.tuple([z.int(), z.string()]);

export function encodeCursor({ createdAt, id }: ListKey): string {
  return btoa(JSON.stringify([createdAt, id]))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Throws `INVALID_INPUT` for text that `encodeCursor` did not give. */
export function decodeCursor(cursor: string): ListKey {
  try {
    const [createdAt, id] = keySchema.parse(
      JSON.parse(atob(cursor.replaceAll("-", "+").replaceAll("_", "/"))),
    );
    return { createdAt, id };
  } catch (cause) {
    throw new DramatisError("INVALID_INPUT", "This is not a cursor of this list.", {
      errors: [{ path: "/cursor", message: "Must be the `nextCursor` of an answer." }],
      cause,
    });
  }
}
