/**
 * Files of conversations with a wrong line: an imported conversation can be read and continues, and a refused file
 * leaves no data.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DramatisError } from "../../src/shared/errors.ts";
import type { Json } from "../../src/shared/json.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { VERSION } from "../../src/shared/version.ts";
import { anything, BEYOND, placesIn, withValue } from "../support/changed-json.ts";
import { backupOf } from "../support/releases/backups.ts";
import { decodeRecording, loadStorage } from "../support/releases/format.ts";
import { type Life, Stage } from "../support/releases/stage.ts";
import { conversationViews } from "../support/releases/views.ts";

const RECORDING = join(import.meta.dirname, "../fixtures/releases", VERSION, "completed.jsonl");
const ADMIN: Principal = { subject: "ada", tenant: "acme", roles: ["admin"] };

/** A line of a file. */
type Loose = ReturnType<typeof JSON.parse>;

async function linesOf(stage: Stage, life: Life): Promise<string[]> {
  const principal = { ...ADMIN, tenant: life.runtime.state.record.tenant };
  const text = await new Response(backupOf(stage, life).export(principal)).text();
  return text.trimEnd().split("\n");
}

/** Returns the file of a conversation as the current release has stored it. */
async function recordedLines(): Promise<string[]> {
  const { now, storage } = decodeRecording(readFileSync(RECORDING, "utf8"));
  const stage = new Stage(now, 11);
  loadStorage(storage, stage.database, stage.keyValue);
  return linesOf(stage, stage.begin());
}

/** Reads everything, exports it, and lets a turn run. */
async function exerciseAll(stage: Stage, life: Life): Promise<void> {
  conversationViews(life);
  const { state } = life.runtime;
  for (const { id } of life.queries.turns().items) {
    life.queries.trace(state, id, { now: 0, principal: { subject: "ada", tenant: "acme", roles: [] } });
    life.queries.pastTurns(state, { turnId: id, agentId: state.record.agents[0].id });
  }
  expect((await linesOf(stage, life)).length).toBeGreaterThan(3);
  stage.isOpen = true;
  const text = JSON.stringify({ key: "next", replies: [[{ text: "Next." }]] });
  const caller = { type: "user", userId: "ada" } as const;
  await life.runtime.accept({ type: "conversation.user.message", caller, data: { content: text } });
  await stage.until(() => !life.runtime.busy);
  conversationViews(life);
}

test("BACKUP-3 BACKUP-15 the recorded conversation is imported, and continues", async () => {
  const lines = await recordedLines();
  const stage = new Stage(undefined, 13);
  const life = stage.begin();
  await backupOf(stage, life).import(ADMIN, { from: 1, lines, isLast: true });
  const values = (file: string[]) => file.slice(2).map((line): Json => JSON.parse(line));
  expect(values(await linesOf(stage, life))).toEqual(values(lines));
  await exerciseAll(stage, life);
});

test.each<[what: string, of: (line: Loose) => boolean, change: (line: Loose) => unknown]>([
  ["a turn with an invalid stem", ({ turn }) => turn !== undefined, ({ turn }) => (turn.stem = "conv_1")],
  ["a turn without events", ({ turn }) => turn !== undefined, ({ turn }) => delete turn.events],
  [
    "a message with an invalid part",
    ({ event }) => event?.action === "user_message",
    ({ event }) => (event.content = [null]),
  ],
  [
    "an operation with attempts without end",
    ({ event }) => event?.metadata?.operations?.length > 0,
    ({ event }) => (event.metadata.operations[0].attempt = 2 ** 52),
  ],
  [
    "a model call with attempts that no span can have",
    ({ turn }) => turn?.calls?.length > 0,
    ({ turn }) => (turn.calls[0].attempts = null),
  ],
  [
    "a reply without a text",
    ({ event }) => event?.action === "agent_message",
    ({ event }) => (event.content = 0),
  ],
  [
    "late entries that do not ascend",
    ({ turn }) => turn !== undefined,
    ({ turn }) => (turn.lateEntries = [9, 8]),
  ],
  [
    "a late entry that no journal has",
    ({ turn }) => turn !== undefined,
    ({ turn }) => (turn.lateEntries = [0]),
  ],
  ["a time that no date has", ({ event }) => event !== undefined, ({ event }) => (event.timestamp = 9e15)],
  [
    "a beginning that no date has",
    ({ record }) => record !== undefined,
    ({ record }) => (record.createdAt = 9e15),
  ],
])("BACKUP-15 a file with %s is refused, and no conversation is visible", async (_, of, change) => {
  const lines = await recordedLines();
  const values = lines.map((line): Loose => JSON.parse(line));
  const found = values.find(of);
  change(found);
  const stage = new Stage(undefined, 13);
  const life = stage.begin();
  const file = values.map((value) => JSON.stringify(value));
  expect(file).not.toEqual(lines);
  await expect(
    backupOf(stage, life).import(ADMIN, { from: 1, lines: file, isLast: true }),
  ).rejects.toMatchObject({
    code: "INVALID_INPUT",
  });
  expect(life.runtime.exists).toBe(false);
});

test("BACKUP-15 a file that lacks a turn is refused, and no conversation is visible", async () => {
  const lines = await recordedLines();
  const end = lines.length - 1;
  const turns = lines.flatMap((line, at) => (line.startsWith('{"turn":') ? [at] : []));
  expect(turns.length).toBeGreaterThan(3);
  for (const lost of turns) {
    const file = lines.with(end, JSON.stringify({ end: { lines: end - 1 } })).toSpliced(lost, 1);
    const stage = new Stage(undefined, 13);
    const life = stage.begin();
    const imported = backupOf(stage, life).import(ADMIN, { from: 1, lines: file, isLast: true });
    await expect(imported).rejects.toMatchObject({ code: "INVALID_INPUT" });
    expect(life.runtime.exists).toBe(false);
  }
});

test("BACKUP-2 BACKUP-15 with one value of a conversation's file changed, either the imported conversation works, or it is not visible", async () => {
  const lines = await recordedLines();
  let imported = 0;
  const property = fc.asyncProperty(
    fc.nat(10_000),
    fc.nat(100_000),
    fc.option(anything, { nil: undefined, freq: 8 }),
    async (line, place, other) => {
      const at = line % (lines.length - 1);
      const value: Json = JSON.parse(lines[at] ?? "");
      const places = placesIn(value);
      const changed = withValue(value, places[place % places.length] ?? [], other);
      const file = lines.with(at, JSON.stringify(changed).replaceAll(`"${BEYOND}"`, "1e999"));
      const stage = new Stage(undefined, 13);
      const life = stage.begin();
      try {
        await backupOf(stage, life).import(ADMIN, { from: 1, lines: file, isLast: true });
      } catch (error) {
        if (!(error instanceof DramatisError)) throw error;
        expect(["INVALID_INPUT", "TOO_LARGE"]).toContain(error.code);
        expect(life.runtime.exists).toBe(false);
        return;
      }
      imported += 1;
      await exerciseAll(stage, life);
    },
  );
  await fc.assert(property, { numRuns: 60 });
  expect(imported).toBeGreaterThan(2);
}, 90_000);
