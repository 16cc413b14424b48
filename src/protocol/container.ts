/** The messages between a workspace and the server in its container. */
import { z } from "zod";

export interface ContainerRequest {
  /** The mode, the object id and the path of each file. */
  files: readonly (readonly [mode: string, oid: string, path: string])[];
  /** The path in the folder of skills and the text of each file of the skills. Default: no skills. */
  skills?: readonly (readonly [path: string, text: string])[];
  command: string;
  timeoutMs: number;
}

export const containerResult = z.object({
  exitCode: z.int(),
  stdout: z.string(),
  stderr: z.string(),
  /** The path of each deleted file, and the path, the mode and the bytes of each changed file. */
  changes: z
    .array(
      z.union([
        z.tuple([z.string()]),
        z.tuple([z.string(), z.enum(["100644", "100755", "120000"]), z.int().min(0)]),
      ]),
    )
    .max(20_000),
  /** For each change, the mode and the object id of the file when the command began; `null` for a new file. */
  before: z.array(z.string().nullable()).optional(),
  /** The command did not end within its time. */
  isLate: z.literal(true).optional(),
  /** An output stream was longer. */
  isCut: z.literal(true).optional(),
});
export type ContainerResult = z.output<typeof containerResult>;

export const containerOutput = z.object({ stdout: z.string(), stderr: z.string() });
