/** Recordings: ended turns as fixtures, and the result of their replay. */
import { z } from "zod";
import { ENTRY_TYPES } from "./journal.ts";
import { anyValue, ids } from "./scalars.ts";

const object = z.record(z.string(), anyValue);
const milliseconds = z.int().describe("Milliseconds since the epoch.");

const entryFields = {
  type: z.enum(ENTRY_TYPES),
  item: z.int().min(0).exactOptional(),
  data: anyValue.exactOptional(),
};

/** The members that a replay reads before planning does. Planning reads the others. */
const headSchema = z
  .object({ turns: z.int(), sessions: object, active: z.array(z.int()), usage: object, spent: object })
  .catchall(anyValue);
const recordedTurn = z
  .object({
    ...{ n: z.int().min(1), stem: z.string(), agentId: z.string(), input: anyValue },
    caller: z.looseObject({ type: z.string() }),
    issues: object,
    replies: z.array(object),
    operations: z.array(z.looseObject({ item: z.int(), reply: z.int(), name: z.string() })),
  })
  .catchall(anyValue);
const recordedConversation = z
  .object({
    ...{ id: z.string(), tenant: z.string() },
    agents: z.array(z.looseObject({ id: z.string(), chain: object })).min(1),
    participants: z.array(z.looseObject({ type: z.string(), id: z.string() })),
  })
  .catchall(anyValue);

const rowSchema = z.strictObject({
  at: milliseconds,
  before: headSchema.describe("The conversation before the commit, without turns."),
  after: headSchema.describe("The conversation after the commit."),
  entries: z
    .array(z.strictObject({ seq: z.int().min(1), ...entryFields }))
    .min(1)
    .describe("The entries of the turn in the commit."),
});

export const recordingSchema = z
  .strictObject({
    version: z.literal(1),
    turnId: ids.turn,
    record: recordedConversation.describe("The record of the conversation, with the versions of its agents."),
    turn: recordedTurn.describe("The turn with its replies, calls and results."),
    options: z
      .strictObject({
        agentTurns: z.int().exactOptional(),
        approvalTimeoutMs: z.int().exactOptional(),
        clientToolTimeoutMs: z.int().exactOptional(),
        calls: z.strictObject({ depth: z.int(), open: z.int(), tree: z.int() }).exactOptional(),
      })
      .describe("The limits that the application sets."),
    rows: z.array(rowSchema).min(1).describe("The commits of the turn, in order."),
  })
  .meta({ id: "TurnRecording", description: "An ended turn with all recorded results." });

/** An ended turn with all recorded results. */
export type TurnRecording = z.infer<typeof recordingSchema>;

const shownEntry = z
  .strictObject(entryFields)
  .describe("An entry. The data of the end of a call or of a turn may include its result.");

export const replaySchema = z
  .strictObject({
    calls: z.literal(0).describe("Calls of models, tools and other actors: always 0."),
    divergence: z
      .nullable(
        z.strictObject({
          seq: z.int().min(1).describe("Number of the recorded entry, or of the entry before it."),
          expected: z.nullable(shownEntry).describe("As recorded; `null` for an added entry."),
          actual: z.nullable(shownEntry).describe("As made today; `null` for a missing entry."),
        }),
      )
      .describe("The first difference; `null` without a difference."),
    partial: z
      .array(z.strictObject({ seq: z.int().min(1), reason: z.string() }))
      .describe("Entries with a cause that is not stored. The replay takes them as recorded.")
      .exactOptional(),
  })
  .meta({ id: "TurnReplay", description: "Today's decisions on the recorded results of a turn." });

/** Today's decisions on the recorded results of a turn. */
export type TurnReplay = z.infer<typeof replaySchema>;
