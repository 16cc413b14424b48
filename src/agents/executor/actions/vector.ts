/**
 * The action `vector`.
 *
 * VECTORACT-1  An action reaches only the indexes that the deployment provides by name, and only the vectors of its own tenant.
 * VECTORACT-2  Input beyond the limits of Vectorize is refused before the request.
 */
import { z } from "zod";
import { ToolError } from "../../../library/tools/tool-error.ts";
import type { Clock } from "../../../ports/clock.ts";
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import {
  MAX_MATCHES,
  MAX_UPSERTED,
  type StoredVector,
  type VectorIndex,
} from "../../../ports/vector-index.ts";
import type { VectorAction } from "../../../protocol/task-definition.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { Json } from "../../../shared/json.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import { inputIssues, issuesText, plainly } from "../../../shared/validation.ts";

export type VectorIndexes = ReadonlyMap<string, VectorIndex>;

export interface VectorRun {
  indexes: VectorIndexes;
  tenant: string;
  signal: AbortSignal;
  clock: Pick<Clock, "timer">;
}

/** Limits of Vectorize: dimensions of a vector, and bytes of metadata in addition to the id. */
const [MAX_DIMENSIONS, MAX_METADATA_BYTES] = [1_536, 10 * 1024 - 700];
const DEFAULT_MATCHES = 5;
const MAX_FILTERS = 10;
const MAX_ID = 200;
/** Timeout of the index, in milliseconds. */
const TIMEOUT_MS = 30_000;

const vector = z.array(z.number()).min(1).max(MAX_DIMENSIONS);
const name = z
  .string()
  .regex(/^[^.$"_][^."]{0,99}$/, 'Must not begin with "$" or "_", or contain dots or quotation marks.');

const querySchema = z.strictObject({
  vector,
  topK: z.int().min(1).max(MAX_MATCHES).default(DEFAULT_MATCHES),
  filter: z
    .record(name, z.union([z.string(), z.number(), z.boolean()]))
    .refine(
      (filter) => Object.keys(filter).length <= MAX_FILTERS,
      `Must have at most ${MAX_FILTERS} members.`,
    )
    .exactOptional(),
});

const upsertSchema = z.strictObject({
  vectors: z
    .array(
      z.strictObject({
        id: z.string().min(1).max(MAX_ID),
        values: vector,
        metadata: z
          .record(name, z.union([z.string(), z.number(), z.boolean(), z.array(z.string())]))
          .refine(
            (metadata) => utf8Length(JSON.stringify(metadata)) <= MAX_METADATA_BYTES,
            `Must have at most ${MAX_METADATA_BYTES} bytes as JSON.`,
          )
          .exactOptional(),
      }),
    )
    .min(1)
    .max(MAX_UPSERTED),
});

/** Runs a `vector` action with the step's input. Throws `ToolError`, and the signal's reason after an abort. */
export async function runVector(
  { index: called, operation }: VectorAction,
  input: Json,
  { indexes, tenant, signal, clock }: VectorRun,
): Promise<Json> {
  const index = indexes.get(called);
  if (index === undefined) {
    const known = [...indexes.keys()].map((one) => `"${one}"`).join(", ");
    const advice = known === "" ? "This deployment has no indexes." : `Known indexes: ${known}.`;
    throw new ToolError(`Unknown index "${called}". ${advice}`, { code: "NOT_FOUND" });
  }
  switch (operation) {
    case "query": {
      const { vector: near, ...options } = parsed(querySchema, input);
      const matches = await inTime(() => index.query(near, { namespace: tenant, ...options }), clock, signal);
      return { matches: matches.map((match) => ({ ...match })) };
    }
    case "upsert": {
      const { vectors } = parsed(upsertSchema, input);
      checkIds(vectors);
      await inTime(() => index.upsert(tenant, vectors), clock, signal);
      return { count: vectors.length };
    }
    default:
      return operation satisfies never;
  }
}

function parsed<Schema extends z.ZodType>(schema: Schema, input: Json): z.output<Schema> {
  const result = schema.safeParse(input, { error: plainly });
  if (result.success) return result.data;
  throw invalid(issuesText(inputIssues(result.error)));
}

function checkIds(vectors: readonly StoredVector[]): void {
  const ids = new Set<string>();
  for (const { id } of vectors) {
    if (ids.has(id)) throw invalid(`/vectors: The id "${id}" occurs twice.`);
    ids.add(id);
  }
}

function invalid(problem: string): ToolError {
  return new ToolError(`Its input is not valid: ${problem}`, { code: "INVALID_INPUT" });
}

async function inTime<Value>(
  work: () => Promise<Value>,
  clock: Pick<Clock, "timer">,
  signal: AbortSignal,
): Promise<Value> {
  try {
    return await withDeadline(clock, TIMEOUT_MS, work, {
      outer: signal,
      reason: unanswered("The index", TIMEOUT_MS),
    });
  } catch (cause) {
    signal.throwIfAborted();
    if (!(cause instanceof DramatisError)) {
      console.error(cause);
      throw new ToolError("The index failed unexpectedly.", { retriable: true, cause });
    }
    const code = cause.code === "INVALID_INPUT" ? "INVALID_INPUT" : "EXECUTION_FAILED";
    throw new ToolError(cause.message, { code, retriable: cause.retriable, cause });
  }
}
