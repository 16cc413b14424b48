/** Checks the requests of a run's callers. */
import { z } from "zod";
import {
  type FollowRun,
  runIdSchema,
  type StartRun,
  startFields,
} from "../../../protocol/coordinator-api.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { canonicalJson, type Json } from "../../../shared/json.ts";
import { mayReadAll, type Principal } from "../../../shared/principal.ts";
import { sha256Hex } from "../../../shared/sha256.ts";
import { validate } from "../../../shared/validation.ts";
import type { RunRecord } from "../core/record.ts";

const startSchema = z.strictObject({ id: runIdSchema, ...startFields });

/** Returns the request, checked. Throws `INVALID_INPUT`. */
export function parseStart(input: StartRun): z.output<typeof startSchema> {
  return validate(startSchema, input);
}

/** The answer of a person: JSON. */
export const answerCheck = z.json();

const followSchema = z.strictObject({ from: z.int().min(0).default(0) });

/** Returns the number of the last entry that a reader has. Throws `INVALID_INPUT`. */
export function parseFollow(options: FollowRun): number {
  return validate(followSchema, options, "/options").from;
}

/** Returns the hash by which a repeated request is recognised. */
export function requestHash({ workflow, input = {}, projectId }: StartRun): Promise<string> {
  // SAFETY: the request has passed its schema, which admits only JSON values.
  return sha256Hex(canonicalJson({ workflow, input, ...defined({ projectId }) } as unknown as Json));
}

/** Throws `NOT_FOUND` unless the principal may see the run: its own ones, and all of its tenant with the role of an operator. */
export function checkReader({ tenant, startedBy }: RunRecord, principal: Principal): void {
  if (principal.tenant === tenant && (principal.subject === startedBy || mayReadAll(principal))) return;
  throw new DramatisError(
    "NOT_FOUND",
    "There is no such run. What belongs to others is answered as not found.",
  );
}
