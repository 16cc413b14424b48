/**
 * The tool `notes`: short texts kept in the conversation.
 *
 * NOTES-1  A note's id is the operation that added it, so adding it again changes nothing; removing it again neither.
 *          Every action answers the notes as they then are.
 */
import { z } from "zod";
import { defineTool, type ToolContext } from "../../src/library/define.ts";
import { ToolError } from "../../src/library/tool-error.ts";

const PREFIX = "notes/";

const noteSchema = z.object({ text: z.string(), createdAt: z.number() });

export const notes = defineTool({
  name: "notes",
  description:
    "Keeps notes in this conversation. add: keeps `text`. list: shows all notes. remove: drops the note with `id`. " +
    "Every action answers all notes as they then are, oldest first.",
  input: z.object({
    action: z.enum(["add", "list", "remove"]),
    text: z.string().trim().min(1).max(4_000).optional().describe("add only: what to note"),
    id: z.string().min(1).max(100).optional().describe("remove only: the note's id, as list shows it"),
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
