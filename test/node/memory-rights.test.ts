/** The changes that readers may make: permission to see a memory does not permit a change. */
import { describe, expect, test } from "vitest";
import { extractedSchema } from "../../src/memory/corpus/schemas.ts";
import type {
  ExtractedMemories,
  MemoryOperation,
  MemoryReader,
  MemoryScope,
  MemoryWriter,
} from "../../src/protocol/memory.ts";
import type { MemoryAuthor, MemorySubject } from "../../src/protocol/memory-schemas.ts";
import { EDITOR, MemoryWorld, WRITER } from "../support/memory-world.ts";

const TOOL: MemoryAuthor = { kind: "tool", conversationId: "conv_1", turnId: "turn_1" };

const conversation = (scope: MemoryScope, userId?: string): MemoryReader => ({
  scope,
  conversationId: "conv_1",
  ...(userId === undefined ? {} : { userId }),
});

const writerOf = (reader: MemoryReader): MemoryWriter => ({ reader, author: TOOL });

async function extract(
  world: MemoryWorld,
  { scope, subject, operations }: Pick<ExtractedMemories, "scope" | "subject" | "operations">,
  operationId = "op_1",
) {
  const body = extractedSchema.parse({
    ...{ operationId, scope, subject, operations, used: [], time: "2025-06-01T10:00:00.000Z" },
    source: { conversationId: "conv_1", turnId: "turn_1" },
  });
  const prepared = await world.extractions.prepare(body);
  return world.corpus.ports.database.transaction(() => world.extractions.apply(body, prepared).outcomes);
}

type Whose = "none" | "adas" | "bobs" | "own";

const SUBJECTS: Record<Whose, MemorySubject | undefined> = {
  none: undefined,
  adas: { userId: "ada", conversationId: "conv_2" },
  bobs: { userId: "bob", conversationId: "conv_3" },
  own: { userId: "ada", conversationId: "conv_1" },
};

/** A memory of each subject, as an author wrote it. */
async function filled() {
  const world = new MemoryWorld();
  const ids = {} as Record<Whose, string>;
  for (const whose of ["none", "adas", "bobs", "own"] as const) {
    const subject = SUBJECTS[whose];
    const [memory] = await world.corpus.write(WRITER, [
      { content: `The code of the door of ${whose}.`, ...(subject && { subject }) },
    ]);
    ids[whose] = memory?.id ?? "";
  }
  return { world, ids };
}

describe("MEMCHANGE-1 changes", () => {
  test.each<[string, MemoryReader, Partial<Record<Whose, string>>]>([
    [
      "a conversation of a user changes that user's",
      conversation("user", "ada"),
      { none: "FORBIDDEN", bobs: "NOT_FOUND" },
    ],
    [
      "a conversation without a user changes no user's",
      conversation("user"),
      { none: "FORBIDDEN", adas: "NOT_FOUND", bobs: "NOT_FOUND", own: "NOT_FOUND" },
    ],
    [
      "a conversation changes its own",
      conversation("conversation", "ada"),
      { none: "FORBIDDEN", adas: "NOT_FOUND", bobs: "NOT_FOUND" },
    ],
    [
      "in the scope of the agent it changes all but memories without a subject",
      conversation("agent", "ada"),
      { none: "FORBIDDEN" },
    ],
    ["so does a run without a user", conversation("agent"), { none: "FORBIDDEN" }],
    ["an author changes all", EDITOR, {}],
    [
      "a member changes memories about that member",
      { principal: { subject: "ada", tenant: "acme", roles: ["member"] } },
      { none: "NOT_FOUND", bobs: "NOT_FOUND" },
    ],
  ])("%s", async (_, reader, refusals) => {
    const writer = writerOf(reader);
    for (const whose of ["none", "adas", "bobs", "own"] as const) {
      const { world, ids } = await filled();
      const { corpus } = world;
      const attempts = [
        () => corpus.update(writer, ids[whose], { content: "Changed." }),
        () => corpus.archive(writer, ids[whose]),
        () => corpus.delete(writer, ids[whose]),
      ];
      const before = await corpus.read(EDITOR, ids[whose]);
      for (const attempt of attempts) {
        const code = refusals[whose];
        if (code === undefined) await attempt();
        else await expect(attempt()).rejects.toMatchObject({ code });
      }
      if (refusals[whose] !== undefined) expect(await corpus.read(EDITOR, ids[whose])).toEqual(before);
    }
  });

  test("a memory that the agent itself wrote without a subject is changed in the scope of the agent alone, until an author has changed it", async () => {
    const { corpus } = new MemoryWorld();
    const agent = writerOf(conversation("agent"));
    const [memory] = await corpus.write(agent, [{ content: "The agent's own." }]);
    const id = memory?.id ?? "";
    await corpus.update(agent, id, { content: "The agent's own, corrected." });
    const user = writerOf(conversation("user", "ada"));
    await expect(corpus.delete(user, id)).rejects.toMatchObject({ code: "FORBIDDEN" });
    await corpus.update(WRITER, id, { content: "An author's now." });
    await expect(corpus.delete(agent, id)).rejects.toMatchObject({ code: "FORBIDDEN" });
  });
});

describe("EXTRACTED-2 MEMCHANGE-1 extractions", () => {
  test.each<MemoryScope>(["user", "conversation", "agent"])(
    "in the scope %s shared memories are offered for reading, and each change of them is refused by name",
    async (scope) => {
      const world = new MemoryWorld();
      const [shared] = await world.corpus.write(WRITER, [{ content: "The office closes at six." }]);
      const id = shared?.id ?? "";
      const offer = { operationId: "op_1", query: "When does the office close?" };
      const offered = await world.extractions.offer(conversation(scope, "ada"), offer);
      expect(offered).toMatchObject([{ id, readOnly: true }]);
      expect(await world.extractions.offer(conversation(scope, "ada"), offer)).toEqual(offered);
      const operations: MemoryOperation[] = [
        { op: "update", memoryId: id, content: "The office never closes." },
        { op: "archive", memoryId: id },
        { op: "delete", memoryId: id },
      ];
      const outcomes = await extract(world, {
        ...{ scope, operations },
        subject: { userId: "ada", conversationId: "conv_1" },
      });
      for (const outcome of outcomes)
        expect(outcome).toMatchObject({
          ...{ status: "refused", code: "FORBIDDEN" },
          message: expect.stringContaining(id),
        });
      expect(await world.corpus.read(EDITOR, id)).toEqual(shared);
    },
  );

  test.each<MemoryScope>(["user", "conversation", "agent"])(
    "in the scope %s a key of a conversation without a user overwrites no memory of another subject",
    async (scope) => {
      const world = new MemoryWorld();
      const key = "seat";
      const theirs = await world.corpus.write(WRITER, [
        { key, content: "All sit at windows." },
        { key, content: "Ada sits at the door.", subject: { userId: "ada", conversationId: "conv_2" } },
      ]);
      const subject = { conversationId: "conv_1" };
      const operations: MemoryOperation[] = [{ op: "write", key, content: "Nobody sits." }];
      const [outcome] = await extract(world, { scope, subject, operations });
      expect(outcome).toMatchObject({ status: "applied", version: 1 });
      const again = await extract(
        world,
        { scope, subject, operations: [{ op: "write", key, content: "Somebody sits." }] },
        "op_2",
      );
      expect(again).toMatchObject([{ ...outcome, version: 2 }]);
      const { items } = await world.corpus.list(EDITOR, { order: "asc" });
      expect(items.filter(({ id }) => theirs.some((one) => one.id === id))).toEqual(theirs);
    },
  );

  test("leave a shared memory unchanged, without the turn as a source", async () => {
    const world = new MemoryWorld();
    const [shared] = await world.corpus.write(WRITER, [{ content: "The office closes at six." }]);
    const operations: MemoryOperation[] = [{ op: "write", content: "the office closes at six" }];
    const outcomes = await extract(world, {
      ...{ scope: "user", operations },
      subject: { conversationId: "conv_1" },
    });
    expect(outcomes).toEqual([{ status: "unchanged", memoryId: shared?.id }]);
    expect((await world.corpus.why(EDITOR, shared?.id ?? "")).sources).toEqual([]);
  });

  test("MEMSTORE-2 a key without a subject is a memory of all, and not one of a conversation", async () => {
    const { corpus } = new MemoryWorld();
    const [own] = await corpus.write(WRITER, [
      { key: "seat", content: "Own.", subject: { conversationId: "conv_1" } },
    ]);
    const [shared] = await corpus.write(WRITER, [{ key: "seat", content: "Shared." }]);
    expect(shared?.id).not.toBe(own?.id);
    const [again] = await corpus.write(WRITER, [{ key: "seat", content: "Shared again." }]);
    expect(again).toMatchObject({ id: shared?.id, version: 2 });
  });
});
