/**
 * Other forms of a persona and of references to personas.
 *
 * PERSONAFORM-1  `{libraryId: "library/id", version: "2"}` and `{libraryId: "library", id: "id", version: "2"}` mean
 *                `{library, id, version: 2}`.
 * PERSONAFORM-2  `identity.model` and `memory.storeSchema` are rejected. The message names the replacement.
 */
import { z } from "zod";
import type { LibraryIdReference } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { isJsonObject } from "../../shared/json.ts";
import { parseReference } from "../definitions/reference.ts";

export function hasLibraryId(value: unknown): value is LibraryIdReference {
  return isJsonObject(value) && "libraryId" in value;
}

/** A reference with `libraryId`. The output has `library`, `id` and `version`. */
export const libraryIdSchema = z
  .strictObject({
    libraryId: z.string(),
    id: z.string().exactOptional(),
    version: z
      .union(
        [
          z.int().min(1),
          z
            .string()
            .regex(/^[1-9][0-9]{0,14}$/)
            .transform(Number),
        ],
        'A version is an integer from 1, such as "2"',
      )
      .exactOptional(),
  })
  .transform(({ libraryId, id, version }, context) => {
    const text = id === undefined ? libraryId : `${libraryId}/${id}`;
    try {
      const reference = parseReference(text);
      if (reference.version === undefined) return { ...reference, ...defined({ version }) };
    } catch {
      // Reported below.
    }
    context.addIssue({
      code: "custom",
      path: ["libraryId"],
      message: 'Must be "library/id", or the id of a library with the persona\'s `id` beside it.',
    });
    return z.NEVER;
  });

export function refused(message: string) {
  return z.never(message).exactOptional();
}
