import { defineTool } from "dramatis";
import { z } from "zod";

const NOTES = [
  "Refunds take 14 days.",
  "Orders above 100 euros have free delivery.",
  "The shop is closed on Sundays.",
];

export const findNotes = defineTool({
  name: "find_notes",
  description: "Finds notes with a word.",
  input: z.object({ word: z.string() }),
  // It may run again after a crash.
  effect: "pure",
  execute: ({ word }) => NOTES.filter((note) => note.toLowerCase().includes(word.toLowerCase())),
});
