/** The tool of the platform's library for the skills of a persona: `read_skill`. Personas with skills get it. */
import { z } from "zod";
import { defineTool } from "../define/define.ts";
import { readSkill } from "../skills/skill.ts";

export const READ_SKILL = defineTool({
  name: "read_skill",
  description:
    "Reads the instructions of a skill, and the list of its other files. With `path` it reads one of these files.",
  input: z.object({
    skill: z.string().min(1).max(200).describe("The name of the skill."),
    path: z.string().min(1).max(200).describe("A file of the skill, such as references/forms.md.").optional(),
  }),
  effect: "pure",
  hosts: [],
  timeoutMs: 20_000,
  execute: async (input, { skills }) => readSkill(skills, input),
});
