/** Bodies and views of the secrets of projects. */
import { z } from "zod";
import { hostProblem } from "../shared/host-rules.ts";
import { definitionIdSchema } from "../shared/id-schemas.ts";
import { time } from "./scalars.ts";

const MAX_HOSTS = 20;
const MAX_VALUE = 8_000;
/** Headers that describe the connection. */
const OWN_HEADERS = /^(?:host|content-length|connection|transfer-encoding|upgrade)$/;
const PRINTABLE = /^[\x20-\x7e]*$/;

const host = z.string().superRefine((text, context) => {
  const problem = hostProblem(text);
  if (problem !== null) context.addIssue({ code: "custom", message: problem });
});

const target = {
  hosts: z
    .array(host)
    .min(1)
    .max(MAX_HOSTS)
    .meta({
      description: "The only hosts that get the secret: `host` or `host:port`.",
      example: ["api.example.com"],
    }),
  header: z
    .string()
    .toLowerCase()
    .regex(/^[a-z0-9-]{1,100}$/, "Must be the name of a header.")
    .refine((name) => !OWN_HEADERS.test(name), "Must be another header: the server sets this header.")
    .default("authorization")
    .describe("The header with the secret."),
  prefix: z
    .string()
    .max(100)
    .regex(PRINTABLE, "Must have printable ASCII characters.")
    .meta({
      description: "Stands before the secret in the header.",
      example: "Bearer ",
    })
    .exactOptional(),
};

export const projectSecretBody = z
  .strictObject({
    value: z
      .string()
      .min(8)
      .max(MAX_VALUE)
      .regex(/^[\x21-\x7e]+$/, "Must have printable ASCII characters without spaces.")
      .describe("The secret. No answer has it."),
    ...target,
  })
  .meta({ example: { value: "the-key-of-the-service", hosts: ["api.example.com"], prefix: "Bearer " } });

export type ProjectSecretBody = z.infer<typeof projectSecretBody>;

export const projectSecretView = z
  .strictObject({ id: definitionIdSchema, ...target, updatedAt: time })
  .meta({ id: "ProjectSecret", description: "A secret of a project, without its value." });

export type ProjectSecretView = z.infer<typeof projectSecretView>;

export const projectSecretList = z.strictObject({
  secrets: z.array(projectSecretView),
  problem: z
    .string()
    .describe("The reason why the server can store no secret now, and the fix.")
    .exactOptional(),
});

export type ProjectSecretList = z.infer<typeof projectSecretList>;
