/** Bodies and views of projects and their repositories. */
import { z } from "zod";
import { branchProblem } from "../shared/branch-problem.ts";
import { definitionIdSchema } from "../shared/id-schemas.ts";
import { time } from "./scalars.ts";

/** Repositories for code that a project is created with. */
const MAX_FIRST_REPOSITORIES = 20;
/** Files of one request. */
const MAX_FILES = 1_000;

const branch = z
  .string()
  .refine((name) => branchProblem(name) === undefined, {
    error: ({ input }) => `${JSON.stringify(input)} ${branchProblem(String(input))}`,
  })
  .meta({ description: "Name of a branch.", example: "main" });

export const repositoryBody = z
  .strictObject({
    id: definitionIdSchema.meta({ description: "Id within the project.", example: "web" }),
    defaultBranch: branch.default("main"),
  })
  .meta({ example: { id: "web", defaultBranch: "main" } });

export const projectBody = z
  .strictObject({
    id: definitionIdSchema.meta({
      description: "Id of the project. Agents name it in `projectIds`.",
      example: "shop",
    }),
    name: z.exactOptional(z.string().min(1).max(200)),
    repositories: z
      .array(repositoryBody)
      .max(MAX_FIRST_REPOSITORIES)
      .refine((list) => new Set(list.map(({ id }) => id)).size === list.length, "Name each repository once.")
      .refine(
        (list) => list.every(({ id }) => id !== "artifacts"),
        'Leave out "artifacts": each project has this repository.',
      )
      .default([]),
  })
  .meta({ example: { id: "shop", repositories: [{ id: "web" }] } });

export const repositoryView = z
  .strictObject({
    id: z.string(),
    kind: z.enum(["code", "artifacts"]),
    defaultBranch: z.string(),
  })
  .meta({ id: "Repository", description: "A git repository. Each project has one of the kind `artifacts`." });

export type ProjectRepository = z.infer<typeof repositoryView>;

export const projectSummary = z
  .strictObject({ id: z.string(), name: z.exactOptional(z.string()), createdAt: time })
  .meta({ id: "ProjectSummary" });

export type ProjectSummary = z.infer<typeof projectSummary>;

export const projectView = z
  .strictObject({ ...projectSummary.shape, repositories: z.array(repositoryView) })
  .meta({ id: "Project" });

export type Project = z.infer<typeof projectView>;

export const filesBody = z
  .strictObject({
    files: z
      .record(z.string(), z.string().nullable())
      .refine((files) => Object.keys(files).length > 0, "Name at least one file.")
      .refine((files) => Object.keys(files).length <= MAX_FILES, `At most ${MAX_FILES} files in one request.`)
      .meta({ description: "Texts by paths. `null` deletes a file.", example: { "README.md": "# Shop\n" } }),
    message: z.string().min(1).max(10_000).default("Change files"),
  })
  .meta({ example: { files: { "README.md": "# Shop\n" }, message: "Begin" } });

export const commitView = z.strictObject({
  branch: z.string().meta({ description: "The default branch." }),
  oid: z.string().meta({ description: "Id of the commit." }),
});

export const branchesView = z.strictObject({
  branches: z.array(z.strictObject({ name: z.string(), oid: z.string() })),
});

export type Branches = z.infer<typeof branchesView>;
