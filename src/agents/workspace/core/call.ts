/** The calls of a workspace. Pure. */
import { z } from "zod";
import { sentSkillsSchema } from "../../../library/skills/skill.ts";
import { type WORKSPACE_INPUTS, WORKSPACE_KINDS } from "../../../protocol/workspace.ts";

export const callKey = z.string().min(1).max(500);

export const callSchema = z.object({
  kind: z.enum(WORKSPACE_KINDS),
  input: z.record(z.string(), z.json()),
  key: callKey,
  author: z.object({ name: z.string().min(1).max(200), email: z.string().min(1).max(200) }),
  skills: sentSkillsSchema.exactOptional(),
  mayUseSensitive: z.literal(true).optional(),
  isForPerson: z.literal(true).optional(),
});

/** The operations that need more than the files. */
export type RepositoryOperation = {
  [Kind in RepositoryKind]: { kind: Kind; input: z.output<(typeof WORKSPACE_INPUTS)[Kind]> };
}[RepositoryKind];
type RepositoryKind = "repo.commit" | "repo.merge" | "shell.exec" | "shell.start";
