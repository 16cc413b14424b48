import { z } from "zod";
/** Schemas of memories, their provenance and their ranking. */
import { anyJson, count, ids, runId, time } from "./scalars.ts";

const metadata = z.record(z.string(), anyJson);
const fraction = z.number().min(0).max(1);

export const memoryId = z
  .string()
  .regex(/^mem_[0-9A-HJKMNP-TV-Z]{26}$/)
  .meta({ description: "Id of a memory.", example: "mem_01JD0000000000000000000001" });

export const subject = z
  .strictObject({ userId: z.string().exactOptional(), conversationId: z.string().exactOptional() })
  .describe("The user and the conversation that it is about or comes from.");

/** The user and the conversation that a memory is about or comes from. A write over the API sets only the named members. */
export type MemorySubject = z.infer<typeof subject>;

const memoryMembers = {
  id: memoryId,
  agentId: ids.agent,
  key: z.string().exactOptional(),
  content: z.string().describe("The text; in lists and searches its beginning, if it is long."),
  truncated: z
    .literal(true)
    .describe("The text is longer. Reading the memory returns all of it.")
    .exactOptional(),
  type: z.string().meta({ example: "fact" }),
  significance: fraction,
  speaker: z.string().exactOptional(),
  session: z.string().exactOptional(),
  sequence: z.int().exactOptional(),
  time: time.describe("The time of the event, not of the write.").exactOptional(),
  metadata,
  subject,
  state: z
    .enum(["current", "ended", "archived"])
    .describe(
      "`current`: searches find it. `ended`: it was true until `validTo`. `archived`: its text is in the archive, and no search finds it.",
    ),
  validFrom: time,
  validTo: time.exactOptional(),
  tainted: z
    .literal(true)
    .describe("The content comes from an untrusted source, such as a document.")
    .exactOptional(),
  version: z.int().min(1).describe("Counts the changes, from 1."),
  createdAt: time,
  updatedAt: time,
};

export const memory = z.strictObject(memoryMembers).meta({ id: "Memory" });

/** A memory. */
export type Memory = z.infer<typeof memory>;

export const memories = z.strictObject({ memories: z.array(memory) }).meta({ id: "Memories" });

const part = z.number().exactOptional();
export const score = z
  .strictObject({
    total: z.number().describe("The rank's value: results descend by it."),
    relevance: fraction.describe("How well the memory alone answers the query. Comparable between queries."),
    parts: z
      .strictObject({
        ...{ lexical: part, semantic: part, neighbours: part, speaker: part },
        ...{ session: part, time: part, answer: part, significance: part, recency: part },
      })
      .describe("Contribution of each ranking step."),
    terms: z.array(z.string()).describe("The words of the query that were found in it."),
  })
  .meta({ id: "MemoryScore", description: "Why a result has its place." });

/** Explains the rank of a result. Each member is the contribution of one step. */
export type MemoryScore = z.infer<typeof score>;

const match = z.strictObject({ memory, score }).meta({ id: "MemoryMatch" });

export type MemoryMatch = z.infer<typeof match>;

const resultMembers = {
  matches: z.array(match).describe("The best first."),
  semantic: z
    .enum(["all", "some", "none"])
    .describe(
      "The memories with a compared vector: `none` if the embedder did not answer. Words are always compared.",
    ),
};

export const searchResult = z.strictObject(resultMembers).meta({ id: "MemorySearchResult" });

export type MemorySearchResult = z.infer<typeof searchResult>;

export const agentsSearchResult = z
  .strictObject({
    ...resultMembers,
    matches: resultMembers.matches.describe("By descending `relevance`."),
    failed: z
      .array(z.strictObject({ agentId: ids.agent, code: z.string(), message: z.string() }))
      .describe("Agents that did not answer, and why. The others did."),
  })
  .meta({ id: "AgentsMemorySearchResult" });

/** The result of a search over several agents, by descending relevance. */
export type AgentsSearchResult = z.infer<typeof agentsSearchResult>;

export const source = z.strictObject({
  conversationId: z.string(),
  turnId: z.string(),
  entries: z
    .array(z.int())
    .describe("Numbers of journal entries; all of the turn when absent.")
    .exactOptional(),
});

/** The source of a memory: a turn, or entries of it. */
export type MemorySource = z.infer<typeof source>;

export const author = z
  .union([
    z.strictObject({ kind: z.literal("principal"), subject: z.string() }),
    z.strictObject({
      kind: z.enum(["tool", "extraction", "task"]),
      conversationId: z.string(),
      turnId: z.string(),
    }),
    z.strictObject({ kind: z.literal("run"), runId }),
    z.strictObject({ kind: z.enum(["consolidation", "retention", "import"]) }),
  ])
  .meta({ id: "MemoryAuthor", description: "Who changed a memory." });

export type MemoryAuthor = z.infer<typeof author>;

export const logEntry = z
  .strictObject({
    version: z.int().min(1),
    change: z.enum(["written", "updated", "ended", "archived", "restored"]),
    at: time,
    by: author,
    newText: z.literal(true).describe("An update gave the memory another text.").exactOptional(),
    before: z
      .strictObject({ content: z.string(), validFrom: time, validTo: time.exactOptional() })
      .describe("The text before the change, and when it was true; absent where both stayed.")
      .exactOptional(),
    sources: z.array(source),
  })
  .meta({ id: "MemoryLogEntry" });

/** An append-only log entry for a change of a memory. Erasing a memory also erases the contents of its entries. */
export type MemoryLogEntry = z.infer<typeof logEntry>;

export const memoryWhy = z
  .strictObject({
    memory,
    sources: z.array(source),
    derivedFrom: z.array(z.string()).describe("Memories that a consolidation made it of."),
    log: z.array(logEntry).describe("The newest 100 entries, the newest first."),
  })
  .meta({ id: "MemoryWhy", description: "The sources of a memory and its changes." });

/** Why a memory is there. */
export type MemoryWhy = z.infer<typeof memoryWhy>;

export const memoryStatus = z
  .strictObject({
    memories: count,
    archived: count,
    pending: z
      .strictObject({
        records: count,
        embeddings: count,
        vectors: count
          .exactOptional()
          .describe(
            "About how many vectors the deployment's store of vectors does not have yet, or is to delete. Absent without such a store.",
          ),
        error: z.string().exactOptional(),
        since: time.exactOptional(),
      })
      .describe(
        "Changes that a store does not have yet, and why. Reads and searches have them already; `embeddings` are found by their words only.",
      ),
    embedder: z
      .strictObject({ id: z.string(), dimensions: z.int().min(1) })
      .nullable()
      .describe(
        "The embedder of searches. Before the first memory: the embedder of the next search. `null`: searches compare only words.",
      ),
  })
  .meta({ id: "MemoryStatus" });

/** The state of an agent's memory. */
export type MemoryStatus = z.infer<typeof memoryStatus>;

const memoryOutcome = z.discriminatedUnion("status", [
  z.object({ status: z.literal("applied"), memoryId: z.string(), version: z.number() }),
  z.object({ status: z.literal("unchanged"), memoryId: z.string() }),
  z.object({ status: z.literal("refused"), code: z.string(), message: z.string() }),
]);

export type MemoryOutcome = z.infer<typeof memoryOutcome>;

/** The answer to `MEMORY_EXTRACTED`. */
export const learnedMemories = z.object({ outcomes: z.array(memoryOutcome) });
