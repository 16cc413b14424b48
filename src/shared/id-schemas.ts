/** Schemas of the ids that people choose. */
import { z } from "zod";
import { AGENT_ID, DEFINITION_ID } from "./identifiers.ts";
import { JURISDICTIONS } from "./location.ts";

/** Ids of agents. */
export const agentIdSchema = z
  .string()
  .regex(
    AGENT_ID,
    `An agent's id is 1 to 64 lower-case letters, digits and hyphens, and begins with a letter or a digit. In a jurisdiction "_" and its name follow: ${JURISDICTIONS.join(", ")}`,
  );

/** Ids of libraries, definitions and projects. */
export const definitionIdSchema = z
  .string()
  .regex(
    DEFINITION_ID,
    "An id is 1 to 64 letters, digits, underscores and hyphens, and begins with a letter or a digit",
  );
