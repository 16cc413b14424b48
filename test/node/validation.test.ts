/** Messages of validation. */
import { expect, test } from "vitest";
import { z } from "zod";
import { validate } from "../../src/shared/validation.ts";

test.each<[z.ZodType, unknown, string]>([
  [z.string(), 5, "Must be a string."],
  [z.number(), "5", "Must be a number."],
  [z.int(), 1.5, "Must be an integer."],
  [z.boolean(), "yes", "Must be true or false."],
  [z.array(z.string()), {}, "Must be a list."],
  [z.strictObject({}), [], "Must be an object."],
  [z.record(z.string(), z.string()), "a", "Must be an object."],
  [z.string().min(1), "", "Must have at least 1 character."],
  [z.string().max(3), "four", "Must have at most 3 characters."],
  [z.array(z.string()).min(1), [], "Must have at least 1 item."],
  [z.array(z.string()).length(2), ["a"], "Must have exactly 2 items."],
  [z.number().min(2), 1, "Must be at least 2."],
  [z.number().gt(2), 2, "Must be more than 2."],
  [z.number().max(2), 3, "Must be at most 2."],
  [z.number().lt(2), 2, "Must be less than 2."],
  [z.union([z.string(), z.strictObject({ id: z.string() })]), 5, "Must be a string or an object."],
  [z.string("Name the agent."), 5, "Name the agent."],
])("INVALID-1 %# an issue of zod states the requirement", (schema, value, message) => {
  expect(() => validate(schema, value)).toThrow(`The input is not valid: ${message}`);
});
