/** The example of docs/tools.md: tools in code that use the memory of their agent. */
import { z } from "zod";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";

const addNote = defineTool({
  name: "add_note",
  description: "Stores a note about the user.",
  input: z.object({ text: z.string() }),
  effect: "idempotent",
  execute: async ({ text }, { memory, operationId }) => {
    const [note] = await memory.write([{ content: text, type: "note", idempotencyKey: operationId }]);
    return { id: note?.id };
  },
});

const findNotes = defineTool({
  name: "find_notes",
  description: "Finds notes about the user that answer a question.",
  input: z.object({ question: z.string() }),
  effect: "pure",
  execute: async ({ question }, { memory }) => {
    const { matches } = await memory.search({ query: question, type: "note", limit: 5 });
    return matches.map(({ memory: { id, content } }) => ({ id, text: content }));
  },
});

const dropNote = defineTool({
  name: "drop_note",
  description: "Erases a note.",
  input: z.object({ id: z.string() }),
  effect: "idempotent",
  execute: async ({ id }, { memory }) => {
    await memory.delete(id);
    return { dropped: true };
  },
});

const secretary = definePersona("secretary", {
  identity: { systemPrompt: "You keep notes.", modelProfileId: "test/scripted" },
  memory: { scope: "user", recall: false, memoryTools: false },
  tools: { toolIds: ["add_note", "find_notes", "drop_note"] },
});

export const memoryLibrary = defineLibrary("notes", {
  tools: [addNote, findNotes, dropNote],
  personas: [secretary],
});
