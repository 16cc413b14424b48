/** The database with the lists of a tenant, as the API shows it. */
import { z } from "zod";
import { forbidden } from "../shared/errors.ts";
import { mayReadAll, type Principal } from "../shared/principal.ts";

const databaseName = z
  .string()
  .regex(/^DB(_[1-9]\d{0,2})?$/, "Must be `DB`, or `DB_1` to `DB_999`.")
  .meta({ description: "The name of a D1 binding: `DB`, or `DB_1` to `DB_999`.", example: "DB_1" });

export const listsPlace = z
  .strictObject({
    database: databaseName,
    target: databaseName.describe("The database that the lists move to.").exactOptional(),
    continueInMs: z
      .int()
      .nonnegative()
      .describe("The move continues with a request after this time. Without this member no move is left.")
      .exactOptional(),
  })
  .meta({ id: "ListsPlace", description: "The database with the lists of a tenant." });

export type ListsPlace = z.infer<typeof listsPlace>;

export const moveListsSchema = z
  .strictObject({ database: databaseName })
  .meta({ example: { database: "DB_1" } });

/** Throws `FORBIDDEN` unless the principal is an operator or administrator. */
export function checkMayReadPlace(principal: Principal): void {
  if (mayReadAll(principal)) return;
  throw forbidden("Only operators and administrators may read where lists are.");
}

/** Throws `FORBIDDEN` unless the principal is an administrator. */
export function checkMayMove({ roles }: Principal): void {
  if (roles.includes("admin")) return;
  throw forbidden("Only administrators may move lists to another database.");
}
