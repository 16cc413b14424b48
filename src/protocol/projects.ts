/** Bodies and views of projects and their repositories. */
import { z } from "zod";
import { PROVIDERS } from "../model/profile.ts";
import { branchProblem } from "../shared/branch-problem.ts";
import { definitionIdSchema } from "../shared/id-schemas.ts";
import { time } from "./scalars.ts";

/** Repositories for code that a project is created with. */
const MAX_FIRST_REPOSITORIES = 20;
const MAX_FILES = 1_000;
/** Servers of the Model Context Protocol that a project names. */
const MAX_SERVERS = 100;
/** Runs, and model calls of an hour. */
const MAX_COUNT = 1_000_000;
const MAX_TOKENS = 1_000_000_000_000;

export const branchName = z
  .string()
  .refine((name) => branchProblem(name) === undefined, {
    error: ({ input }) => `${JSON.stringify(input)} ${branchProblem(String(input))}`,
  })
  .meta({ description: "Name of a branch.", example: "main" });

const name = z.string().min(1).max(200);

export const repositoryBody = z
  .strictObject({
    id: definitionIdSchema.meta({ description: "Id within the project.", example: "web" }),
    defaultBranch: branchName.default("main"),
  })
  .meta({ example: { id: "web", defaultBranch: "main" } });

export const projectBody = z
  .strictObject({
    id: definitionIdSchema.meta({
      description: "Id of the project. Agents name it in `projectIds`.",
      example: "shop",
    }),
    name: name.exactOptional(),
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

const setting = {
  modelProfileId: z.string().min(1).max(300).meta({
    description: "Reference of the model profile for personas without one, in new conversations.",
    example: "demo/fast",
  }),
  allowedModelProviders: z
    .array(z.enum(PROVIDERS))
    .min(1)
    .meta({ description: "The providers that model calls of the project may use.", example: ["anthropic"] }),
  allowedMcpServers: z
    .array(definitionIdSchema)
    .max(MAX_SERVERS)
    .describe("The servers of the Model Context Protocol that the project may use."),
  budget: z
    .strictObject({ tokens: z.int().min(0).max(MAX_TOKENS) })
    .describe("Limits the tokens of the project's model calls since the budget was set."),
};
const count = z.int().min(0).max(MAX_COUNT);
const limit = {
  maxConcurrentRuns: count.describe("Runs of workflows that have not ended."),
  maxModelCallsPerHour: count.describe("Attempts of model calls in an hour of the clock, in UTC."),
};

/** The settings of a project. An absent setting allows everything. */
const projectSettings = z.strictObject({
  modelProfileId: setting.modelProfileId.exactOptional(),
  allowedModelProviders: setting.allowedModelProviders.exactOptional(),
  allowedMcpServers: setting.allowedMcpServers.exactOptional(),
  limits: z
    .strictObject({
      maxConcurrentRuns: limit.maxConcurrentRuns.exactOptional(),
      maxModelCallsPerHour: limit.maxModelCallsPerHour.exactOptional(),
    })
    .exactOptional(),
  budget: setting.budget.exactOptional(),
});

export type ProjectSettings = z.infer<typeof projectSettings>;

/** A member that `null` removes. */
const removable = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().exactOptional();

/** A merge patch of the name and the settings. */
export const projectChange = z
  .strictObject({
    name: removable(name),
    modelProfileId: removable(setting.modelProfileId),
    allowedModelProviders: removable(setting.allowedModelProviders),
    allowedMcpServers: removable(setting.allowedMcpServers),
    limits: removable(
      z.strictObject({
        maxConcurrentRuns: removable(limit.maxConcurrentRuns),
        maxModelCallsPerHour: removable(limit.maxModelCallsPerHour),
      }),
    ),
    budget: removable(setting.budget),
  })
  .refine((change) => Object.keys(change).length > 0, "Give at least one setting. `null` removes a setting.")
  .meta({ example: { allowedModelProviders: ["anthropic"], limits: { maxModelCallsPerHour: 1_000 } } });

export type ProjectChange = z.infer<typeof projectChange>;

export const projectSummary = z
  .strictObject({ id: z.string(), name: z.string().exactOptional(), createdAt: time })
  .meta({ id: "ProjectSummary" });

export type ProjectSummary = z.infer<typeof projectSummary>;

export const projectView = z
  .strictObject({
    ...projectSummary.shape,
    ...projectSettings.shape,
    spent: z
      .strictObject({ tokens: z.int() })
      .exactOptional()
      .describe("The part of the budget that ended model calls have used. Absent without a budget."),
    repositories: z.array(repositoryView),
  })
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
  branch: z.string().describe("Name of the branch."),
  oid: z.string().describe("Id of the commit."),
});

export const branchesView = z.strictObject({
  branches: z.array(z.strictObject({ name: z.string(), oid: z.string() })),
});

export type Branches = z.infer<typeof branchesView>;
