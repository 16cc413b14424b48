/**
 * The tool `notes`: short texts in the conversation's state.
 *
 * NOTES-1  The id of a note is the id of the operation that added it. Repeated additions and removals are no-ops. Every
 *          action returns the resulting notes.
 */
import { z } from "zod";
import { defineTool, type ToolContext } from "../../src/library/define/define.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";

const PREFIX = "notes/";

const noteSchema = z.object({ text: z.string(), createdAt: z.number() });

export const notes = defineTool({
  name: "notes",
  description:
    "Stores notes in this conversation. add: stores `text`. list: changes nothing. remove: deletes the note with `id`. " +
    "Every action returns all notes, oldest first.",
  input: z.object({
    action: z.enum(["add", "list", "remove"]),
    text: z.string().trim().min(1).max(4_000).optional().describe("add only: the text of the note"),
    id: z.string().min(1).max(100).optional().describe("remove only: the id of the note, as in the list"),
  }),
  effect: "idempotent",
  async execute({ action, text, id }, { state, operationId, now }) {
    switch (action) {
      case "add": {
        if (text === undefined) throw missing("add", "text");
        const key = PREFIX + operationId;
        if ((await state.get(key)) === null) await state.put(key, { text, createdAt: now() });
        break;
      }
      case "remove":
        if (id === undefined) throw missing("remove", "id");
        await state.put(PREFIX + id, null);
        break;
      case "list":
    }
    return { notes: await all(state) };
  },
});

async function all(state: ToolContext["state"]): Promise<{ id: string; text: string; createdAt: string }[]> {
  const entries = await state.list(PREFIX);
  return entries
    .map(({ key, value }) => ({ id: key.slice(PREFIX.length), ...noteSchema.parse(value) }))
    .sort((left, right) => left.createdAt - right.createdAt)
    .map((note) => ({ ...note, createdAt: new Date(note.createdAt).toISOString() }));
}

function missing(action: string, field: string): ToolError {
  return new ToolError(`The action "${action}" needs "${field}".`, { code: "INVALID_INPUT" });
}
