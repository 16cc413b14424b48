/** Artifacts: the text files of a project's repository `artifacts`. Their inputs, views and types. */
import { z } from "zod";
import type { JsonObject } from "../shared/json.ts";
import { MAX_PAGE_SIZE } from "../shared/page.ts";
import { time } from "./scalars.ts";

/** A kind of artifacts. The first type with a matching pattern is the type of an artifact. */
export interface ArtifactType {
  id: string;
  /** A glob of the paths of its artifacts: `*` is a part of a name, and `**` any folders. */
  pathPattern: string;
  /** JSON Schema. It checks the JSON of a `.json` file, and the whole text of any other file. */
  schema?: JsonObject;
  index?: {
    /** Members of the JSON that lists, searches and the knowledge of agents show. */
    fields?: string[];
    /** Members of the JSON that vectors are made of. Default: the whole text. An empty list makes no vectors. */
    embed?: string[];
  };
}

export const MAX_ARTIFACT_BYTES = 131_072;

/** The most estimated tokens of the note about artifacts in a request. */
export const MAX_KNOWLEDGE_TOKENS = 1_500;

/** The most artifacts of a search. */
export const MAX_FOUND = 50;

const project = z
  .string()
  .min(1)
  .max(64)
  .describe("The id of another project of the agent; the project of this conversation when absent.")
  .optional();
const path = z.string().min(1).max(1_024).describe("The path from the root, such as decisions/use-jwt.md.");
const folder = path.describe("Only artifacts in this folder.").optional();
const type = z.string().min(1).max(64).describe("Only artifacts of this type.").optional();
const commit = z.string().regex(/^[0-9a-f]{40}$/, "Must be the `version` of a read or a write.");
const ifVersion = commit
  .describe("Fails if the artifact has changed since this version. Pass the `version` that you have read.")
  .optional();

export const ARTIFACT_INPUTS = {
  "artifact.read": z.object({
    ...{ project, path },
    version: commit.describe("A version of the past; the newest when absent.").optional(),
  }),
  "artifact.list": z.object({
    ...{ project, path: folder, type },
    limit: z.int().min(1).max(MAX_PAGE_SIZE).describe("Artifacts at most; 50 when absent.").optional(),
    cursor: z.string().min(1).max(1_024).describe("`nextCursor` of the previous page.").optional(),
  }),
  "artifact.search": z.object({
    project,
    query: z.string().min(1).max(2_000).describe("The question, or words of it."),
    ...{ path: folder, type },
    limit: z.int().min(1).max(MAX_FOUND).describe("Artifacts at most; 10 when absent.").optional(),
  }),
  "artifact.write": z.object({
    ...{ project, path },
    content: z.string().describe("The whole new content."),
    type: z.string().min(1).max(64).describe("Fails if the path has another type.").optional(),
    ifVersion,
  }),
  "artifact.delete": z.object({ project, path, ifVersion }),
};

export type ArtifactKind = keyof typeof ARTIFACT_INPUTS;
export const ARTIFACT_KINDS = Object.keys(ARTIFACT_INPUTS) as ArtifactKind[];

/** Reports whether an operation only reads. */
export function isArtifactRead(kind: ArtifactKind): boolean {
  return kind !== "artifact.write" && kind !== "artifact.delete";
}

const typeId = z
  .string()
  .meta({ description: "The type whose pattern and schema it fits.", example: "decision" })
  .exactOptional();
const version = z.string().describe("The commit of the newest version.");

export const artifactSummary = z
  .strictObject({
    path: z.string(),
    type: typeId,
    title: z.string().describe("The first line, or the member `title` of JSON."),
    fields: z.record(z.string(), z.json()).describe("The fields of its type.").exactOptional(),
    bytes: z.int(),
    updatedAt: time,
  })
  .meta({ id: "ArtifactSummary" });

export type ArtifactSummary = z.infer<typeof artifactSummary>;

export const artifactView = z
  .strictObject({ path: z.string(), version, type: typeId, content: z.string() })
  .meta({ id: "Artifact", description: "A text file of the project." });

export type ArtifactView = z.infer<typeof artifactView>;

export const writtenArtifact = z
  .strictObject({ path: z.string(), version, type: typeId })
  .meta({ id: "WrittenArtifact" });

export type WrittenArtifact = z.infer<typeof writtenArtifact>;

/** The artifacts of a call's project, as tools and tasks use them. */
export interface ToolArtifacts {
  /**
   * Runs an operation with its input. `key` makes a write idempotent: pass the `operationId`, with a suffix if the tool writes several times.
   * Throws `ToolError`, `PERMISSION_DENIED` for a project that the agent does not have.
   *
   * @example
   * const { content } = await artifacts.perform("artifact.read", { path: "decisions/use-jwt.md" }, operationId);
   */
  perform(kind: ArtifactKind, input: JsonObject, key: string): Promise<JsonObject>;
}
