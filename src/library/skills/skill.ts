/**
 * Skills in the public form of Agent Skills: a folder with a `SKILL.md`. Pure.
 *
 * SKILL-1  `SKILL.md` begins with YAML between two lines `---`. It has `name` and `description`, and no unknown fields. All values are texts.
 * SKILL-2  An error names the field, or the line of invalid YAML, and says what to change.
 * SKILL-3  The skills of a persona have different names, and limits for their number and their size. Skills of libraries count, too.
 * SKILL-4  The instructions list the names and the descriptions. The model gets a body, or another file, only from `read_skill`.
 * SKILL-6  The id of a skill in a library is the `name` in its `SKILL.md`.
 * SKILL-7  A conversation pins the versions of skills of libraries. Later versions do not reach it.
 * SKILL-5  The commands of a shell have the files of the skills in `/skills/NAME`. Changes there end with the command.
 */
import { LineCounter, parseDocument } from "yaml";
import { z } from "zod";
import type { Skill } from "../../protocol/definitions.ts";
import { DramatisError, type InputIssue, invalid } from "../../shared/errors.ts";
import type { DefinitionReference } from "../../shared/identifiers.ts";
import type { JsonObject } from "../../shared/json.ts";
import { listIds } from "../../shared/known-ids.ts";
import { shorten } from "../../shared/text.ts";
import { utf8Length } from "../../shared/utf8.ts";
import { issuesText, validate } from "../../shared/validation.ts";
import { referenceSchema } from "../definitions/reference.ts";
import { isInlineSkill } from "../definitions/version-chain.ts";
import { ToolError } from "../tools/tool-error.ts";

const SKILL_FILE = "SKILL.md";

/** The folder of the skills in shells. */
export const SKILLS_ROOT = "/skills";

/** Maximum number of skills of a persona. */
export const MAX_SKILLS = 20;

/** Maximum number of files of a skill. */
const MAX_FILES = 100;

/** Maximum bytes of all skills of a persona. Each conversation keeps them. */
const MAX_BYTES = 256 * 1024;

/** Maximum characters of the YAML of a `SKILL.md`. */
const MAX_FRONTMATTER = 4_096;

/** Control characters except line feeds and tabs, and characters that change the direction of text. */
const HIDDEN = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/u;

const SEGMENT = "(?!\\.{1,2}(?:/|$)|__proto__(?:/|$))[^/\\\\\\p{C}]{1,100}";

/** A path from the folder of the skill. */
const pathSchema = z
  .string()
  .max(200)
  .regex(
    new RegExp(`^${SEGMENT}(?:/${SEGMENT})*$`, "u"),
    "Must be a path from the folder of the skill, such as scripts/check.sh.",
  );

const text = z
  .string({
    error: ({ input }) => (input === undefined ? undefined : "Must be a text. Put it in quotation marks."),
  })
  .refine(
    (value) => value.isWellFormed() && !HIDDEN.test(value),
    "Must have no control characters, no characters that change the direction of text, and only whole characters.",
  );

const frontmatterSchema = z.strictObject({
  name: text
    .max(64)
    .regex(
      /^[a-z0-9]+(?:-[a-z0-9]+)*$/,
      "Must have small letters, digits, and single hyphens between them, as in pdf-forms.",
    ),
  description: text
    .max(1_024)
    .refine((value) => value.trim() !== "", "Must say what the skill does, and when to use it."),
  license: text.exactOptional(),
  compatibility: text.min(1).max(500).exactOptional(),
  "allowed-tools": z
    .union([text, z.array(text)], "Must be the names of tools with spaces between them.")
    .exactOptional(),
  metadata: z.record(z.string(), text, "Must have texts by name.").exactOptional(),
});

/** The parts of a `SKILL.md`. */
export type SkillFile = z.output<typeof frontmatterSchema> & {
  /** The Markdown after the frontmatter. */
  body: string;
};

const FRONTMATTER = /^---[ \t]*\n(?<yaml>(?:[^\n]*\n)*?)---[ \t]*(?:\n|$)/;

/**
 * Returns the parts of a `SKILL.md`. Throws `INVALID_INPUT` (SKILL-1, SKILL-2).
 * @example parseSkillFile("---\nname: greet\ndescription: Greets users.\n---\nSay hello.").name // "greet"
 */
export function parseSkillFile(content: string): SkillFile {
  const lines = content.replace(/^\uFEFF/, "").replaceAll("\r\n", "\n");
  const match = FRONTMATTER.exec(lines);
  if (match === null)
    throw invalid(
      `${SKILL_FILE} must begin with a line "---", then \`name\` and \`description\` in YAML, and another line "---".`,
    );
  const fields = validate(frontmatterSchema, readYaml(match.groups?.yaml ?? ""), "", SKILL_FILE);
  return { ...fields, body: lines.slice(match[0].length).trim() };
}

/** Returns the value of the frontmatter, with all scalars as texts. Throws `INVALID_INPUT` with the line in the file (SKILL-2). */
function readYaml(yaml: string): unknown {
  if (yaml.length > MAX_FRONTMATTER) throw invalidYaml(`It has more than ${MAX_FRONTMATTER} characters`);
  const lineCounter = new LineCounter();
  const document = parseDocument(yaml, { schema: "failsafe", lineCounter, prettyErrors: false });
  const [error] = document.errors;
  // The line before the YAML is the first line of the file.
  if (error !== undefined)
    throw invalidYaml(`Line ${lineCounter.linePos(error.pos[0]).line + 1}: ${error.message}`);
  try {
    return document.toJS({ maxAliasCount: 0 });
  } catch {
    throw invalidYaml("It has an alias. Repeat the text instead");
  }
}

function invalidYaml(problem: string): DramatisError {
  return invalid(
    `The YAML of ${SKILL_FILE} is not valid. ${problem}. Put a text with ": " or " #" in quotation marks.`,
  );
}

export const skillSchema = z
  .strictObject({
    files: z
      .record(pathSchema, z.string("Must be a text. Skills have no binary files."))
      .refine((files) => Object.keys(files).length <= MAX_FILES, `Has more than ${MAX_FILES} files.`)
      .refine(hasNoFileAsFolder, "One of the paths is a file and a folder. Rename one of them."),
  })
  .superRefine((skill, context) => {
    const problem = problemOf(skill);
    if (problem !== undefined)
      context.addIssue({ code: "custom", path: ["files", SKILL_FILE], message: problem });
  });

function hasNoFileAsFolder(files: Skill["files"]): boolean {
  return Object.keys(files).every((path) =>
    [...path.matchAll(/\//g)].every(({ index }) => !Object.hasOwn(files, path.slice(0, index))),
  );
}

/** The skills of a persona (SKILL-3). */
export const skillsSchema = z
  .array(
    z.union([referenceSchema, skillSchema], 'Must be a skill {files}, or a reference as in "library/id".'),
  )
  .min(1)
  .max(MAX_SKILLS)
  .superRefine((skills, context) => {
    const inline = skills.map((skill) => (isValid(skill) ? skill : undefined));
    for (const { path, message } of skillsIssues(inline))
      context.addIssue({ code: "custom", path: path.split("/").slice(1), message });
  });

/** Reports whether a skill of a persona is inline, with a `SKILL.md` that can be read. */
function isValid(skill: Skill | DefinitionReference): skill is Skill {
  return isInlineSkill(skill) && problemOf(skill) === undefined;
}

/** Returns the problems of skills together, with their places in the list (SKILL-3). `undefined` stands for an unknown skill. */
export function skillsIssues(skills: readonly (Skill | undefined)[]): InputIssue[] {
  const names = skills.map((skill) => skill && skillFileOf(skill).name);
  const repeated = names.flatMap((name, index) =>
    name === undefined || names.indexOf(name) === index
      ? []
      : [{ path: `/${index}`, message: `Another skill is "${name}", too. Rename one.` }],
  );
  const bytes = utf8Length(JSON.stringify(skills.filter((skill) => skill !== undefined)));
  if (bytes <= MAX_BYTES) return repeated;
  const message = `The skills have ${bytes} bytes as JSON. The maximum is ${MAX_BYTES}. Remove files, or divide the skills among agents.`;
  return [...repeated, { path: "", message }];
}

/** Throws `INVALID_INPUT` for the skills of a persona if they do not fit together (SKILL-3). */
export function checkSkills(skills: readonly Skill[]): void {
  const errors = skillsIssues(skills).map(({ path, message }) => ({ path: `/skills${path}`, message }));
  if (errors.length > 0) throw invalid(`The skills do not fit together: ${issuesText(errors)}`, { errors });
}

/** The form of skills between actors. The actor that pins them has checked the rest. */
export const sentSkillsSchema = z.array(z.object({ files: z.record(z.string(), z.string()) }));

function problemOf(skill: Skill): string | undefined {
  if (skill.files[SKILL_FILE] === undefined) return `Is required: each skill has a file ${SKILL_FILE}.`;
  try {
    skillFileOf(skill);
    return undefined;
  } catch (error) {
    if (error instanceof DramatisError) return error.message;
    throw error;
  }
}

/**
 * Defines a skill for `defineAgent`, `definePersona` and `defineLibrary`. The files are texts by their path in the folder of the skill. Throws `INVALID_INPUT`.
 * @example
 * import skillFile from "./skills/greet/SKILL.md?raw";
 * const greet = defineSkill({ files: { "SKILL.md": skillFile } });
 */
export function defineSkill(skill: Skill): Skill {
  return validate(skillSchema, skill, "", "The skill");
}

/** The parts of checked skills, which never change. */
const parsed = new WeakMap<Skill, SkillFile>();

/** Returns the id of a skill in a library (SKILL-6). */
export function skillId(skill: Skill): string {
  return skillFileOf(skill).name;
}

function skillFileOf(skill: Skill): SkillFile {
  const known = parsed.get(skill) ?? parseSkillFile(skill.files[SKILL_FILE] ?? "");
  parsed.set(skill, known);
  return known;
}

/** Returns the part of the instructions that lists the skills (SKILL-4). With a shell it names the folder of the files (SKILL-5). */
export function skillsNote(skills: readonly Skill[], hasShell: boolean): string {
  const lines = skills.map((skill) => {
    const { name, description } = skillFileOf(skill);
    return `- ${name}: ${description.trim().replace(/\s+/g, " ")}`;
  });
  const files = hasShell
    ? ` If the shell has the folder ${SKILLS_ROOT}, the files of a skill are in ${SKILLS_ROOT}/NAME. Changes there are not kept.`
    : "";
  return `You have skills: instructions for certain tasks. If a task fits the description of a skill, read the skill with \`read_skill\` before you begin, and follow it.${files}\n${lines.join("\n")}`;
}

/** Returns a skill's instructions, or one of its files, for the model. Throws `ToolError` with `NOT_FOUND`. */
export function readSkill(
  skills: readonly Skill[],
  { skill: name, path = SKILL_FILE }: { skill: string; path?: string | undefined },
): JsonObject {
  const skill = skills.find((one) => skillFileOf(one).name === name);
  if (skill === undefined) {
    const names = skills.map((one) => skillFileOf(one).name);
    const advice = names.length === 0 ? "You have no skills." : `Your skills are: ${listIds(name, names)}.`;
    throw new ToolError(`There is no skill "${shorten(name, 100)}". ${advice}`, { code: "NOT_FOUND" });
  }
  const paths = Object.keys(skill.files);
  const content = Object.hasOwn(skill.files, path) ? skill.files[path] : undefined;
  if (content === undefined)
    throw new ToolError(
      `The skill "${name}" has no file "${shorten(path, 200)}". Its files are: ${listIds(path, paths)}.`,
      { code: "NOT_FOUND" },
    );
  if (path !== SKILL_FILE) return { skill: name, path, content };
  const files = paths.filter((other) => other !== SKILL_FILE).sort();
  return { skill: name, content: skillFileOf(skill).body, ...(files.length === 0 ? {} : { files }) };
}

/** Returns the files of skills for a shell, by their paths in the folder of skills (SKILL-5). */
export function filesOfSkills(skills: readonly Skill[]): [path: string, content: string][] {
  return skills.flatMap((skill) =>
    Object.entries(skill.files).map(([path, content]): [string, string] => [
      `${skillFileOf(skill).name}/${path}`,
      content,
    ]),
  );
}
