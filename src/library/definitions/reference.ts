/**
 * References to definitions: `library/id@version`, `id` within a library, or an object.
 *
 * REF-1  A parsed reference, printed and parsed again, is the same reference.
 */
import { z } from "zod";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";

export interface DefinitionKey {
  library: string;
  id: string;
}

/** A reference with its library. Without a version, it resolves to the latest version. */
export interface LibraryReference extends DefinitionKey {
  version?: number;
}

const textForm = /^(?:(?<library>[^/@]+)\/)?(?<id>[^/@]+)(?:@(?<version>[1-9][0-9]{0,14}))?$/;

const FORMS = 'A reference is "library/id", "library/id@version" or {library, id, version?}';

/** Accepts references as text and as objects. Checks the form only, not that the target exists. */
export const referenceSchema = z.union(
  [
    z.string().refine((text) => readText(text) !== undefined, FORMS),
    z.strictObject({
      library: definitionIdSchema,
      id: definitionIdSchema,
      version: z.int().min(1, "A version is an integer from 1").exactOptional(),
    }),
  ],
  FORMS,
);

/**
 * Parses a reference. A bare id means a definition of the library `home`. Throws `INVALID_INPUT` for an invalid reference,
 * and for a bare id if there is no `home`.
 */
export function parseReference(reference: DefinitionReference, home?: string): LibraryReference {
  const read = typeof reference === "string" ? readText(reference) : reference;
  if (read === undefined)
    throw invalid(
      `${JSON.stringify(reference)} is not a reference. Write "library/id" or "library/id@version".`,
    );
  const library = read.library ?? home;
  if (library === undefined)
    throw invalid(`The reference "${read.id}" names no library. Write "library/${read.id}".`);
  return { library, id: read.id, ...defined({ version: read.version }) };
}

/** Prints a reference as text. */
export function formatReference({ library, id, version }: LibraryReference): string {
  return version === undefined ? `${library}/${id}` : `${library}/${id}@${version}`;
}

function readText(text: string): { library?: string; id: string; version?: number } | undefined {
  const { library, id, version } = textForm.exec(text)?.groups ?? {};
  if (id === undefined || !definitionIdSchema.safeParse(id).success) return undefined;
  if (library !== undefined && !definitionIdSchema.safeParse(library).success) return undefined;
  return {
    id,
    ...defined({ library, version: version === undefined ? undefined : Number(version) }),
  };
}
